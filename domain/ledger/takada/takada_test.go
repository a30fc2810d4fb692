package takada_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/domain/patch"
	"bahi/domain/unit"
)

const today unit.Date = 20000

func piece(karigar *int64) takada.Item {
	return takada.Item{Name: "payal", Weight: 4_250, Karigar: karigar, Quantity: 2}
}

func of(items ...takada.Item) takada.Takada {
	return takada.Takada{Order: 5, Date: today, Items: items}
}

var added = takada.Added{Takada: of(piece(new(int64(7))), piece(nil))}

func wrong(fields ...string) error {
	var all []fault.Field
	for i := 0; i < len(fields); i += 2 {
		all = append(all, fault.Field{Field: fields[i], Message: fields[i+1]})
	}
	return fault.Fields(all...)
}

func TestAdd(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, takada.Kind)
	none.Case("it is added").When(takada.Add{Takada: added.Takada, Today: today}).Then(added)
	none.Case("all that is wrong is told").
		When(takada.Add{Takada: takada.Takada{Order: 5, Date: today + 2, Items: []takada.Item{{Weight: -1}}}, Today: today}).
		ThenFails(wrong("date", "must not be after tomorrow", "items[0].item_name", "must not be empty", "items[0].weight", "must be above 0"))
	maker := int64(7)
	none.Case("so are ids that nobody has").
		When(takada.Add{
			Takada: takada.Takada{Order: 5, Date: today + 2, Items: []takada.Item{{Name: "ring", Weight: -1, Karigar: &maker}}}, Today: today, Look: takada.Look{
				Order: func(int64) (int64, bool, error) { return 0, false, nil }, Karigar: func(int64) (bool, error) { return false, nil },
			},
		}).
		ThenFails(wrong("date", "must not be after tomorrow", "items[0].weight", "must be above 0", "client_order_id", "there is no such order",
			"items[0].karigar_id", "there is no such karigar"))
	none.Case("it has items").When(takada.Add{Takada: of(), Today: today}).ThenFails(wrong("items", "at least one is needed"))
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, takada.Kind, added)
	given.Case("what it is already changes nothing").
		When(takada.Edit{Order: patch.Set[int64](5), Date: patch.Set(today), Items: patch.Set(slices.Clone(added.Items)), Today: today}).ThenNothing()
	given.Case("a karigar is taken away").
		When(takada.Edit{Items: patch.Set([]takada.Item{piece(nil), piece(nil)}), Today: today}).
		Then(takada.Edited{Items: patch.Set([]takada.Item{piece(nil), piece(nil)})})
	given.Case("it moves to another order and day").
		When(takada.Edit{Order: patch.Set[int64](6), Date: patch.Set(today - 1), Today: today}).
		Then(takada.Edited{Order: patch.Set[int64](6), Date: patch.Set(today - 1)})
	given.Case("the whole of it is checked").
		When(takada.Edit{Date: patch.Set(today + 2), Items: patch.Set([]takada.Item{}), Today: today}).
		ThenFails(wrong("date", "must not be after tomorrow", "items", "at least one is needed"))
	eventtest.Given(t, takada.Kind).Case("there is none").When(takada.Edit{}).ThenFails(takada.ErrNotFound)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, takada.Kind, added)
	given.Case("it ends").When(takada.Delete{}).Then(takada.Deleted{})
	gone := given.And(takada.Deleted{})
	gone.Case("once").When(takada.Delete{}).ThenFails(takada.ErrNotFound)
	require.Equal(t, gone.State(), gone.And(takada.Edited{Date: patch.Set(today - 1)}, added).State(), "and stays as it was")
}

// look knows some orders, with their clients, and one karigar, 7.
func look(clients map[int64]int64, changing ...int64) takada.Look {
	return takada.Look{
		Order:   func(order int64) (int64, bool, error) { return clients[order], slices.Contains(changing, order), nil },
		Karigar: func(karigar int64) (bool, error) { return karigar == 7, nil },
	}
}

func TestATakadaNeedsItsOrderAndItsKarigars(t *testing.T) {
	t.Parallel()
	s := eventtest.Given(t, takada.Kind, added).State()
	moved := takada.Edited{Order: patch.Set[int64](6)}.Evolve(s)
	unknown := takada.Edited{Items: patch.Set([]takada.Item{piece(nil), piece(new(int64(8)))})}.Evolve(s)
	one, two := map[int64]int64{5: 1, 6: 1}, map[int64]int64{5: 1, 6: 2}

	require.NoError(t, takada.RefusesStep(takada.State{}, s, look(one)))
	require.Equal(t, wrong("client_order_id", "there is no such order"), takada.RefusesStep(takada.State{}, s, look(nil)))
	require.Equal(t, wrong("client_order_id", "there is no such order", "items[1].karigar_id", "there is no such karigar"),
		takada.RefusesStep(takada.State{}, unknown, look(nil)))
	require.Equal(t, order.ErrChanging, takada.RefusesStep(takada.State{}, s, look(one, 5)))
	require.NoError(t, takada.RefusesStep(s, moved, look(one)), "to another order of the client")
	require.Equal(t, order.ErrChanging, takada.RefusesStep(s, moved, look(one, 6)))
	require.Equal(t, takada.ErrOtherClient, takada.RefusesStep(s, moved, look(two)))
	require.Equal(t, takada.ErrNotFound, takada.RefusesStep(s, moved, look(map[int64]int64{6: 1})), "it ended with its order")
	require.Equal(t, takada.ErrNotFound, takada.RefusesStep(s, takada.Deleted{}.Evolve(s), look(nil)))
	require.NoError(t, takada.RefusesStep(s, takada.Deleted{}.Evolve(s), look(one, 5)))
	require.Equal(t, wrong("items[1].karigar_id", "there is no such karigar"), takada.RefusesStep(s, unknown, look(one)))
	dated := takada.Edited{Date: patch.Set(today - 1)}.Evolve(s)
	nobody := look(one)
	nobody.Karigar = func(int64) (bool, error) { return false, nil }
	require.NoError(t, takada.RefusesStep(s, dated, nobody), "a karigar who was deleted since does not matter")

	errAway := errors.New("away")
	away := look(one)
	away.Order = func(int64) (int64, bool, error) { return 0, false, errAway }
	require.ErrorIs(t, takada.RefusesStep(s, moved, away), errAway)
	require.ErrorIs(t, takada.RefusesStep(takada.State{}, s, away), errAway)
	away = look(one)
	away.Karigar = func(int64) (bool, error) { return true, errAway }
	require.ErrorIs(t, takada.RefusesStep(takada.State{}, s, away), errAway)
}

func TestWithoutDeletedKarigars(t *testing.T) {
	t.Parallel()
	whole := added.Takada
	require.Equal(t, []int64{7}, of(piece(new(int64(7))), piece(new(int64(7))), piece(nil)).Karigars())
	require.Equal(t, of(piece(nil), piece(nil)), whole.Without(func(karigar int64) bool { return karigar == 7 }))
	require.NotNil(t, whole.Items[0].Karigar, "the takada itself keeps them")
	require.Equal(t, unit.Grams(8_500), whole.Weight())
}
