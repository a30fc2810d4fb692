package archive

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// benchmarked returns an archive of events with the usual sizes of a ledger's.
func benchmarked(b *testing.B, n int) (*Archive, []tlog.RetainedCheckpoint) {
	b.Helper()
	l := logOf(n)
	for i := range l.events {
		l.events[i].Meta = []byte(`{"schema":1,"workspace":"0195e8a0-7c1e-7000-8000-0000000000aa",` +
			`"actor":"user:0195e8a0-7c1e-7000-8000-0000000000bb","occurred_at":"2026-11-21T18:00:00.123456Z","request_id":"01J9ZQ7W7T4V"}`)
		l.events[i].Data = []byte(`{"account":12,"date":"2026-11-21","in":[{"amount":1250.5,"description":"Received against bill 104"}],` +
			`"out":[]}`)
	}
	dir := filepath.Join(b.TempDir(), "archive")
	_, err := Create(b.Context(), dir, l, Options{UpTo: l.head(), At: time.Now()})
	require.NoError(b, err)
	a, err := Open(dir)
	require.NoError(b, err)
	return a, kept(b, l, keyOf(b, l, 1), n)
}

const benchmarkedEvents = 200_000

func perSecond(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(benchmarkedEvents)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkRead is the lower bound of BenchmarkVerify: it only reads the archive.
func BenchmarkRead(b *testing.B) {
	a, _ := benchmarked(b, benchmarkedEvents)
	for b.Loop() {
		var last event.Position
		for e, err := range a.Events(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			last = e.Position
		}
		if last != benchmarkedEvents {
			b.Fatal(last)
		}
	}
	perSecond(b)
}

func BenchmarkVerify(b *testing.B) {
	a, kept := benchmarked(b, benchmarkedEvents)
	for b.Loop() {
		r, err := a.Verify(b.Context(), tlog.Keys{}, kept, nil)
		if err != nil || r.Verdict() != tlog.Verified {
			b.Fatal(r, err)
		}
	}
	perSecond(b)
}
