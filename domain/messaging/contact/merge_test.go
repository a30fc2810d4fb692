package contact_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

func TestAContactAbsorbsAnotherOne(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contact.Kind,
		contact.Added{Name: hers("+919812345678"), Phone: hers("919812345678"), PhoneKey: "k1", Source: "chat"},
		contact.Edited{OptIn: patch.Set(true)},
		contact.ListsChanged{Lists: []int64{2, 5}})
	other := contact.State{Name: contact.Subjects.Personal("12", "Asha"), Email: contact.Subjects.Personal("12", "asha@example.org"),
		Status: "open", Lists: []int64{3, 5}}
	absorb := contact.Absorb{ID: id, Contact: 12, Other: other, Name: "+919812345678"}
	absorbed := contact.Absorbed{Contact: 12, Name: hers("Asha")}
	given.Case("lists are united, consent is of both, and the better name stays").When(absorb).
		Then(absorbed, contact.Edited{OptIn: patch.Set(false), Email: patch.Set(hers("asha@example.org"))},
			contact.ListsChanged{Lists: []int64{2, 3, 5}})
	given.And(absorbed).Case("once").When(absorb).ThenNothing()
	agreed := other
	agreed.OptIn, agreed.Email, agreed.Lists = true, hers(""), nil
	given.And(contact.Edited{Name: patch.Set(hers("Asha ji"))}).Case("a name that people gave stays").When(contact.Absorb{ID: id,
		Contact: 12, Other: agreed, Name: "Asha ji"}).
		Then(contact.Absorbed{Contact: 12})
	given.Case("one that is gone is not absorbed").When(contact.Absorb{ID: id, Contact: 12}).ThenNothing()
	require.Equal(t, []int64{12}, given.And(absorbed).State().Absorbed)

	names := []string{"Guest", "+919812345678", "@asha", "Asha"}
	for i, worse := range names {
		for _, better := range names[i+1:] {
			events, err := contact.Absorb{ID: id, Contact: 12, Other: contact.State{Name: hers(better), Status: "open"},
				Name: worse}.Decide(contact.State{Status: "open"})
			require.NoError(t, err)
			require.Equal(t, contact.Absorbed{Contact: 12, Name: hers(better)}, events[0])
		}
	}
}

func TestAContactThatWasMergedIsAnotherOne(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contact.Kind, added)
	given.Case("it ends").When(contact.MergeInto{Into: 3}).Then(contact.Merged{Into: 3})
	gone := given.And(contact.Absorbed{Contact: 12}, contact.Merged{Into: 3})
	gone.Case("once").When(contact.MergeInto{Into: 4}).ThenNothing()
	gone.Case("a change of it is told where it is").When(contact.Edit{ID: id, OptIn: patch.Set(true)}).ThenFails(contact.MergedError(3))
	_, err := contact.Delete{}.Decide(gone.State())
	f, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok)
	require.ErrorIs(t, err, contact.ErrNotFound)
	require.Equal(t, []any{"id", int64(3)}, []any{f.Fields[0].Field, f.Fields[0].ID})
	require.Equal(t, []int64{12}, gone.State().Absorbed, "they are forgotten with it")
	gone.Case("it is forgotten with the other one").When(contact.Forget{}).Then(contact.Deleted{})
	gone.And(contact.Deleted{}).Case("once").When(contact.Forget{}).ThenNothing()
	given.Case("one that is there is not").When(contact.Forget{}).ThenNothing()
}
