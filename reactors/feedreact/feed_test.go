package feedreact_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/internal/test/feedtest"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/projections"
	"bahi/providers/feed/nats"
	"bahi/reactors/feedreact"
)

const kill = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
	and application_name = 'bahi reactor feed'`

func TestEventsAreForwardedInOrder(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(50, 0)
	run := r.run()
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() { r.add(50, 0) })
	}
	writing.Wait()
	run.reached(logtest.Head(t, r.store))
	require.Equal(t, r.ids(0), r.forwarded(250))
	require.Contains(t, r.said.String(), `level=INFO msg="reactor starts without a checkpoint" reactor=feed after=0`)
	m := run.metrics()
	require.Equal(t, map[string]float64{
		"bahi_feed_position": 250, "bahi_feed_lag_events": 0, "bahi_feed_lag_seconds": 0, "bahi_feed_parked": 0, "bahi_feed_active": 1,
		"bahi_feed_published_total": 250, "bahi_feed_failures_total": 0,
	}, m)
}

// EventStoreDB clients may append one id to several streams.
func TestEventsOfSeveralStreamsWithOneIDAreAllForwarded(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	e := event.Proposed{ID: uuid.New(), Type: "Linked", Data: []byte(`{}`), Meta: []byte(`{}`)}
	for _, stream := range []string{"one-1", "two-1", "three-1"} {
		_, err := r.store.Append(t.Context(), eventstore.To(stream, eventstore.Any, e))
		require.NoError(t, err)
	}
	r.run().reached(3)
	require.Equal(t, r.ids(0), r.forwarded(3))
}

func TestFeedFromNowSkipsEarlierEvents(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.add(5, 0)
	now := func(c *feedreact.Config) { c.FromNow = true }
	run := r.run(now)
	run.working()
	run.stop()
	r.add(3, 0)
	r.run(now).reached(8)
	require.Equal(t, r.ids(5), r.forwarded(3), "the checkpoint takes precedence over the head")
}

func TestKilledFeedForwardsEachEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	run := r.run()
	run.working()
	killed := int64(0)
	for round := range 24 {
		r.add(40, 0)
		switch round % 4 {
		case 0:
			killed += pgtest.Exec(t, r.pool, kill)
		case 1:
			run.stop()
			run = r.run()
		case 2: // another process that does not know it lost its lock
			pgtest.Exec(t, r.pool, `update reactor.checkpoint set owner = gen_random_uuid()`)
		default: // kill at a random moment
			run.reached(logtest.Head(t, r.store) - 5)
			killed += pgtest.Exec(t, r.pool, kill)
		}
	}
	run.reached(logtest.Head(t, r.store))
	require.Positive(t, killed)
	require.Equal(t, r.ids(0), r.forwarded(24*40))
}

func TestFeedCatchesUpAfterAnOutageOfTheBroker(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	run := r.run()
	r.add(10, 0)
	run.reached(10)
	r.broker.Stop()
	r.add(30, 0)
	waiting := run.until(func(s feedreact.Status) bool { return s.State == feedreact.Waiting })
	require.Contains(t, waiting.Error, "NATS")
	require.Contains(t, r.said.String(), `level=WARN msg="reactor waiting"`)
	m := run.metrics()
	require.InDelta(t, 10, m["bahi_feed_position"], 0)
	require.InDelta(t, 30, m["bahi_feed_lag_events"], 0)
	require.Positive(t, m["bahi_feed_lag_seconds"])
	require.Positive(t, m["bahi_feed_failures_total"])
	r.broker.Start()
	run.reached(40)
	require.Equal(t, r.ids(0), r.forwarded(40))
	require.Contains(t, r.said.String(), `level=INFO msg="reactor continues"`)
}

// slowBroker is a broker that manages only a few messages per call.
type slowBroker struct{ message.Publisher }

func (s slowBroker) Publish(topic string, messages ...*message.Message) error {
	if err := s.Publisher.Publish(topic, messages[:min(len(messages), 10)]...); err != nil || len(messages) <= 10 {
		return err
	}
	return context.DeadlineExceeded
}

func TestSlowBrokerGetsFewMessagesAtATime(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.addMany(200)
	r.run(func(c *feedreact.Config) { c.Broker = slowBroker{c.Broker} }).reached(200)
	require.Equal(t, r.ids(0), r.forwarded(200))
}

func TestCheckpointOfAnotherLogParksTheFeedUntilAReplay(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"another log":          `update reactor.checkpoint set store_id = gen_random_uuid()`,
		"another event":        `update reactor.checkpoint set event_id = gen_random_uuid()`,
		"beyond the log's end": `update reactor.checkpoint set position = 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			r.add(5, 0)
			run := r.run()
			run.reached(5)
			run.stop()
			require.EqualValues(t, 1, pgtest.Exec(t, r.pool, sql))
			r.add(5, 0)
			run = r.run()
			parked := run.until(func(s feedreact.Status) bool { return s.State == feedreact.Parked })
			require.Contains(t, parked.Error, "which is not in this log")
			require.Len(t, r.forwarded(5), 5)
			// noted after the event
			require.Eventually(t, func() bool { return run.metrics()["bahi_feed_parked"] == 1 }, time.Minute, 10*time.Millisecond)
			require.NoError(t, feedreact.Replay(t.Context(), r.pool, r.store, 7))
			run.reached(10)
			require.Equal(t, append(r.ids(0)[:5], r.ids(6)...), r.forwarded(9))
		})
	}
}

// takesAtMost restarts the broker with a limit for messages in bytes.
func (r *fixture) takesAtMost(size int32) {
	r.t.Helper()
	r.broker.Stop()
	r.broker.Configure(func(o *server.Options) { o.MaxPayload = size })
	r.broker.Start()
}

// parked waits until the feed's row shows it as parked at a position.
func (r *fixture) parked(at event.Position) *projections.Checkpoint {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		return projections.ReactorParkedAt(r.t.Context(), r.pool, feedreact.Name, at) == nil
	}, time.Minute, 10*time.Millisecond)
	c, err := projections.CheckpointOf(r.t.Context(), r.pool, feedreact.Name)
	require.NoError(r.t, err)
	return c
}

func TestRefusedEventParksTheFeed(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.takesAtMost(4096)
	r.add(5, 0)
	r.add(1, 5000)
	r.add(5, 0)
	run := r.run()
	at := r.parked(6)
	require.Equal(t, event.Position(5), at.Position)
	require.Contains(t, *at.Error, "event Sold at position 6: NATS takes messages of 4096 bytes at most (max_payload)")
	require.Equal(t, r.ids(0)[:5], r.forwarded(5))
	require.Equal(t, event.Position(5), run.until(func(s feedreact.Status) bool { return s.State == feedreact.Parked }).Position)

	r.takesAtMost(1 << 20)
	require.NoError(t, projections.RetryReactor(t.Context(), r.pool, feedreact.Name))
	run.reached(11)
	require.Equal(t, r.ids(0), r.forwarded(11))
}

func TestFeedThatNeverRanHasNoCheckpoint(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	c, err := projections.CheckpointOf(t.Context(), r.pool, feedreact.Name)
	require.NoError(t, err)
	require.Nil(t, c)
	require.NoError(t, feedreact.Replay(t.Context(), r.pool, r.store, 1))
	c, err = projections.CheckpointOf(t.Context(), r.pool, feedreact.Name)
	require.NoError(t, err)
	require.Equal(t, &projections.Checkpoint{Name: "feed", StoreID: r.store.ID()}, c)
}

var (
	log = uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa")
	id  = uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000bb")
)

func stored(meta string) event.Stored {
	return event.Stored{
		Position: 812, Stream: "user-0195e8a0", Revision: 3, ID: id, Type: "UserEmailChanged",
		Data: []byte(`{"email": {"sealed":1,"class":"personal","subject":"user-7","key":1,"box":"q83v"}, "n":1.50}`),
		Meta: []byte(meta), At: time.Date(2026, 11, 21, 23, 30, 0, 123456000, time.FixedZone("IST", 19800)),
	}
}

func TestMessageHasThePayloadAndTheAttributes(t *testing.T) {
	t.Parallel()
	e := stored(`{"schema":2,"workspace":"0195e8a0-7c1e-7000-8000-0000000000cc","actor":"user:7","occurred_at":"2026-11-21T17:59:59.9Z",
		"request_id":"r-1","correlation_id":"c-1","causation_id":"0195e8a0-7c1e-7000-8000-0000000000dd","reason":"as asked\nby phone",
		"follow_up_of":811}`)
	m := feedreact.Message(log, e)
	require.Equal(t, id.String()+"@812", m.UUID)
	require.Equal(t, e.Data, []byte(m.Payload))
	require.Equal(t, message.Metadata{
		"specversion": "1.0", "id": id.String(), "source": "urn:uuid:0195e8a0-7c1e-7000-8000-0000000000aa", "type": "UserEmailChanged",
		"subject": "user-0195e8a0", "time": "2026-11-21T18:00:00.123456Z", "datacontenttype": "application/json",
		"sequence": "00000000000000000812", "revision": "3",
		"schema": "2", "workspace": "0195e8a0-7c1e-7000-8000-0000000000cc", "actor": "user:7", "occurredat": "2026-11-21T17:59:59.9Z",
		"requestid": "r-1", "correlationid": "c-1", "causationid": "0195e8a0-7c1e-7000-8000-0000000000dd", "reason": "as asked by phone",
		"followupof": "811",
	}, m.Metadata)
}

func TestMetadataReplacesNoAttribute(t *testing.T) {
	t.Parallel()
	ours := feedreact.Message(log, stored(`{}`)).Metadata
	for _, meta := range []string{
		`null`, `7`, `"text"`, `[1, 2]`,
		`{"id":"x","type":"x","se_quence":"x","data":"x","data_base64":"x","dataschema":"x","subject":"x","$correlationId":"x","Upper":"x",` +
			`"":"x"}`,
		`{"nested":{"a":1},"list":[1],"none":null,"empty":"","averyveryverylongname1":"x"}`,
	} {
		require.Equal(t, ours, feedreact.Message(log, stored(meta)).Metadata, meta)
	}
	m := feedreact.Message(log, stored(`{"tenant":"é\u0000\u0085!","count":9007199254740993,"test":true}`)).Metadata
	require.Equal(t, "é  !", m["tenant"])
	require.Equal(t, "9007199254740993", m["count"])
	require.Equal(t, "true", m["test"])
}

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
