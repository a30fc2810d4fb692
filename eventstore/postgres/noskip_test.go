package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// trouble makes commits slow or fail, or terminates their session, at random.
const trouble = `
	create function trouble() returns trigger language plpgsql as $$
	declare
	  chance float := random();
	begin
	  case
	  when chance < 0.002 then perform pg_sleep(0.05 * random());
	  when chance < 0.003 then raise exception 'trouble';
	  when chance < 0.0035 then perform pg_terminate_backend(pg_backend_pid());
	  else null;
	  end case;
	  return null;
	end $$;
	create constraint trigger trouble after insert on log.event deferrable initially deferred
	for each row execute function trouble()`

// outcome is the outcome of an append as its client received it.
type outcome struct {
	eventstore.Appended

	write eventstore.Write
	err   error
}

// crowd are the nodes of a log, with clients that append to each and followers.
type crowd struct {
	t     *testing.T
	url   string
	cable *cable
	nodes [4]atomic.Pointer[Store]
	last  atomic.Uint64 // where followers end; 0: not yet known

	mu       sync.Mutex
	outcomes []outcome
	followed map[[2]event.Position]uint64 // digests of the events that followers received, by the first position and the last
}

// open opens a node, although connections break.
func (c *crowd) open(nth int) {
	pool := newPool(c.t, c.url, c.cable.use, func(p *pgxpool.Config) { p.ConnConfig.RuntimeParams["application_name"] = "node" })
	require.Eventually(c.t, func() bool {
		s, err := open(c.t.Context(), pool, slog.New(slog.DiscardHandler), brief, nil)
		if err == nil {
			c.t.Cleanup(s.Close)
			c.nodes[nth].Store(s)
		}
		return err == nil
	}, time.Minute, time.Millisecond)
}

// digest hashes the fields of an event that a reader sees.
func digest(e event.Stored) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, e.Position, e.Stream, e.Revision, e.ID, e.Type, string(e.Data), string(e.Meta), e.At.UnixMicro())
	return h.Sum64()
}

// follow checks that the log continues without a gap, whatever happens to connections.
func (c *crowd) follow(nth int, after event.Position) {
	at, sum := after, uint64(0)
	over := func() bool { last := c.last.Load(); return last > 0 && uint64(at) >= last }
	for !over() && c.t.Context().Err() == nil {
		for batch, err := range c.nodes[nth].Load().Subscribe(c.t.Context(), at) {
			if err != nil {
				<-time.After(time.Millisecond)
				break
			}
			for _, e := range batch.Events {
				if e.Position != at+1 || !bytes.Equal(e.Data, made(e.ID).Data) {
					c.t.Errorf("after %d comes %d with %s", at, e.Position, e.Data)
					return
				}
				at, sum = e.Position, sum+digest(e)
			}
			if over() {
				break
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followed[[2]event.Position{after, at}] = sum
}

// write appends until the context ends: to its own streams and to shared streams, with repetitions.
func (c *crowd) write(ctx context.Context, nth int, chance *rand.Rand) {
	var answered []outcome
	revisions := map[string]int64{}
	for ctx.Err() == nil {
		s := c.nodes[nth].Load()
		w := eventstore.Write{Stream: "own-" + uuid.NewString(), Expected: eventstore.NoStream, Events: makes(1 + chance.IntN(3))}
		limit := time.Minute
		switch n := chance.IntN(20); {
		case n < 4:
			w.Stream, w.Expected = fmt.Sprint("shared-", chance.IntN(4)), eventstore.Any
		case n < 6:
			w.Stream = fmt.Sprint("shared-", chance.IntN(4))
			w.Expected = eventstore.Expected(revisions[w.Stream])
		case n < 7:
			limit = time.Duration(chance.IntN(3000)) * time.Microsecond
		case n < 9 && len(answered) > 0:
			before := answered[chance.IntN(len(answered))]
			now, err := s.Append(c.t.Context(), eventstore.To(before.write.Stream, before.write.Expected, before.write.Events...))
			now.Replayed = false
			if _, conflict := errors.AsType[*eventstore.WrongRevision](err); conflict || err == nil && now != before.Appended {
				c.t.Errorf("repetition on %s: %v, then %v %v", before.write.Stream, before.Appended, now, err)
			}
			continue
		}
		within, cancel := context.WithTimeout(c.t.Context(), limit)
		done, err := s.Append(within, eventstore.To(w.Stream, w.Expected, w.Events...))
		cancel()
		done.Replayed = false
		o := outcome{done, w, err}
		switch {
		case err == nil:
			revisions[w.Stream] = done.Revision
			answered = append(answered, o)
		case errors.Is(err, eventstore.ErrUnavailable):
			<-time.After(5 * time.Millisecond) // as a client would
		}
		c.mu.Lock()
		c.outcomes = append(c.outcomes, o)
		c.mu.Unlock()
	}
}

// check compares the outcomes and events that clients and followers received with the log.
func (c *crowd) check(log []event.Stored) {
	t := c.t
	t.Helper()
	there, sums := byID(t, log), make([]uint64, len(log)+1)
	for i, e := range log {
		sums[i+1] = sums[i] + digest(e)
	}
	count := map[bool]int{}
	for _, o := range c.outcomes {
		if errors.Is(o.err, eventstore.ErrInDoubt) {
			continue
		}
		count[o.err == nil]++
		for i, proposed := range o.write.Events {
			e := there[proposed.ID]
			if o.err != nil {
				require.Zero(t, e.Position, "%v", o.err)
				continue
			}
			require.Equal(t, o.First+event.Position(i), e.Position)
			require.Equal(t, o.Revision-int64(len(o.write.Events)-1-i), e.Revision)
			require.Equal(t, o.write.Stream, e.Stream)
		}
		if o.err == nil {
			newest := there[o.write.Events[len(o.write.Events)-1].ID]
			require.Equal(t, newest.Position, o.Position)
			require.Equal(t, newest.At, o.At)
		}
	}
	for span, sum := range c.followed {
		require.Equal(t, sums[span[1]]-sums[span[0]], sum, "%v", span)
	}
	t.Logf("%d appends answered, %d refused; %d connections cut", count[true], count[false], c.cable.broken.Load())
	require.NotZero(t, count[true])
	require.NotZero(t, c.cable.broken.Load())
}

// Clients append through four nodes, and all follow the log. Meanwhile nodes end and start, their connections are cut at any message,
// sessions are terminated, commits are slow or fail, and the lock is held. In the end each follower has seen exactly 1 to N, each
// acknowledged append is in the log once, and no refused one is.
func TestFollowersSkipAndRepeatNothing(t *testing.T) {
	t.Parallel()
	const seed = 20261121
	var (
		url    = newLog(t)
		conn   = connect(t, url)
		chance = rand.New(rand.NewPCG(seed, 0))
		s      = newStore(t, url)
		did    = map[string]int{}
		mu     sync.Mutex
		faulty = rand.New(rand.NewPCG(seed, 1))
	)
	c := &crowd{t: t, url: url, followed: map[[2]event.Position]uint64{}, cable: &cable{next: func() fault {
		mu.Lock()
		defer mu.Unlock()
		switch n := faulty.IntN(2000); {
		case n == 0:
			return silent // waits for a timeout
		case n < 100:
			return fault(1 + faulty.IntN(int(silent)-1))
		default:
			return none
		}
	}}}
	_, err := conn.Exec(t.Context(), trouble)
	require.NoError(t, err)
	writing, stop := context.WithCancel(t.Context())
	defer stop()
	var writers, followers sync.WaitGroup
	for nth := range c.nodes {
		c.open(nth)
		head, err := s.Head(t.Context())
		require.NoError(t, err)
		followers.Go(func() { c.follow(nth, 0) })
		followers.Go(func() { c.follow(nth, head) })
		for client := range 8 {
			writers.Go(func() { c.write(writing, nth, rand.New(rand.NewPCG(seed, uint64(2+10*nth+client)))) })
		}
	}

	const least = 1000 // events, however slow the machine is
	until, next := time.Now().Add(soakFor()), event.Position(500)
	for batch, err := range s.Subscribe(t.Context(), 0) {
		require.NoError(t, err)
		if batch.UpTo > least && time.Now().After(until) {
			break
		}
		if batch.UpTo < next {
			continue
		}
		next = batch.UpTo + event.Position(100+chance.IntN(1000))
		what := []string{"node ended", "session ended", "session ended", "lock taken", "lock taken", "lock taken"}[chance.IntN(6)]
		did[what]++
		switch what {
		case "node ended":
			nth := chance.IntN(len(c.nodes))
			c.nodes[nth].Load().Close()
			c.open(nth)
		case "session ended":
			_, err = conn.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and application_name = 'node' order by random() limit 3`)
		default:
			_, err = conn.Exec(t.Context(), `begin; `+lockLog+fmt.Sprintf(`; select pg_sleep(%f); commit`, 0.05*chance.Float64()))
		}
		require.NoError(t, err)
	}
	stop()
	c.cable.healed.Store(true)
	_, err = conn.Exec(t.Context(), `drop trigger trouble on log.event`)
	require.NoError(t, err)
	writers.Wait()
	c.last.Store(uint64(must(t, s, "last-1", makes(1)...).Position))
	must(t, s, "last-1", makes(1)...) // wakes those that have seen all
	followers.Wait()
	log := wholeLog(t, s)
	c.check(log)
	t.Logf("%d events; %v", len(log), did)
	require.Greater(t, len(log), least)
}
