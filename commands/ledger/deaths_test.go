package ledger_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/ledger"
)

// deed is a command that one event decides. Other streams are told of it after its answer.
type deed struct {
	decides string              // how the name of the deciding event's stream begins
	do      func(n *node) error // once it decided, it may be done again only if it is repeated with a key
	undone  func()              // checks that nothing came of it
	told    func() int          // how many appends have told other streams
	done    func(n *node)       // checks what came of it, which is all there however many were told, and tells nobody
	resume  func(n *node) error // tells the rest
}

// whereverItDies does a deed again and again by a process that dies: before it decides, and after any number of the appends that tell other
// streams. Begin makes a new case for each.
func (o *office) whereverItDies(t *testing.T, appends int, begin func(left int) deed) {
	t.Helper()
	for left := range appends + 1 {
		d, mortal := begin(left), o.node(t)
		mortal.store.at(d.decides, func() error { return errCrash })
		require.ErrorIs(t, d.do(mortal), errCrash)
		d.undone()
		require.Zero(t, d.told(), "it died before it decided")

		mortal.store.left = new(left)
		require.NoError(t, d.do(mortal))
		mortal.Wait()
		require.Equal(t, left, d.told())
		d.done(mortal)
		require.Equal(t, left, d.told(), "and nothing of that was appended")

		next := o.node(t)
		require.NoError(t, d.resume(next))
		next.Wait()
		require.Equal(t, appends, d.told())
		d.done(next)
		head := o.head(t)
		require.NoError(t, resumeAll(t, next))
		require.Equal(t, head, o.head(t), "once, and nothing is unfinished")
	}
}

// resumeAll is what a process does when it starts.
func resumeAll(t *testing.T, n *node) error {
	t.Helper()
	require.NoError(t, ledger.ResumeConversions(patient(t), n.Books))
	return ledger.ResumeClosings(patient(t), n.Books)
}

// count returns how many events of these names the streams have.
func (o *office) count(t *testing.T, names []string, streams ...string) (found int) {
	t.Helper()
	for _, stream := range streams {
		for _, name := range o.names(t, stream) {
			if slices.Contains(names, name) {
				found++
			}
		}
	}
	return found
}

// streamsOf names the streams of records.
func streamsOf(kind interface{ Stream(id string) string }, ids ...int64) (streams []string) {
	for _, id := range ids {
		streams = append(streams, kind.Stream(idText(id)))
	}
	return streams
}

// numbersFrom returns the numbers of so many rows from the first on, none where that is 0.
func numbersFrom(first int64, count int) (all []int64) {
	for i := range count {
		if first > 0 {
			all = append(all, first+int64(i))
		}
	}
	return all
}
