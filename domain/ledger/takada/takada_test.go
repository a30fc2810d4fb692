package takada_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/takada"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

const today unit.Date = 20000

func piece(karigar *int64) takada.Item {
	return takada.Item{Name: "payal", Weight: 4_250, Karigar: karigar, Quantity: 2}
}

func of(items ...takada.Item) takada.Takada {
	return takada.Takada{Order: 5, Date: today, Items: items}
}

var added = takada.Added{Takada: of(piece(new(int64(7))), piece(nil))}

func TestAdd(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, takada.Kind)
	none.Case("it is added").When(takada.Add{Takada: added.Takada, Today: today, Look: look(one)}).Then(added)
	none.Case("all that is wrong is told").
		When(takada.Add{Takada: takada.Takada{Order: 5, Date: today + 2, Items: []takada.Item{{Weight: -1}}}, Today: today, Look: look(one)}).
		ThenFails(eventtest.Faults("date", "must not be after tomorrow", "items[0].item_name", "must not be empty",
			"items[0].weight", "must be above 0"))
	maker := int64(8)
	none.Case("so are ids that nobody has").
		When(takada.Add{
			Takada: takada.Takada{Order: 5, Date: today + 2, Items: []takada.Item{{Name: "ring", Weight: -1, Karigar: &maker}}}, Today: today,
			Look: look(nil),
		}).
		ThenFails(eventtest.Faults("date", "must not be after tomorrow", "items[0].weight", "must be above 0",
			"client_order_id", "there is no such order",
			"items[0].karigar_id", "there is no such karigar"))
	none.Case("it has items").When(takada.Add{Takada: of(), Today: today, Look: look(one)}).
		ThenFails(eventtest.Faults("items", "at least one is needed"))
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, takada.Kind, added)
	given.Case("what it is already changes nothing").
		When(takada.Edit{Order: patch.Set[int64](5), Date: patch.Set(today), Items: patch.Set(slices.Clone(added.Items)), Today: today,
			Look: look(one)}).ThenNothing()
	given.Case("a karigar is taken away").
		When(takada.Edit{Items: patch.Set([]takada.Item{piece(nil), piece(nil)}), Today: today, Look: look(one)}).
		Then(takada.Edited{Items: patch.Set([]takada.Item{piece(nil), piece(nil)})})
	given.Case("it moves to another order and day").
		When(takada.Edit{Order: patch.Set[int64](6), Date: patch.Set(today - 1), Today: today, Look: look(one)}).
		Then(takada.Edited{Order: patch.Set[int64](6), Date: patch.Set(today - 1)})
	given.Case("the whole of it is checked").
		When(takada.Edit{Date: patch.Set(today + 2), Items: patch.Set([]takada.Item{}), Today: today, Look: look(one)}).
		ThenFails(eventtest.Faults("date", "must not be after tomorrow", "items", "at least one is needed"))
	eventtest.Given(t, takada.Kind).Case("there is none").When(takada.Edit{Look: look(one)}).ThenFails(takada.ErrNotFound)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, takada.Kind, added)
	given.Case("it ends").When(takada.Delete{}).Then(takada.Deleted{})
	given.And(takada.Deleted{}).Case("once").When(takada.Delete{}).ThenFails(takada.ErrNotFound)
}

// one has two orders of one client.
var one = map[int64]int64{5: 1, 6: 1}

// look finds some orders, with their clients, and one karigar, 7.
func look(clients map[int64]int64) takada.Look {
	return takada.Look{
		Order:   func(order int64) (int64, error) { return clients[order], nil },
		Karigar: func(karigar int64) (bool, error) { return karigar == 7, nil },
	}
}

func TestATakadaNeedsItsOrderAndItsKarigars(t *testing.T) {
	t.Parallel()
	none, given := eventtest.Given(t, takada.Kind), eventtest.Given(t, takada.Kind, added)
	unknown := []takada.Item{piece(nil), piece(new(int64(8)))}
	none.Case("of no order").When(takada.Add{Takada: added.Takada, Today: today, Look: look(nil)}).
		ThenFails(eventtest.Faults("client_order_id", "there is no such order"))
	none.Case("of nothing that there is").When(takada.Add{Takada: of(unknown...), Today: today, Look: look(nil)}).
		ThenFails(eventtest.Faults("client_order_id", "there is no such order", "items[1].karigar_id", "there is no such karigar"))
	move := takada.Edit{Order: patch.Set[int64](6), Today: today, Look: look(map[int64]int64{5: 1, 6: 2})}
	given.Case("to another client's order").When(move).ThenFails(takada.ErrOtherClient)
	move.Date = patch.Set(today + 2)
	given.Case("what is wrong comes first").When(move).ThenFails(eventtest.Faults("date", "must not be after tomorrow"))
	given.Case("of an unknown karigar").When(takada.Edit{Items: patch.Set(unknown), Today: today, Look: look(one)}).
		ThenFails(eventtest.Faults("items[1].karigar_id", "there is no such karigar"))
	nobody := look(one)
	nobody.Karigar = func(int64) (bool, error) { return false, nil }
	given.Case("a karigar who was deleted since does not matter").When(takada.Edit{Date: patch.Set(today - 1), Today: today, Look: nobody}).
		Then(takada.Edited{Date: patch.Set(today - 1)})

	errAway := errors.New("away")
	away := look(one)
	away.Order = func(int64) (int64, error) { return 0, errAway }
	none.Case("nobody knows the order").When(takada.Add{Takada: added.Takada, Today: today, Look: away}).ThenFails(errAway)
	away = look(one)
	away.Karigar = func(int64) (bool, error) { return true, errAway }
	none.Case("nobody knows the karigar").When(takada.Add{Takada: added.Takada, Today: today, Look: away}).ThenFails(errAway)
}

func TestWithoutDeletedKarigars(t *testing.T) {
	t.Parallel()
	whole := added.Takada
	require.Equal(t, []int64{7}, of(piece(new(int64(7))), piece(new(int64(7))), piece(nil)).Karigars())
	require.Equal(t, of(piece(nil), piece(nil)), whole.Without(func(karigar int64) bool { return karigar == 7 }))
	require.NotNil(t, whole.Items[0].Karigar, "the takada itself keeps them")
	require.Equal(t, unit.Grams(8_500), whole.Weight())
}
