package doctor_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/event"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/period"
	"bahi/domain/unit"
	"bahi/eventstore/tlog"
	"bahi/internal/cli/doctor"
)

// log returns a log of claims from a position on, each followed by `more` events of its transaction.
func log(t *testing.T, from event.Position, more ...int) iter.Seq2[event.Stored, error] {
	t.Helper()
	return func(yield func(event.Stored, error) bool) {
		for i, n := range more {
			e, err := claim.Email.Encode(uuid.New(), claim.Claimed{User: uuid.New()}, event.Meta{Actor: "system:shell", More: n})
			require.NoError(t, err)
			at := from + event.Position(i)
			if !yield(event.Stored{Position: at, Stream: claim.Email.Stream("k"), Type: e.Type, Data: e.Data, Meta: e.Meta}, nil) {
				return
			}
		}
	}
}

// A seal has the root of the log at its position: the tree is computed again.
func TestSealsHaveTheRootOfTheLog(t *testing.T) {
	t.Parallel()
	home := uuid.New()
	stored := func(at event.Position, stream string, e event.Proposed, err error) event.Stored {
		require.NoError(t, err)
		return event.Stored{Position: at, Stream: stream, Type: e.Type, Data: e.Data, Meta: e.Meta}
	}
	meta := event.Meta{Actor: "system:shell", Workspace: home}
	day := unit.Date(20000)
	moved, err := bookslock.Kind.Encode(uuid.New(), bookslock.Moved{To: &day}, meta)
	lock := stored(1, bookslock.Kind.Stream(home.String()), moved, err)
	var tree tlog.Tree
	tree.Append(new(tlog.Hasher).Leaf(lock))
	for name, one := range map[string]struct {
		size   uint64
		root   string
		broken bool
	}{
		"right": {1, tree.Root().String(), false}, "root": {1, new(tlog.Tree).Root().String(), true}, "size": {2, tree.Root().String(), true},
	} {
		seal := period.Seal{Digest: closing.Digest(nil), LogSize: one.size, LogRoot: one.root, Position: 1}
		closed, err := period.Kind.Encode(uuid.New(), period.Closed{Through: day, Seal: seal}, meta)
		all := []event.Stored{lock, stored(2, period.Kind.Stream(home.String()), closed, err)}
		var out strings.Builder
		err = doctor.Judge(func(yield func(event.Stored, error) bool) {
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
		}, &out)
		require.Equal(t, one.broken, errors.Is(err, doctor.ErrBroken), name+": "+out.String())
		require.Equal(t, one.broken, strings.Contains(out.String(), ": a closed period has the root of the log\n"), name)
	}
}

func TestAPartOfALogIsNotJudgedAsIfItWereWhole(t *testing.T) {
	t.Parallel()
	for said, events := range map[string]iter.Seq2[event.Stored, error]{
		"laws: the log keeps the rules between records up to position 0\n": log(t, 1),
		"laws: the log keeps the rules between records up to position 3\n": log(t, 1, 0, 1, 0),
		"laws: not checked, because the log begins at position 4\n":        log(t, 4, 0),
		"laws: the transaction after position 1 is incomplete, and not checked\n" +
			"laws: the log keeps the rules between records up to position 1\n": log(t, 1, 0, 2, 1),
	} {
		var out strings.Builder
		require.NoError(t, doctor.Judge(events, &out))
		require.Equal(t, said, out.String())
	}
}
