package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
)

// watch follows the log in the background, checks its order, and passes on the events of one stream. The returned function waits for the
// end and returns the error.
func (n *node) watch(ctx context.Context, t testing.TB, after event.Position, stream string) (<-chan event.Stored, func() error) {
	t.Helper()
	var (
		events = make(chan event.Stored, 4096)
		end    = make(chan error, 1)
	)
	go func() {
		last := after
		for batch, err := range n.Subscribe(ctx, after) {
			if err != nil {
				end <- err
				return
			}
			for _, e := range batch.Events {
				if e.Position != last+1 {
					end <- errors.New("the subscription skipped or repeated")
					return
				}
				last = e.Position
				if e.Stream == stream {
					events <- e
				}
			}
			last = batch.UpTo
		}
		end <- nil
	}()
	return events, func() error {
		select {
		case err := <-end:
			return err
		case <-time.After(patience):
			return errors.New("the subscription does not end")
		}
	}
}

// arrives waits for the next event of a subscription and checks it.
func arrives(t testing.TB, events <-chan event.Stored, want event.Proposed) event.Stored {
	t.Helper()
	select {
	case e := <-events:
		same(t, []event.Proposed{want}, []event.Stored{e})
		return e
	case <-time.After(patience):
		require.FailNow(t, "the event did not arrive")
		return event.Stored{}
	}
}

var following = []sentence{
	{"a subscription from the beginning sees everything", func(t *testing.T, n *node) {
		s := stream()
		n.must(t, s, eventstore.NoStream, some(300)...)
		require.Equal(t, n.stream(t, s), n.follow(t, 0, 300, s))
	}},
	{"a subscription sees later events, on every node", func(t *testing.T, n *node) {
		s, other := stream(), n.another(t)
		ctx, cancel := context.WithCancel(t.Context())
		after := n.head(t)
		here, endHere := n.watch(ctx, t, after, s)
		there, endThere := other.watch(ctx, t, after, s)
		for i := range 30 {
			e, through := one(), n
			if i%3 == 0 {
				through = other
			}
			done := through.must(t, s, eventstore.Any, e)
			require.Equal(t, done.Position, arrives(t, here, e).Position)
			require.Equal(t, done.Position, arrives(t, there, e).Position)
		}
		cancel()
		require.ErrorIs(t, endHere(), context.Canceled)
		require.ErrorIs(t, endThere(), context.Canceled)
	}},
	{"the last append of a node that closes reaches followers", func(t *testing.T, n *node) {
		s := stream()
		events, _ := n.watch(t.Context(), t, n.head(t), s)
		for range 3 {
			last, short := some(3), n.another(t)
			for _, e := range last {
				short.must(t, s, eventstore.Any, e)
			}
			short.shut()
			short.shut = func() {}
			for _, e := range last {
				arrives(t, events, e)
			}
		}
	}},
	{"several subscribers see the same, even slow ones", func(t *testing.T, n *node) {
		const count = 600
		s, after := stream(), n.head(t)
		var (
			all    sync.WaitGroup
			seen   [6][]event.Stored
			step   = make(chan struct{})
			others = []*node{n, n.another(t)}
		)
		for i := range seen {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				for batch, err := range others[i%2].Subscribe(ctx, after) {
					if err != nil {
						return
					}
					for _, e := range batch.Events {
						if e.Stream == s {
							seen[i] = append(seen[i], e)
						}
					}
					if len(seen[i]) == count {
						return
					}
					if i < 2 {
						<-step // lags behind the appends
					}
				}
			})
		}
		for range count / 10 {
			n.must(t, s, eventstore.Any, some(10)...)
		}
		close(step)
		all.Wait()
		want := n.stream(t, s)
		for i := range seen {
			require.Equal(t, want, seen[i], "subscriber %d", i)
		}
	}},
	{"a subscription ends with its context, even under load", func(t *testing.T, n *node) {
		stop := make(chan struct{})
		var all sync.WaitGroup
		defer all.Wait()
		defer close(stop)
		for range 4 {
			all.Go(func() {
				for s := stream(); ; {
					select {
					case <-stop:
						return
					default:
						if _, err := n.Append(t.Context(), eventstore.To(s, eventstore.Any, some(20)...)); err != nil {
							return
						}
					}
				}
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		later := 0
		for batch, err := range n.Subscribe(ctx, 0) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				break
			}
			if len(batch.Events) > 0 {
				cancel()
				later++
				require.Less(t, later, 3, "the subscription continued after its context ended")
			}
		}
		require.Error(t, ctx.Err())
	}},
	{"a subscription from beyond the end waits", func(t *testing.T, n *node) {
		ctx, cancel := context.WithCancel(t.Context())
		_, end := n.watch(ctx, t, eventstore.End, stream())
		_, endToo := n.watch(ctx, t, eventstore.End+7, stream())
		n.must(t, stream(), eventstore.NoStream, one())
		cancel()
		require.ErrorIs(t, end(), context.Canceled)
		require.ErrorIs(t, endToo(), context.Canceled)
	}},
}

var cancelling = []sentence{
	{"an append cancelled before it begins appends nothing", func(t *testing.T, n *node) {
		s := stream()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := n.Append(ctx, eventstore.To(s, eventstore.NoStream, one()))
		require.ErrorIs(t, err, context.Canceled)
		for _, r := range n.AppendEach(ctx, []eventstore.Transaction{eventstore.To(s, eventstore.Any, some(2)...)}) {
			require.ErrorIs(t, r.Err, context.Canceled)
		}
		require.Empty(t, n.stream(t, s))
	}},
	{"an append cancelled in the middle appends all or nothing, and reports which", func(t *testing.T, n *node) {
		type outcome struct {
			stream string
			events []event.Proposed
			err    error
		}
		outcomes := make([]outcome, 200)
		var all sync.WaitGroup
		for i := range outcomes {
			o := &outcomes[i]
			o.stream, o.events = stream(), some(3)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
				defer cancel()
				_, o.err = n.Append(ctx, eventstore.To(o.stream, eventstore.NoStream, o.events...))
			})
		}
		all.Wait()
		for _, o := range outcomes {
			if o.err == nil {
				n.holds(t, o.stream, o.events...)
				continue
			}
			if errors.Is(o.err, eventstore.ErrInDoubt) {
				continue
			}
			require.True(t, isCancelled(o.err), "%v", o.err)
			require.Empty(t, n.stream(t, o.stream))
		}
	}},
}

var closing = []sentence{
	{"a closed store refuses appends and ends subscriptions", func(t *testing.T, n *node) {
		short, s := n.another(t), stream()
		short.must(t, s, eventstore.NoStream, one())
		events, end := short.watch(t.Context(), t, 0, s)
		<-events
		short.shut()
		short.shut = func() {}
		require.Error(t, end())
		_, err := short.Append(t.Context(), eventstore.To(s, eventstore.Any, one()))
		require.ErrorIs(t, err, eventstore.ErrUnavailable)
		require.Error(t, ends(short.Subscribe(t.Context(), 0)))
		require.Len(t, n.stream(t, s), 1)
	}},
	{"a store closed under load answers every caller correctly", func(t *testing.T, n *node) {
		// All append to one stream, so that one always waits.
		short, s := n.another(t), stream()
		var (
			all      sync.WaitGroup
			mu       sync.Mutex
			answered []event.Proposed
			wrong    error
			busy     = make(chan struct{})
			once     sync.Once
		)
		for range 32 {
			all.Go(func() {
				for {
					e := one()
					_, err := short.Append(t.Context(), eventstore.To(s, eventstore.Any, e))
					mu.Lock()
					if err == nil {
						answered = append(answered, e)
					} else if !errors.Is(err, eventstore.ErrUnavailable) {
						wrong = err
					}
					if len(answered) == 200 || err != nil {
						once.Do(func() { close(busy) })
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		<-busy
		closed := make(chan struct{})
		go func() {
			short.shut()
			close(closed)
		}()
		within(t, closed, "closing under load")
		short.shut = func() {}
		all.Wait()
		require.NoError(t, wrong)
		there := map[string]bool{}
		for _, e := range n.stream(t, s) {
			there[e.ID.String()] = true
		}
		require.Len(t, there, len(answered), "the stream has an event that was not acknowledged")
		for _, e := range answered {
			require.True(t, there[e.ID.String()])
		}
	}},
}
