package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/eventstore"
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
				tail.heard(event.Position(len(log)))
				unheard = false
			},
			"an old notice arrives": func(*rapid.T) { tail.heard(event.Position(rapid.IntRange(1, len(log)+1).Draw(t, "head")) - 1) },
			"the head is unknown": func(*rapid.T) {
				tail.heard(0)
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
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the connection is discarded
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
	require.EqualValues(t, 3, of.told())
	wakes("the same end", false)
	of.heard(5)
	wakes("a notice of events that are not there", true)
	of.head = 3
	_, err = conn.Exec(t.Context(), `update log.event set id = gen_random_uuid() where position = 3`)
	require.NoError(t, err)
	wakes("another event at the end", true)
	wakes("the same end again", false)
	_, err = conn.Exec(t.Context(), `delete from log.event where position = 3`)
	require.NoError(t, err)
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
