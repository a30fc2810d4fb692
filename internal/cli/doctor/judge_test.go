package doctor_test

import (
	"iter"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/event"
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
