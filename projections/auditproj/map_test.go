package auditproj_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
)

// post appends n events of accounts, rows and a workspace, and of streams that the map does not have.
func (r *rig) post(random *rand.Rand, n int) {
	r.t.Helper()
	for range n {
		stream, kind, data := "note-1", "Noted", `{}`
		switch row := random.IntN(40); random.IntN(5) {
		case 0:
			stream, kind = fmt.Sprintf("karigar-%d", 1+random.IntN(9)), "KarigarOpened"
		case 1, 2: // twice for some rows: the first counts
			stream, kind, data = fmt.Sprintf("bankrow-%d", row), "BankRowAdded", fmt.Sprintf(`{"account":%d}`, 1+random.IntN(9))
		case 3:
			stream, kind = fmt.Sprintf("bankrow-%d", row), "BankRowEdited"
		case 4:
			stream, kind = "period-"+uuid.Nil.String(), "PeriodClosed"
		}
		_, err := r.store.Append(r.t.Context(), eventstore.To(stream, eventstore.Any,
			event.Proposed{ID: uuid.New(), Type: kind, Data: []byte(data), Meta: []byte(`{}`)}))
		require.NoError(r.t, err)
	}
}

// mapped returns the root of the map of the log, as an auditor makes it.
func (r *rig) mapped() tlog.Hash {
	r.t.Helper()
	var a tlog.Accounts
	for e, err := range r.store.ReadAll(r.t.Context(), 0, eventstore.Forwards) {
		require.NoError(r.t, err)
		a.Add(tlog.ConcernOf(&e), tlog.LeafHash(e))
	}
	return a.Root()
}

func TestEntriesDoNotDependOnBatches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.post(rand.New(rand.NewPCG(1, 1)), 150)
	for _, way := range []struct{ size, stops int }{{1, 0}, {7, 3}, {100, 1}, {math.MaxInt, 2}} {
		differences, err := r.build().Fold(t.Context(), way.size, way.stops)
		require.NoError(t, err)
		require.Empty(t, differences, "in batches of %d, and a fill interrupted %d times", way.size, way.stops)
	}
}

func TestCheckpointsHaveTheMapOfTheLog(t *testing.T) {
	t.Parallel()
	r, s := newSignedLog(t, 3)
	random := rand.New(rand.NewPCG(2, 2))
	require.Equal(t, tlog.Hash((&tlog.Map{}).Root()), r.mapped())
	grow := func(n int) tlog.Checkpoint {
		r.post(random, n)
		r.grown()
		_, c, _ := r.signed(s)
		require.Equal(t, r.mapped(), c.Map)
		return c
	}
	for _, n := range []int{1, 40, 3, 25} {
		grow(n)
	}

	// Whatever was done to the stored nodes, a checkpoint has the right root.
	for _, damage := range []string{
		`delete from audit.map_node`,
		`update audit.map_node set hash = decode(repeat('ab', 32), 'hex') where path = '\x0000'`,
	} {
		r.exec(damage)
		grow(5)
	}
	r.exec(`update audit.map_node set hash = decode(repeat('ab', 32), 'hex') where path <> '\x0000'`)
	r.post(random, 30)
	r.grown()
	_, err := s.Sign(t.Context())
	require.ErrorIs(t, err, tlog.ErrMapBroken, "the next one makes it again")
	grow(1)
	grow(1)

	// A checkpoint of an earlier version has no map.
	r.exec(`update audit.checkpoint set note = regexp_replace(note, '\nbahi-map[^\n]*', '')`)
	r.exec(`update audit.map_node set hash = decode(repeat('cd', 32), 'hex')`)
	grow(2)
}
