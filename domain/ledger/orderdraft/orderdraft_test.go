package orderdraft_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/ordertext"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

// own is a value of the sender a1.
func own(text string) event.Personal { return orderdraft.Senders.Personal("a1", text) }

func TestReceive(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, orderdraft.Kind)
	none.Case("a message becomes a draft with what was read").
		When(orderdraft.Receive{
			Sender: "a1", Phone: "919812345678", Raw: "slip 7\npayal 250 gm", First: 5, Reply: true, Parser: orderdraft.Rules, Clients: clients,
			Read: ordertext.Order{Unused: []string{"urgent!"},
				Entries: []ordertext.Entry{{Item: "payal", Weight: 250_000, Client: "ramesh jewelers", Slip: "7", Confidence: 80}}},
		}).
		Then(orderdraft.Received{
			Sender: "a1", Phone: orderdraft.Senders.Personal("a1", "919812345678"), Raw: orderdraft.Senders.Personal("a1", "slip 7\npayal 250 gm"),
			Reply:  true,
			Unused: own(`["\"urgent!\" was not used"]`),
			Entries: []orderdraft.Entry{{
				ID: 5, Item: own("payal"), Weight: new(unit.Grams(250_000)), Client: own("ramesh jewelers"), Slip: new("7"), Parser: "rules",
				Confidence: 80_000,
				Proposals:  []orderdraft.Proposal{{ClientID: 3, Name: "Ramesh Jewellers", Confidence: 83_300}},
			}},
		})
	none.Case("a message without an order becomes a draft without entries").
		When(orderdraft.Receive{Sender: "a1", Raw: "hello"}).
		Then(orderdraft.Received{Sender: "a1", Raw: orderdraft.Senders.Personal("a1", "hello"), Entries: []orderdraft.Entry{}})
}

var clients = []orderdraft.Client{{ID: 2, Name: "Suresh"}, {ID: 3, Name: "Ramesh Jewellers"}, {ID: 4, Name: "पायल ज्वेलर्स"}}

func TestClientsAreProposedByName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]orderdraft.Proposal{
		"RAMESH  jewellers": {{ClientID: 3, Name: "Ramesh Jewellers", Confidence: unit.Share(unit.Whole)}},
		"पायल ज्वैलर्स":     {{ClientID: 4, Name: "पायल ज्वेलर्स", Confidence: 64_700}},
		"Mahesh":            {},
		"":                  {},
		"...":               {},
	} {
		require.Equal(t, want, orderdraft.Propose(name, clients), name)
	}
	trade := []orderdraft.Client{{ID: 1, Name: "Mehta Ornaments"}, {ID: 2, Name: "Om Silver"}}
	for i, family := range []string{"Patel", "Soni", "Shah", "Rathod"} {
		trade = append(trade, orderdraft.Client{ID: int64(3 + i), Name: family + " Jewellers"})
	}
	mehta := orderdraft.Propose("Mehta Jewellers", trade)
	require.Equal(t, orderdraft.Proposal{ClientID: 1, Name: "Mehta Ornaments", Confidence: 60_000}, mehta[0], "few have the first word")
	require.Len(t, mehta, 3)
	require.Empty(t, orderdraft.Propose("Om Gems", trade), "a short word says little")
	many := make([]orderdraft.Client, 10)
	for i := range many {
		many[i] = orderdraft.Client{ID: int64(10 - i), Name: "Asha"}
	}
	require.Len(t, orderdraft.Propose("asha", many), 3)
	require.Equal(t, int64(1), orderdraft.Propose("asha", many)[0].ClientID)
}

func TestReplyAndDelete(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, orderdraft.Kind)
	none.Case("no draft, no reply").When(orderdraft.NoteReply{Status: "sent"}).ThenFails(orderdraft.ErrNotFound)
	none.Case("no draft, nothing to delete").When(orderdraft.Delete{}).ThenFails(orderdraft.ErrNotFound)

	draft := eventtest.Given(t, orderdraft.Kind, orderdraft.Received{Sender: "a1", Reply: true})
	draft.Case("the outcome of the reply is noted").
		When(orderdraft.NoteReply{Status: "sent", Text: "ok", ID: "ee4a"}).
		Then(orderdraft.Replied{Status: "sent", Text: "ok", ID: "ee4a"})
	draft.And(orderdraft.Replied{Status: "sent"}).Case("once").When(orderdraft.NoteReply{Status: "failed"}).ThenNothing()
	draft.Case("a draft is deleted").When(orderdraft.Delete{}).Then(orderdraft.Deleted{})
	draft.And(orderdraft.Deleted{}).Case("once").When(orderdraft.Delete{}).ThenFails(orderdraft.ErrNotFound)
}

func TestUserIsMetOnceWithEachPhone(t *testing.T) {
	t.Parallel()
	met := orderdraft.SenderRegistered{Sender: "a1", Phone: orderdraft.Senders.Personal("a1", "919812345678")}
	user := eventtest.Given(t, orderdraft.SenderKind)
	user.Case("the phone is noted").When(orderdraft.Meet{Sender: "a1", Phone: "919812345678"}).Then(met)
	user.And(met).Case("once").When(orderdraft.Meet{Sender: "a1", Phone: "919812345678"}).ThenNothing()
	user.And(met).Case("another phone too").When(orderdraft.Meet{Sender: "b2", Phone: "917"}).
		Then(orderdraft.SenderRegistered{Sender: "b2", Phone: orderdraft.Senders.Personal("b2", "917")})
	user.And(orderdraft.SenderErased{}).Case("who was erased stays so").When(orderdraft.Meet{Sender: "a1"}).ThenNothing()
}

func TestSenderIsErasedOnce(t *testing.T) {
	t.Parallel()
	known := eventtest.Given(t, orderdraft.SenderKind)
	known.Case("a sender is erased").When(orderdraft.EraseSender{}).Then(orderdraft.SenderErased{})
	known.And(orderdraft.SenderErased{}).Case("once").When(orderdraft.EraseSender{}).ThenNothing()
}

func TestConfirmationCountsAndSums(t *testing.T) {
	t.Parallel()
	two := []orderdraft.Entry{{Item: own("payal"), Weight: new(unit.Grams(250_500))}, {Item: own("ring"), Weight: new(unit.Grams(20_000))}}
	for text, entries := range map[string][]orderdraft.Entry{
		"Order draft 12 received: 2 items, 270.5 g. Our staff will confirm it.": two,
		"Order draft 12 received: 1 item. Our staff will confirm it.":           {{Item: own("ring")}},
		"Order draft 12 received. Our staff will confirm it.":                   nil,
	} {
		require.Equal(t, text, orderdraft.Confirmation("12", entries))
	}
}

const today = unit.Date(20_000)

// received is a draft of two entries. One names a client.
var received = orderdraft.Received{Sender: "a1", Phone: own("919812345678"), Entries: []orderdraft.Entry{
	{ID: 1, Item: own("payal"), Weight: new(unit.Grams(250_000)), Client: own("Ramesh "), Parser: "rules"},
	{ID: 2, Item: own("ring"), Quantity: new(int64(4)), Parser: "rules"},
}}

// openly opens what eventtest has sealed.
func openly(s orderdraft.State) (orderdraft.State, error) {
	all, err := event.MapSealed([]orderdraft.State{s}, func(values []*event.Sealed) error {
		for _, v := range values {
			if _, box, sealed := v.Box(); sealed {
				v.Open(strings.TrimPrefix(string(box), "not secret: "))
			}
		}
		return nil
	})
	return all[0], err
}

func TestEdit(t *testing.T) {
	t.Parallel()
	draft := eventtest.Given(t, orderdraft.Kind, received)
	draft.Case("a client becomes that of the entries without one").
		When(orderdraft.Edit{Client: patch.Set(int64(9)), ClientName: "Asha", Today: today}).
		Then(orderdraft.Edited{Client: patch.Set(int64(9)), ClientName: own("Asha")})
	draft.And(orderdraft.EntryEdited{ID: 1, ClientID: patch.Set(int64(7))},
		orderdraft.Edited{Client: patch.Set(int64(9)), ClientName: own("Asha")}).
		Case("and only of those, once").When(orderdraft.Edit{Client: patch.Set(int64(9)), ClientName: "Asha", Today: today}).ThenNothing()
	draft.Case("a phone is kept with the sender's key, notes and dates as they are").
		When(orderdraft.Edit{Phone: patch.Set("98123 45679"), Notes: patch.Set(book.Text("by Diwali")), Date: patch.Set(today),
			Delivery: patch.Set(today + 9), Today: today}).
		Then(orderdraft.Edited{
			Phone: patch.Set(orderdraft.Senders.Personal("a1", "919812345679")), Notes: patch.Set(book.Text("by Diwali")), Date: patch.Set(today),
			Delivery: patch.Set(today + 9),
		})
	draft.Case("the phone that the draft has changes nothing").When(orderdraft.Edit{Phone: patch.Set("+91 98123 45678"),
		Reveal: openly}).ThenNothing()
	unread := orderdraft.Edited{Phone: patch.Clear[event.Personal](), PhoneText: own("ask at the shop")}
	draft.Case("an unreadable phone is kept as a text").When(orderdraft.Edit{Phone: patch.Set(" ask at the shop")}).Then(unread)
	draft.And(unread).Case("once").When(orderdraft.Edit{Phone: patch.Set("ask at the shop"), Reveal: openly}).ThenNothing()
	draft.Case("what is null and has no value changes nothing").
		When(orderdraft.Edit{Client: patch.Clear[int64](), Notes: patch.Set(book.Text("")), Phone: patch.Clear[string](),
			Date: patch.Clear[unit.Date]()}).ThenNothing()
	draft.Case("all faults are reported").
		When(orderdraft.Edit{Client: patch.Set(int64(9)), Phone: patch.Set("\x00"), Date: patch.Set(today + 2), Delivery: patch.Set(today),
			Today: today}).
		ThenFails(fault.Fields(
			fault.Field{Field: "phone_number", Message: "control characters are not allowed"},
			fault.Field{Field: "client_id", Message: "there is no such client"}, fault.Field{Field: "date", Message: "must not be after tomorrow"},
			fault.Field{Field: "delivery_date", Message: "must not be before date"}))
	draft.And(orderdraft.Deleted{}).Case("a draft that ended stays as it was").When(orderdraft.Edit{}).ThenFails(orderdraft.ErrNotFound)
	draft.And(orderdraft.Converted{Orders: []orderdraft.Ordered{{ID: 1}}}).Case("so does one that was converted").When(
		orderdraft.Edit{}).ThenFails(orderdraft.ErrNotFound)
}

func TestEntries(t *testing.T) {
	t.Parallel()
	draft := eventtest.Given(t, orderdraft.Kind, received)
	draft.Case("an entry changes in what is named, and its client's name follows").
		When(orderdraft.EditEntry{ID: 2, Weight: patch.Set(unit.Grams(20_500)), Quantity: patch.Clear[int64](), ClientID: patch.Set(int64(9)),
			ClientName: "Asha", Slip: patch.Set(book.Text("12"))}).
		Then(orderdraft.EntryEdited{
			ID: 2, Weight: patch.Set(unit.Grams(20_500)), Quantity: patch.Clear[int64](), ClientID: patch.Set(int64(9)),
			Client: patch.Set(own("Asha")), Slip: patch.Set("12"),
		})
	draft.Case("the same again changes nothing").
		When(orderdraft.EditEntry{ID: 1, Item: patch.Set(book.Text("payal")), Weight: patch.Set(unit.Grams(250_000)),
			Slip: patch.Set(book.Text("")), Reveal: openly}).ThenNothing()
	for message, wrong := range map[string]orderdraft.EditEntry{
		"item_name: must not be empty":                    {ID: 1, Item: patch.Set(book.Text(""))},
		"weight: must be above 0":                         {ID: 1, Weight: patch.Set(unit.Grams(0))},
		"quantity: must be from 1 to 999999999":           {ID: 1, Quantity: patch.Set(int64(0))},
		"client_id: there is no such client":              {ID: 1, ClientID: patch.Set(int64(5))},
		"slip_number: control characters are not allowed": {ID: 1, Slip: patch.Set(book.Text("\x00"))},
	} {
		field, words, _ := strings.Cut(message, ": ")
		draft.Case(message).When(wrong).ThenFails(fault.Fields(fault.Field{Field: field, Message: words}))
	}
	draft.Case("an unknown entry is not found").When(orderdraft.EditEntry{ID: 3}).ThenFails(orderdraft.ErrNoEntry)
	draft.Case("an entry is added by staff").
		When(orderdraft.AddEntry{EditEntry: orderdraft.EditEntry{ID: 3, Item: patch.Set(book.Text("chain")), Quantity: patch.Set(int64(2))}}).
		Then(orderdraft.EntryAdded{Entry: orderdraft.Entry{
			ID: 3, Item: own("chain"), Quantity: new(int64(2)), Parser: "staff", Confidence: unit.Share(unit.Whole),
			Proposals: []orderdraft.Proposal{},
		}})
	draft.Case("an entry needs an item").When(orderdraft.AddEntry{}).ThenFails(fault.Fields(fault.Field{Field: "item_name",
		Message: "is required"}))
	draft.Case("an entry is taken away").When(orderdraft.DeleteEntry{ID: 1}).Then(orderdraft.EntryDeleted{ID: 1})
	draft.And(orderdraft.EntryDeleted{ID: 1}).Case("once").When(orderdraft.DeleteEntry{ID: 1}).ThenFails(orderdraft.ErrNoEntry)
	full := received
	full.Entries = make([]orderdraft.Entry, ordertext.MaxEntries)
	eventtest.Given(t, orderdraft.Kind, full).Case("a draft has a greatest size").
		When(orderdraft.AddEntry{EditEntry: orderdraft.EditEntry{Item: patch.Set(book.Text("one more"))}}).
		ThenFails(fault.Fields(fault.Field{Field: "item_name", Message: "a draft has at most 500 entries"}))
}

func TestSlipsAreAssignedByClientInTheOrderOfTheirFirstEntries(t *testing.T) {
	t.Parallel()
	five := orderdraft.Received{Sender: "a1", Entries: []orderdraft.Entry{
		{ID: 1, Client: own("Ramesh")}, {ID: 2}, {ID: 3, Client: own(" RAMESH ")}, {ID: 4, ClientID: new(int64(9)), Client: own("Ramesh")},
		{ID: 5, Slip: new("42")},
	}}
	draft := eventtest.Given(t, orderdraft.Kind, five)
	draft.Case("a client has one slip, the nameless one together").When(orderdraft.AssignSlips{Next: 41, Reveal: openly}).
		Then(orderdraft.SlipsAssigned{Slips: []orderdraft.Assigned{{ID: 1, Slip: "41"}, {ID: 2, Slip: "42"}, {ID: 3, Slip: "41"},
			{ID: 4, Slip: "43"}}})
	draft.And(orderdraft.SlipsAssigned{Slips: []orderdraft.Assigned{{ID: 1, Slip: "41"}, {ID: 2, Slip: "42"}, {ID: 3, Slip: "41"},
		{ID: 4, Slip: "43"}}}).
		Case("the same again changes nothing").When(orderdraft.AssignSlips{Next: 41, Reveal: openly}).ThenNothing()
}

func noClient(i int) fault.Field {
	return fault.Field{Field: fmt.Sprintf("entries[%d].client_id", i), Message: "there is no such client", ID: int64(i + 1)}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	draft := eventtest.Given(t, orderdraft.Kind, received)
	draft.Case("what an order needs is named by entry").When(orderdraft.Convert{Reveal: openly, Today: today}).ThenFails(&fault.Error{
		Kind: fault.Conflict, Detail: "Order draft is not ready", Fields: []fault.Field{
			{Field: "entries[0].client_id", Message: "is required", ID: int64(1)},
			{Field: "entries[0].slip_number", Message: "is required", ID: int64(1)},
			{Field: "entries[1].weight", Message: "is required", ID: int64(2)},
			{Field: "entries[1].client_id", Message: "is required", ID: int64(2)},
			{Field: "entries[1].slip_number", Message: "is required", ID: int64(2)},
		},
	})
	ready := draft.And(
		orderdraft.EntryEdited{ID: 1, ClientID: patch.Set(int64(9)), Slip: patch.Set("A-1")},
		orderdraft.EntryEdited{ID: 2, ClientID: patch.Set(int64(9)), Slip: patch.Set("a-1"), Weight: patch.Set(unit.Grams(8_000))},
		orderdraft.EntryAdded{Entry: orderdraft.Entry{ID: 3, Item: own("chain"), Weight: new(unit.Grams(5_000)), ClientID: new(int64(8)),
			Slip: new("A-1")}},
		orderdraft.Edited{Date: patch.Set(today - 3), Delivery: patch.Set(today + 3)},
	)
	slip := func(text book.Text) *book.Text { return &text }
	warned := []order.Warning{{Field: "slip_number", Message: "another has it", ID: 5}}
	orders := []orderdraft.Ordered{
		{ID: 100, Order: order.Order{Client: 9, Slip: slip("A-1"), Date: today - 3, Delivery: new(today + 3), Items: []order.Item{
			{ID: 50, Name: "payal", Weight: 250_000}, {ID: 51, Name: "ring", Weight: 8_000, Quantity: 4},
		}}},
		{ID: 101, Order: order.Order{Client: 8, Slip: slip("A-1"), Date: today - 3, Delivery: new(today + 3),
			Items: []order.Item{{ID: 52, Name: "chain", Weight: 5_000}}, Warnings: warned}},
	}
	convert := orderdraft.Convert{Reveal: openly, Today: today, FirstOrder: 100, FirstItem: 50, Found: func(o order.Order) []order.Warning {
		if o.Client == 8 {
			return warned
		}
		return nil
	}}
	ready.Case("a client and a slip make an order").When(convert).Then(orderdraft.Converted{Orders: orders})
	ready.Case("dates of the request win, and are checked").When(orderdraft.Convert{Reveal: openly, Delivery: new(today - 4), Today: today}).
		ThenFails(fault.Fields(fault.Field{Field: "delivery_date", Message: "must not be before date"}))
	ready.And(orderdraft.Converted{Orders: orders}).Case("once").When(orderdraft.Convert{Reveal: openly,
		Today: today}).ThenFails(orderdraft.ErrNotFound)
	draft.And(orderdraft.EntryDeleted{ID: 1},
		orderdraft.EntryDeleted{ID: 2}).Case("no entries, no orders").When(orderdraft.Convert{Reveal: openly,
		Today: today}).ThenFails(orderdraft.ErrEmpty)

	gone := map[int64]bool{9: true, 8: true}
	ready.Case("every entry whose client was deleted is named").When(orderdraft.Convert{Reveal: openly, Today: today,
		Gone: gone}).ThenFails(&fault.Error{
		Kind: fault.Conflict, Detail: "Order draft is not ready", Fields: []fault.Field{noClient(0), noClient(1), noClient(2)},
	})
	ready.Case("beside a date that is wrong").When(orderdraft.Convert{Reveal: openly, Today: today, Delivery: new(today - 4),
		Gone: map[int64]bool{8: true}}).
		ThenFails(fault.Fields(fault.Field{Field: "delivery_date", Message: "must not be before date"}, noClient(2)))
}
