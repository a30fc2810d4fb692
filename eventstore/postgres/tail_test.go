package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/test/pgtest"
)

func TestTailIsBounded(t *testing.T) {
	t.Parallel()
	for size, most := range map[int]int{10: 2 * tailEvents, 1 << 20: 64, 40 << 20: 1} {
		tail := newTail()
		data, last := make([]byte, size), event.Position(0)
		for range 40 {
			var group []event.Stored
			for range min(1000, most) {
				last++
				group = append(group, event.Stored{Position: last, Data: data})
			}
			tail.committed(group)
			require.LessOrEqual(t, len(tail.events), most)
			require.LessOrEqual(t, tail.bytes, 2*tailBytes)
			bytes := 0
			for _, e := range tail.events {
				bytes += len(e.Data)
			}
			require.Equal(t, bytes, tail.bytes)
		}
	}
}

// The test compares the tail with a log to which others append as well. The tail returns only events of the log, in order. It never returns
// none if it knows of more.
func TestTailNeverSkips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			tail    = newTail()
			log     []event.Stored
			at      = rapid.SliceOfN(rapid.Just(event.Position(0)), 3, 3).Draw(t, "followers")
			looked  = make([]int, len(at))
			unheard bool // others appended without a notice
		)
		grow := func() (group []event.Stored) {
			for range rapid.IntRange(1, 4).Draw(t, "events") {
				log = append(log, event.Stored{Position: event.Position(len(log) + 1), ID: uuid.New()})
				group = append(group, log[len(log)-1])
			}
			return group
		}
		t.Repeat(map[string]func(*rapid.T){
			"this node appends": func(*rapid.T) {
				tail.committed(grow())
				unheard = false
			},
			"another node appends": func(*rapid.T) {
				grow()
				unheard = true
			},
			"its notice arrives": func(*rapid.T) {
				tail.headMoved(event.Position(len(log)))
				unheard = false
			},
			"an old notice arrives": func(*rapid.T) { tail.headMoved(event.Position(rapid.IntRange(1, len(log)+1).Draw(t, "head")) - 1) },
			"the head is unknown": func(*rapid.T) {
				tail.headMoved(0)
				unheard = false
			},
			"memory runs out": func(*rapid.T) {
				tail.mu.Lock()
				tail.events, tail.bytes = tail.events[len(tail.events)/2:], 0
				tail.mu.Unlock()
			},
			"a follower looks": func(t *rapid.T) {
				i := rapid.IntRange(0, len(at)-1).Draw(t, "follower")
				batch, known := tail.after(at[i], &looked[i])
				if !known {
					batch = log[at[i]:] // the database
				}
				if len(batch) == 0 {
					require.True(t, unheard || at[i] == event.Position(len(log)), "stuck at %d of %d", at[i], len(log))
				}
				for _, e := range batch {
					require.Equal(t, log[at[i]], e)
					at[i]++
				}
			},
		})
	})
}

func TestAPollWakesFollowersOnlyIfTheLogEndsElsewhere(t *testing.T) {
	t.Parallel()
	s := newStore(t, newLog(t))
	conn, err := pgx.ConnectConfig(t.Context(), s.pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	var known logEnd
	of := newTail()
	wakes := func(what string, expected bool) {
		before := of.doubts
		known, err = poll(t.Context(), conn, brief, of, known)
		require.NoError(t, err)
		require.Equal(t, expected, of.doubts > before, what)
	}
	wakes("an empty log", false)
	must(t, s, "first-1", makes(3)...)
	wakes("new events", true)
	require.EqualValues(t, 3, of.announced())
	wakes("the same end", false)
	of.headMoved(5)
	wakes("a notice of events that are not there", true)
	of.head = 3
	pgtest.Exec(t, conn, `update log.event set id = gen_random_uuid() where position = 3`)
	wakes("another event at the end", true)
	wakes("the same end again", false)
	pgtest.Exec(t, conn, `delete from log.event where position = 3`)
	wakes("a lost end", true)
}

func TestLargeEventsAreReadInSmallChunks(t *testing.T) {
	t.Parallel()
	s := newStore(t, newLog(t))
	big := fmt.Appendf(nil, "%q", strings.Repeat("x", maxChunkBytes/5))
	for range 15 {
		e := made(uuid.New())
		e.Data = big
		must(t, s, "big-1", e)
	}
	must(t, s, "small-1", makes(200)...)
	limit := maxChunk
	batch, more, err := s.readAll(t.Context(), &limit, 0, eventstore.Forwards)
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, 5, len(batch)) //nolint:testifylint // a failure would print them all
	for _, direction := range []eventstore.Direction{eventstore.Forwards, eventstore.Backwards} {
		from := event.Position(0)
		if direction == eventstore.Backwards {
			from = eventstore.End
		}
		count := 0
		for _, err := range s.ReadAll(t.Context(), from, direction) {
			require.NoError(t, err)
			count++
		}
		require.Equal(t, 215, count)
	}
	// A follower of a newly opened log reads on at once, without a poll.
	ctx, cancel := context.WithTimeout(t.Context(), rarelyPolling.look)
	defer cancel()
	count := 0
	for batch, err := range newStoreWith(t, s.pool.Config().ConnString(), rarelyPolling).Subscribe(ctx, 0) {
		require.NoError(t, err)
		if count += len(batch.Events); count == 215 {
			break
		}
	}
}

// rarelyPolling has the timeouts of a node that hardly polls, so even on a slow machine an event arrives by its notice.
var rarelyPolling = func() timeouts {
	p := defaultTimeouts
	p.look = 2 * time.Minute
	return p
}()

// In the suite's log another append would wake a subscriber that missed a notice. Here no other process appends, and the nodes poll every
// two minutes.
func TestNoticesWakeOtherNodesAtOnce(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]func(t *testing.T, s *Store, url string){
		"from a node that stays open": func(t *testing.T, s *Store, _ string) {
			must(t, s, "a-1", makes(1)...)
			must(t, s, "a-1", makes(1)...)
			must(t, s, "a-1", makes(1)...)
		},
		"from a node that closes": func(t *testing.T, _ *Store, url string) {
			short := newStore(t, url)
			must(t, short, "a-1", makes(1)...)
			must(t, short, "a-1", makes(1)...)
			must(t, short, "a-1", makes(1)...)
			short.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const times = 9
			url := newLog(t)
			writer, reader := newStore(t, url), newStoreWith(t, url, rarelyPolling)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			positions := make(chan event.Position, 3*times)
			go func() {
				for batch, err := range reader.Subscribe(ctx, 0) {
					if err != nil {
						return
					}
					for _, e := range batch.Events {
						positions <- e.Position
					}
				}
			}()
			prompt := 0
			for range times {
				each(t, writer, url)
				begun := time.Now()
				for range 3 {
					<-positions
				}
				if time.Since(begun) < rarelyPolling.look/4 {
					prompt++
				}
			}
			require.Greater(t, prompt, times*2/3)
		})
	}
}

// laterBy lets events of type Later wait.
func laterBy(most time.Duration) func([]event.Stored) time.Duration {
	return func(events []event.Stored) time.Duration {
		for _, e := range events {
			if e.Type != "Later" {
				return 0
			}
		}
		return most
	}
}

func isAwake(w *waiter) bool {
	select {
	case <-w.wake:
		return true
	default:
		return false
	}
}

func TestWaitersAreWokenByWhatMayNotWait(t *testing.T) {
	t.Parallel()
	tail := newTail()
	patient, hasty := tail.wait(laterBy(time.Hour)), tail.wait(laterBy(0))
	later := []event.Stored{{Position: 1, Type: "Later"}}
	tail.committed(later)
	require.True(t, isAwake(hasty))
	require.False(t, isAwake(patient))
	tail.committed([]event.Stored{{Position: 2, Type: "Later"}, {Position: 3, Type: "Made"}})
	require.True(t, isAwake(patient), "with an event that may not wait, the others are delivered too")

	for name, change := range map[string]func(){
		"another process appended":    func() { tail.headMoved(9) },
		"the head is not known":       func() { tail.headMoved(0) },
		"a connection was lost":       tail.reset,
		"an event may wait no longer": func() {},
	} {
		most := time.Hour
		if name == "an event may wait no longer" {
			most = time.Millisecond
		}
		w, gone := tail.wait(laterBy(most)), tail.wait(laterBy(0))
		tail.leave(gone)
		tail.committed(later)
		require.False(t, isAwake(gone), "it has left")
		change()
		select {
		case <-w.wake:
		case <-time.After(30 * time.Second):
			require.FailNow(t, "not woken", name)
		}
	}
	tail.mu.Lock() // its last waker may still hold it
	defer tail.mu.Unlock()
	require.Empty(t, tail.waiters)
}

func TestASparingReadLeavesOutOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	s := newStore(t, newLog(t))
	const events = 60
	types := []string{"Opened", "Opened", "Moved", "Closed"}
	for i := range events {
		_, err := s.Append(t.Context(),
			eventstore.To(fmt.Sprintf("thing-%d", i), eventstore.NoStream,
				event.Proposed{ID: uuid.New(), Type: types[i*i%len(types)], Data: []byte(`{}`), Meta: []byte(`{}`)}))
		require.NoError(t, err)
	}
	var all []event.Stored
	for e, err := range s.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		all = append(all, e)
	}
	rapid.Check(t, func(rt *rapid.T) {
		after := event.Position(rapid.IntRange(0, events).Draw(rt, "after"))
		upTo := event.Position(rapid.IntRange(0, events+20).Draw(rt, "up to"))
		without := rapid.SliceOfDistinct(rapid.SampledFrom(types), rapid.ID[string]).Draw(rt, "without")
		section := event.Position(rapid.IntRange(1, events).Draw(rt, "section"))
		var read []event.Stored
		for e, err := range s.readSections(t.Context(), after, upTo, without, section) {
			require.NoError(rt, err)
			read = append(read, e)
		}
		want := func(e event.Stored) bool {
			return e.Position > after && e.Position <= upTo && (e.Position == upTo || !slices.Contains(without, e.Type))
		}
		at := 0
		for _, e := range all {
			found := at < len(read) && read[at].Position == e.Position
			if want(e) {
				require.True(rt, found, "position %d", e.Position)
			}
			if found {
				require.Equal(rt, e, read[at])
				require.True(rt, e.Position > after && e.Position <= upTo, "position %d", e.Position)
				at++
			}
		}
		require.Len(rt, read, at, "each once, in order, and none that there is not")
		if more := len(read) - len(slices.DeleteFunc(slices.Clone(read), func(e event.Stored) bool { return !want(e) })); more > 0 {
			require.LessOrEqual(rt, more, int((upTo-after)/section), "one in each section")
		}
	})
}
