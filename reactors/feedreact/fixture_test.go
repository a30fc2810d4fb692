package feedreact_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/feedtest"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/providers/feed/nats"
	"bahi/reactors/feedreact"
)

// fixture is a log, a database and a broker.
type fixture struct {
	t      testing.TB
	pool   *pgxpool.Pool
	store  *postgres.Store
	broker *feedtest.NATS
	said   *logtest.Buffer
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	r := &fixture{t: t, said: &logtest.Buffer{}, broker: feedtest.Start(t)}
	r.pool, r.store = logtest.Open(t)
	return r
}

// add appends events to three streams, each with a payload of about size bytes.
func (r *fixture) add(n, size int) {
	r.t.Helper()
	for i := range n {
		e := event.Proposed{ID: uuid.New(), Type: "Sold", Data: fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, i, bytes.Repeat([]byte("x"), size)),
			Meta: []byte(`{}`)}
		_, err := r.store.Append(r.t.Context(), eventstore.To(fmt.Sprintf("shop-%d", i%3), eventstore.Any, e))
		require.NoError(r.t, err)
	}
}

// addMany appends many events, a hundred per append.
func (r *fixture) addMany(n int) {
	r.t.Helper()
	for begun := 0; begun < n; begun += 100 {
		events := make([]event.Proposed, min(100, n-begun))
		for i := range events {
			events[i] = event.Proposed{ID: uuid.New(), Type: "Sold", Data: fmt.Appendf(nil, `{"n":%d}`, begun+i),
				Meta: []byte(`{"schema":1,"actor":"user:7"}`)}
		}
		_, err := r.store.Append(r.t.Context(), eventstore.To(fmt.Sprintf("shop-%d", begun/100%16), eventstore.Any, events...))
		require.NoError(r.t, err)
	}
}

// ids returns the ids of the log's events after a position, in order.
func (r *fixture) ids(after event.Position) (all []string) {
	r.t.Helper()
	for e, err := range r.store.ReadAll(r.t.Context(), after, eventstore.Forwards) {
		require.NoError(r.t, err)
		all = append(all, e.ID.String())
	}
	return all
}

// forwarded waits until the broker has count messages and returns their ids.
func (r *fixture) forwarded(count int) (all []string) {
	r.t.Helper()
	for _, m := range r.broker.Messages("BAHI", count) {
		all = append(all, m.Headers().Get("ce-id"))
	}
	return all
}

func (r *fixture) head() event.Position {
	r.t.Helper()
	head, err := r.store.Head(r.t.Context())
	require.NoError(r.t, err)
	return head
}

func (r *fixture) exec(sql string) int64 {
	r.t.Helper()
	return pgtest.Exec(r.t, r.pool, sql)
}

// process is a running feed.
type process struct {
	*feedreact.Feed

	t    testing.TB
	stop func()
}

func (r *fixture) run(change ...func(*feedreact.Config)) *process {
	r.t.Helper()
	broker, err := nats.Open(r.broker.Address, slog.New(slog.DiscardHandler))
	require.NoError(r.t, err)
	config := feedreact.Config{
		Store: r.store, Pool: r.pool, Broker: broker, Topic: "bahi.events", Program: "v-test", Log: slog.New(slog.NewTextHandler(r.said, nil)),
	}
	for _, c := range change {
		c(&config)
	}
	p := &process{Feed: feedreact.New(config), t: r.t}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(r.t, p.Run(ctx))
	}()
	p.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			require.Fail(r.t, "the feed did not stop")
		}
		require.NoError(r.t, broker.Close())
	})
	r.t.Cleanup(p.stop)
	return p
}

// until waits for a status.
func (p *process) until(is func(feedreact.Status) bool) (s feedreact.Status) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { s = p.Status(); return is(s) }, 2*time.Minute, 5*time.Millisecond, "%+v", &s)
	return s
}

func (p *process) working() {
	p.t.Helper()
	p.until(func(s feedreact.Status) bool { return s.Working })
}

// reached waits until everything up to a position is forwarded.
func (p *process) reached(at event.Position) {
	p.t.Helper()
	p.until(func(s feedreact.Status) bool { return s.State == feedreact.Live && s.Position >= at })
}

// metrics returns the feed's metrics by name.
func (p *process) metrics() map[string]float64 {
	p.t.Helper()
	registry := prometheus.NewRegistry()
	p.Register(registry)
	families, err := registry.Gather()
	require.NoError(p.t, err)
	all := map[string]float64{}
	for _, f := range families {
		all[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
	}
	return all
}
