package order_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/patch"
	"bahi/domain/unit"
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

func wrong(fields ...string) error {
	var all []fault.Field
	for i := 0; i < len(fields); i += 2 {
		all = append(all, fault.Field{Field: fields[i], Message: fields[i+1]})
	}
	return fault.Fields(all...)
}

func TestAdd(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, order.Kind)
	none.Case("new items get ids, whatever they had").
		When(order.Add{Order: ordered(piece(0, "payal"), piece(77, "ring")), Today: today, FirstItem: 1}).Then(added)
	none.Case("an empty slip number is none, and a dry run gives no ids").
		When(order.Add{Order: order.Order{Client: 7, Slip: slip(""), Date: today + 1, Delivery: new(today + 1), Items: []order.Item{piece(0, "ring")}}, Today: today}).
		Then(order.Added{Order: order.Order{Client: 7, Date: today + 1, Delivery: new(today + 1), Items: []order.Item{piece(0, "ring")}}})
	warned := []order.Warning{{Field: "slip_number", Message: "taken", ID: 3}}
	none.Case("warnings are stored, and never the client's own").
		When(order.Add{Order: order.Order{Client: 7, Date: today, Items: []order.Item{piece(0, "ring")}, Warnings: []order.Warning{{ID: 9}}}, Today: today, Found: warned}).
		Then(order.Added{Order: order.Order{Client: 7, Date: today, Items: []order.Item{piece(0, "ring")}, Warnings: warned}})
	none.Case("all that is wrong is told").
		When(order.Add{Today: today, Order: order.Order{
			Client: 7, Slip: slip("12345678901234567890123456789012345678901"), Date: today + 2, Delivery: new(today),
			Items: []order.Item{{MakingCharge: -1, Quantity: -1}, piece(0, "a\x00b")},
		}}).
		ThenFails(wrong(
			"slip_number", "at most 40 characters", "date", "must not be after tomorrow", "delivery_date", "must not be before date",
			"items[0].item_name", "must not be empty", "items[0].weight", "must be above 0", "items[0].quantity", "must be above 0",
			"items[0].making_charge", "must not be negative", "items[1].item_name", "control characters are not allowed",
		))
	none.Case("an order has items").When(order.Add{Order: ordered(), Today: today}).ThenFails(wrong("items", "at least one is needed"))
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
		ThenFails(wrong("items[0].id", "the order has no such item", "items[2].id", "must be given once", "delivery_date", "must not be before date"))
	given.Case("the date may not pass the delivery's").
		When(order.Edit{Delivery: patch.Set(today), Date: patch.Set(today + 1), Today: today}).ThenFails(wrong("delivery_date", "must not be before date"))
	warned := []order.Warning{{Field: "slip_number", Message: "taken", ID: 3}}
	given.Case("another slip number gets its own warnings").
		When(order.Edit{Slip: patch.Set(book.Text("13")), Today: today, Found: warned}).
		Then(order.Edited{Slip: patch.Set(book.Text("13")), Warnings: patch.Set(warned)})
	given.Case("another delivery date leaves them").
		When(order.Edit{Delivery: patch.Set(today + 9), Today: today, Found: warned}).Then(order.Edited{Delivery: patch.Set(today + 9)})
	given.Case("another client needs an order without takadas").
		When(order.Edit{Client: patch.Set[int64](8), Today: today}).ThenFails(order.ErrDelivered)
	given.Case("which it may be").
		When(order.Edit{Client: patch.Set[int64](8), Today: today, Alone: true}).Then(order.Edited{Client: patch.Set[int64](8)})
	eventtest.Given(t, order.Kind).Case("there is none").When(order.Edit{}).ThenFails(order.ErrNotFound)
	given.And(order.Deleted{}).Case("it was deleted").When(order.Edit{}).ThenFails(order.ErrNotFound)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, order.Kind, added)
	given.Case("it ends").When(order.Delete{}).Then(order.Deleted{})
	given.And(order.Deleted{}).Case("once").When(order.Delete{}).ThenFails(order.ErrNotFound)
	require.Equal(t, given.And(order.Deleted{}).State(), given.And(
		order.Deleted{}, order.Edited{Slip: patch.Clear[book.Text]()}, order.ClientChangeAnnounced{}, order.ClientChangeDropped{}, added, order.Deleted{},
	).State(), "and stays as it was")
}

func TestAChangeOfTheClientIsAnnouncedAndDropped(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, order.Kind, added)
	given.Case("nothing is announced").When(order.DropClientChange{}).ThenNothing()
	given.Case("it is announced").When(order.AnnounceClientChange{}).Then(order.ClientChangeAnnounced{})
	announced := given.And(order.ClientChangeAnnounced{})
	announced.Case("again").When(order.AnnounceClientChange{}).Then(order.ClientChangeAnnounced{})
	announced.Case("and dropped").When(order.DropClientChange{}).Then(order.ClientChangeDropped{})
	announced.And(order.Edited{Client: patch.Set[int64](8)}).Case("what is done is not dropped").When(order.DropClientChange{}).ThenNothing()
	eventtest.Given(t, order.Kind).Case("of no order").When(order.AnnounceClientChange{}).ThenFails(order.ErrNotFound)
}

// whose is what State.At returns.
type whose struct {
	client   int64
	changing bool
}

func TestWhoseAnOrderWasAtAPosition(t *testing.T) {
	t.Parallel()
	s := eventtest.Given(t, order.Kind, added, order.ClientChangeAnnounced{}, order.ClientChangeDropped{}, order.ClientChangeAnnounced{},
		order.Edited{Client: patch.Set[int64](8)}, order.Deleted{}).State()
	var all []whose
	for at := range event.Position(9) {
		client, changing := s.At(at)
		all = append(all, whose{client, changing})
	}
	require.Equal(t, []whose{{}, {}, {7, false}, {7, true}, {7, false}, {7, true}, {8, false}, {}, {}}, all)
}

func TestAnOrderNeedsAnOpenClient(t *testing.T) {
	t.Parallel()
	s := eventtest.Given(t, order.Kind, added).State()
	open := func(clients ...int64) func(int64) (bool, error) {
		return func(id int64) (bool, error) { return slices.Contains(clients, id), nil }
	}
	other := order.Edited{Client: patch.Set[int64](8)}.Evolve(s)
	unknown := wrong("client_id", "there is no such client")
	require.NoError(t, order.RefusesStep(order.State{}, s, open(7)))
	require.Equal(t, unknown, order.RefusesStep(order.State{}, s, open()))
	require.NoError(t, order.RefusesStep(s, other, open(7, 8)))
	require.Equal(t, unknown, order.RefusesStep(s, other, open(7)))
	require.Equal(t, order.ErrNotFound, order.RefusesStep(s, other, open(8)), "it ended with its client")
	require.Equal(t, order.ErrNotFound, order.RefusesStep(s, order.Deleted{}.Evolve(s), open()))
	errAway := errors.New("away")
	require.ErrorIs(t, order.RefusesStep(s, s, func(int64) (bool, error) { return false, errAway }), errAway)
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		total, delivered unit.Grams
		status           string
	}{{10, 0, order.Open}, {0, 0, order.Open}, {0, 5, order.Open}, {10, 1, order.Partial}, {10, 10, order.Delivered}, {10, 11, order.Delivered}} {
		require.Equal(t, c.status, order.Status(c.total, c.delivered), c)
	}
}

func TestSlipsAreComparedFolded(t *testing.T) {
	t.Parallel()
	require.Equal(t, order.Folded(slip(" AB-12 ")), order.Folded(slip("ab-12")))
	require.Empty(t, order.Folded(nil))
}
