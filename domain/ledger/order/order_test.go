package order_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

const today unit.Date = 20000

func slip(text string) *book.Text { return new(book.Text(text)) }

func piece(id int64, name string) order.Item {
	return order.Item{ID: id, Name: book.Text(name), Weight: 10_500, MakingCharge: 25_000}
}

func ordered(items ...order.Item) order.Order {
	return order.Order{Client: 7, Slip: slip("12"), Date: today, Items: items}
}

var added = order.Added{Order: ordered(piece(1, "payal"), piece(2, "ring"))}

func TestAdd(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, order.Kind)
	none.Case("new items get ids, whatever they had").
		When(order.Add{Order: ordered(piece(0, "payal"), piece(77, "ring")), Today: today, FirstItem: 1}).Then(added)
	none.Case("an empty slip number is none, and a dry run gives no ids").
		When(order.Add{Order: order.Order{Client: 7, Slip: slip(""), Date: today + 1, Delivery: new(today + 1),
			Items: []order.Item{piece(0, "ring")}}, Today: today}).
		Then(order.Added{Order: order.Order{Client: 7, Date: today + 1, Delivery: new(today + 1), Items: []order.Item{piece(0, "ring")}}})
	warned := []order.Warning{{Field: "slip_number", Message: "taken", ID: 3}}
	none.Case("warnings are stored, and never the client's own").
		When(order.Add{Order: order.Order{Client: 7, Date: today, Items: []order.Item{piece(0, "ring")}, Warnings: []order.Warning{{ID: 9}}},
			Today: today, Found: warned}).
		Then(order.Added{Order: order.Order{Client: 7, Date: today, Items: []order.Item{piece(0, "ring")}, Warnings: warned}})
	none.Case("all that is wrong is told").
		When(order.Add{Today: today, Order: order.Order{
			Client: 7, Slip: slip("12345678901234567890123456789012345678901"), Date: today + 2, Delivery: new(today),
			Items: []order.Item{{MakingCharge: -1, Quantity: -1}, piece(0, "a\x00b")},
		}}).
		ThenFails(eventtest.Faults(
			"slip_number", "at most 40 characters", "date", "must not be after tomorrow", "delivery_date", "must not be before date",
			"items[0].item_name", "must not be empty", "items[0].weight", "must be above 0", "items[0].quantity", "must be above 0",
			"items[0].making_charge", "must not be negative", "items[1].item_name", "control characters are not allowed",
		))
	none.Case("an order has items").When(order.Add{Order: ordered(), Today: today}).
		ThenFails(eventtest.Faults("items", "at least one is needed"))
	none.Case("and not too many").When(order.Add{Order: ordered(make([]order.Item, 501)...), Today: today}).
		ThenFails(tooMany())
}

func tooMany() error {
	faults := []fault.Field{{Field: "items", Message: "at most 500"}}
	for i := range 501 {
		faults = append(faults, order.CheckPiece(fmt.Sprintf("items[%d].", i), "", 0, 0)...)
	}
	return fault.Fields(faults...)
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, order.Kind, added)
	same := order.Edit{
		Client: patch.Set[int64](7), Slip: patch.Set(book.Text("12")), Date: patch.Set(today), Delivery: patch.Clear[unit.Date](),
		Items: patch.Set([]order.Item{piece(1, "payal"), piece(2, "ring")}), Today: today, FirstItem: 5,
	}
	given.Case("what it is already changes nothing").When(same).ThenNothing()
	given.Case("nor does nothing").When(order.Edit{}).ThenNothing()
	given.Case("null takes a slip number away, and so does an empty one").
		When(order.Edit{Slip: patch.Set(book.Text("")), Today: today}).Then(order.Edited{Slip: patch.Clear[book.Text]()})
	given.Case("an item with a known id keeps it, others are new").
		When(order.Edit{Items: patch.Set([]order.Item{piece(2, "rings"), piece(0, "chain")}), Today: today, FirstItem: 5}).
		Then(order.Edited{Items: patch.Set([]order.Item{piece(2, "rings"), piece(6, "chain")})})
	given.Case("an unknown or repeated id is refused, with all else").
		When(order.Edit{
			Items: patch.Set([]order.Item{piece(3, "x"), piece(2, "x"), piece(2, "y")}), Delivery: patch.Set(today - 1), Today: today,
		}).
		ThenFails(eventtest.Faults("items[0].id", "the order has no such item", "items[2].id", "must be given once", "delivery_date",
			"must not be before date"))
	given.Case("the date may not pass the delivery's").
		When(order.Edit{Delivery: patch.Set(today), Date: patch.Set(today + 1), Today: today}).ThenFails(eventtest.Faults("delivery_date",
		"must not be before date"))
	warned := []order.Warning{{Field: "slip_number", Message: "taken", ID: 3}}
	given.Case("another slip number gets its own warnings").
		When(order.Edit{Slip: patch.Set(book.Text("13")), Today: today, Found: warned}).
		Then(order.Edited{Slip: patch.Set(book.Text("13")), Warnings: patch.Set(warned)})
	given.Case("another delivery date leaves them").
		When(order.Edit{Delivery: patch.Set(today + 9), Today: today, Found: warned}).Then(order.Edited{Delivery: patch.Set(today + 9)})
	given.Case("another client needs an order without takadas").
		When(order.Edit{Client: patch.Set[int64](8), Today: today, Takadas: 1}).ThenFails(order.ErrHasTakadas)
	given.Case("which it may be").
		When(order.Edit{Client: patch.Set[int64](8), Today: today}).Then(order.Edited{Client: patch.Set[int64](8)})
	eventtest.Given(t, order.Kind).Case("there is none").When(order.Edit{}).ThenFails(order.ErrNotFound)
	given.And(order.Deleted{}).Case("it was deleted").When(order.Edit{}).ThenFails(order.ErrNotFound)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, order.Kind, added)
	given.Case("it ends").When(order.Delete{}).Then(order.Deleted{})
	given.And(order.Deleted{}).Case("once").When(order.Delete{}).ThenFails(order.ErrNotFound)
	require.False(t, given.And(order.Deleted{}).State().Exists())
}

func TestAnOrderNeedsAnOpenClient(t *testing.T) {
	t.Parallel()
	open := func(clients ...int64) order.IsOpen {
		return func(id int64) (bool, error) { return slices.Contains(clients, id), nil }
	}
	unknown := eventtest.Faults("client_id", "there is no such client")
	none, given := eventtest.Given(t, order.Kind), eventtest.Given(t, order.Kind, added)
	add := order.Add{Order: added.Order, Today: today, FirstItem: 1, IsOpen: open(7)}
	none.Case("of an open client").When(add).Then(added)
	add.IsOpen = open()
	none.Case("of no client").When(add).ThenFails(unknown)
	edit := order.Edit{Client: patch.Set[int64](8), Today: today, IsOpen: open(8)}
	given.Case("to another one").When(edit).Then(order.Edited{Client: patch.Set[int64](8)})
	edit.IsOpen = open(7)
	given.Case("to none").When(edit).ThenFails(unknown)
	errAway := errors.New("away")
	edit.IsOpen = func(int64) (bool, error) { return false, errAway }
	given.Case("nobody knows").When(edit).ThenFails(errAway)
}

func TestTakadasOfAnOrderAreCounted(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, order.TakadasKind)
	none.Case("one comes").When(order.Attach{Takada: 3}).Then(order.TakadaAttached{Takada: 3})
	given := none.And(order.TakadaAttached{Takada: 3}, order.TakadaAttached{Takada: 4})
	given.Case("one goes").When(order.Detach{Takada: 3}).Then(order.TakadaDetached{Takada: 3})
	require.Equal(t, order.Takadas(1), given.And(order.TakadaDetached{Takada: 3}).State())
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		total, delivered unit.Grams
		status           string
	}{{10, 0, order.Open}, {0, 0, order.Open}, {0, 5, order.Open}, {10, 1, order.Partial}, {10, 10, order.Delivered},
		{10, 11, order.Delivered}} {
		require.Equal(t, c.status, order.Status(c.total, c.delivered), c)
	}
}

func TestSlipsAreComparedFolded(t *testing.T) {
	t.Parallel()
	require.Equal(t, order.NormalisedSlip(slip(" AB-12 ")), order.NormalisedSlip(slip("ab-12")))
	require.Empty(t, order.NormalisedSlip(nil))
}
