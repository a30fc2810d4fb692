package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/test/interleavetest"
)

func at(revision int64, position event.Position) eventstore.Batch {
	return eventstore.Batch{Events: []event.Stored{{Stream: "s", Revision: revision, Position: position}}, UpTo: position}
}

func TestALoadThatRacesWithAnAppendLeavesNothingOldBehind(t *testing.T) {
	t.Parallel()
	c := newCache()
	load := c.begin("s")
	c.feed(at(3, 9)) // the load has read a state without this event
	c.end(load, &cached{revision: 2})
	_, ok := c.get("s")
	require.False(t, ok)

	load = c.begin("s")
	c.feed(at(3, 9))
	c.end(load, &cached{revision: 3})
	entry, ok := c.get("s")
	require.True(t, ok)
	require.EqualValues(t, 3, entry.revision)

	// Of two concurrent loads the newer state stays, whichever ends first.
	one, two := c.begin("s"), c.begin("s")
	c.end(one, &cached{revision: 5})
	c.end(two, &cached{revision: 4})
	entry, _ = c.get("s")
	require.EqualValues(t, 5, entry.revision)

	c.feed(at(5, 12))
	_, ok = c.get("s")
	require.True(t, ok, "an event that the state includes drops nothing")
	c.feed(at(6, 13))
	_, ok = c.get("s")
	require.False(t, ok)
	require.Empty(t, c.loading, "tickets go with their last holder")
}

func TestAnEndedLoadThatBroughtNothingLeavesTheCacheAsItWas(t *testing.T) {
	t.Parallel()
	c := newCache()
	c.end(c.begin("s"), &cached{revision: 1})
	c.end(c.begin("s"), nil)
	entry, ok := c.get("s")
	require.True(t, ok)
	require.EqualValues(t, 1, entry.revision)
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newCache()
	for i := range maxCached + 10 {
		c.end(c.begin(strconv.Itoa(i)), &cached{revision: 0, bytes: 1})
	}
	require.Equal(t, maxCached, c.states.Len())
	require.Equal(t, maxCached, c.bytes)
	_, ok := c.get("9")
	require.False(t, ok, "the oldest go first")
	for range 2 {
		c.end(c.begin("large"), &cached{revision: 0, bytes: maxCachedBytes / 2})
	}
	require.LessOrEqual(t, c.bytes, maxCachedBytes, "a state that replaces another counts once")
	require.Equal(t, maxCached, c.states.Len())
	c.end(c.begin("larger"), &cached{revision: 0, bytes: maxCachedBytes})
	require.Equal(t, 1, c.states.Len())
	c.end(c.begin("too large"), &cached{revision: 0, bytes: maxCachedBytes + 1})
	require.Zero(t, c.states.Len())
	require.Zero(t, c.bytes)
}

func TestStatesKnowWhatTheyWeigh(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.make(t, "1", strings.Repeat("x", 1000))
	entry, ok := n.cache.get("thing-1")
	require.True(t, ok)
	require.Equal(t, len(`{"Name":""}`)+1000, entry.bytes)
	n.cache.reset()
	_, err := Load(t.Context(), n.Cached(), things, "1")
	require.NoError(t, err)
	entry, ok = n.cache.get("thing-1")
	require.True(t, ok)
	require.Equal(t, len(`{"Name":""}`)+1000, entry.bytes)
}

func TestWhatWasLoadedBeforeTheLogWasFollowedIsForgotten(t *testing.T) {
	t.Parallel()
	log := interleavetest.NewLog()
	a, b := idle(log).follow(t), idle(log)
	a.make(t, "1", "x")
	a.make(t, "2", "x")
	_, err := Load(t.Context(), b.Cached(), things, "1")
	require.NoError(t, err)
	loading := b.cache.begin("thing-2") // it has read revision 0, and is about to be put
	for _, id := range []string{"1", "2"} {
		_, err := Handle(t.Context(), a.Handler, as(t), things, id, nameThing{Name: "y"})
		require.NoError(t, err)
	}
	b.follow(t)
	b.cache.end(loading, &cached{loaded: Loaded[thing]{State: thing{Name: "x"}}})
	for _, id := range []string{"1", "2"} {
		l, err := Load(t.Context(), b.Cached(), things, id)
		require.NoError(t, err)
		require.Equal(t, "y", l.State.Name)
	}
}

func TestFollowingGoesOnAfterItsSubscriptionBroke(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	a, b := all[0], all[1]
	a.make(t, "1", "x")
	b.catchUp()
	_, err := Load(t.Context(), b.Cached(), things, "1")
	require.NoError(t, err)
	b.store.broken.Store(true)
	for i := range 3 {
		_, err = Handle(t.Context(), a.Handler, as(t), things, "1", nameThing{Name: strconv.Itoa(i)})
		require.NoError(t, err)
	}
	b.catchUp()
	l, err := Load(t.Context(), b.Cached(), things, "1")
	require.NoError(t, err)
	require.Equal(t, "2", l.State.Name)
	require.False(t, b.store.broken.Load())
}

func TestACommandIsNotDecidedOnWhatTheLogHasLost(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.make(t, "1", "x")
	_, err := Handle(t.Context(), n.Handler, as(t), things, "1", nameThing{Name: "y"})
	require.NoError(t, err)
	n.make(t, "2", "x")
	n.catchUp()
	n.store.Lose(2)
	n.catchUp()
	out, err := Handle(t.Context(), n.Handler, as(t), things, "1", nameThing{Name: "y"})
	require.NoError(t, err)
	require.True(t, out.Changed, "it is named once more")
	n.make(t, "2", "z")
	require.Equal(t, []string{"ThingMade", "ThingNamed", "ThingMade"}, n.log(t))
}

// Subscribers to the log may detect the loss later.
func TestAnAppendThatIsGivenALostEventsPositionMakesWhatWasKnownForgotten(t *testing.T) {
	t.Parallel()
	n := nodes(t, 1)[0]
	n.make(t, "1", "x")
	_, err := Handle(t.Context(), n.Handler, as(t), things, "1", nameThing{Name: "y"})
	require.NoError(t, err)
	n.catchUp()
	fed := n.cache.newest().position
	n.store.Lose(1)
	e, err := things.Encode(newEventID(), made{Name: "z"}, event.Meta{})
	require.NoError(t, err)
	done, err := n.append(t.Context(), eventstore.To("thing-2", eventstore.NoStream, e))
	require.NoError(t, err)
	require.Equal(t, fed, done.Position)
	l, err := Load(t.Context(), n.Cached(), things, "1")
	require.NoError(t, err)
	require.Equal(t, "x", l.State.Name)
	require.Less(t, n.cache.newest().position, done.Position)
}

// The other process gives a stream its revision again, with another event.
func TestACommandThatHasReadALostEventDecidesAgain(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	n, other := all[0], all[1]
	n.make(t, "1", "x")
	n.make(t, "2", "lost")
	n.catchUp()
	tries := 0
	_, err := Do(t.Context(), n.Handler, as(t), things, func(ctx context.Context, tx *Tx) error {
		read, err := Load(ctx, tx, things, "2")
		if tries++; tries == 1 {
			n.store.Lose(1)
			other.make(t, "2", "new")
		}
		if err == nil {
			_, err = Decide(ctx, tx, things, "1", nameThing{Name: "sees " + read.State.Name})
		}
		return err
	})
	require.NoError(t, err)
	l, err := Load(t.Context(), n.Fresh(), things, "1")
	require.NoError(t, err)
	require.Equal(t, "sees new", l.State.Name)
}

// lossyVault uses the version of the keys that is in memory, although the database may have lost it.
type lossyVault struct {
	sum

	stored, known *atomic.Int64
}

func (v lossyVault) HMAC(ctx context.Context, name string, parts ...[]byte) ([]byte, error) {
	return v.sum.HMAC(ctx, fmt.Sprint(name, v.known.Load()), parts...)
}

func (v lossyVault) ForgetNamed() { v.known.Store(v.stored.Load()) }

func TestARequestHasOneEffectAfterTheKeyOfItsHashIsLost(t *testing.T) {
	t.Parallel()
	log, stored := interleavetest.NewLog(), new(atomic.Int64)
	all := []*node{idle(log), idle(log)}
	for _, n := range all {
		n.vault = lossyVault{stored: stored, known: new(atomic.Int64)}
		n.follow(t)
	}
	all[0].make(t, "1", "x")
	all[0].make(t, "2", "lost")
	all[0].catchUp()
	all[0].store.Lose(1)
	stored.Add(1) // another node has made the key again
	all[1].vault.ForgetNamed()
	for _, n := range []*node{all[0], all[1], all[0]} {
		_, err := Handle(t.Context(), n.Handler, as(t, keyed("k", "x")), things, "1", nameThing{Name: uuid.NewString()})
		require.NoError(t, err)
	}
	l, err := Load(t.Context(), all[0].Fresh(), things, "1")
	require.NoError(t, err)
	require.EqualValues(t, 1, l.Revision)
}

func TestNumbersWhoseReservationTheLogHasLostAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	a, b := all[0], all[1]
	var given []int64
	take := func(n *node) {
		first, err := n.Numbers(t.Context(), "row", 1)
		require.NoError(t, err)
		given = append(given, first)
	}
	take(a)
	take(b)
	for _, n := range all {
		n.catchUp()
	}
	a.store.Lose(1)
	for _, n := range all {
		n.catchUp()
	}
	for range 3 {
		take(a)
		take(idle(a.store.Log)) // which has no events beyond the log
		take(b)
	}
	reserved := a.reservations(t)
	for _, n := range given[2:] {
		require.Greater(t, n, int64(16), "the numbers given to b are in use")
		covered := 0
		for _, r := range reserved {
			if r.First <= n && n <= r.Last {
				covered++
			}
		}
		require.Equal(t, 1, covered, "the log knows that %d was given", n)
	}
	slices.Sort(given)
	require.Len(t, slices.Compact(slices.Clone(given)), len(given), "none twice: %v", given)
}
