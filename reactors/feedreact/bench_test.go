package feedreact_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkForward forwards a log to a NATS server in this process, which stores it in files, and reads the same log by a subscription. On
// a busy machine the processor time is more reliable than events/s.
func BenchmarkForward(b *testing.B) {
	r := newRig(b)
	const events = 20_000
	r.addAtOnce(events)
	r.reopen() // otherwise the events would be read from memory
	measure := func(name string, do func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			before := processorTime(b)
			for b.Loop() {
				do(b)
			}
			all := float64(events * b.N)
			b.ReportMetric(all/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/all, "cpu-µs/event")
		})
	}
	measure("read", func(b *testing.B) {
		n := 0
		for batch, err := range r.store.Subscribe(b.Context(), 0) {
			require.NoError(b, err)
			if n += len(batch.Events); n == events {
				return
			}
		}
	})
	measure("forward", func(b *testing.B) {
		r.exec(`delete from reactor.checkpoint`)
		_ = r.broker.JetStream().DeleteStream(b.Context(), "BAHI") // none at first
		run := r.run()
		run.reached(events)
		run.stop()
	})
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
