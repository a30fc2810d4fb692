package ledgerproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/projectiontest"
	"bahi/projections/ledgerproj"
)

func TestDraftsAreShownUntilTheyEndAndTheirSendersUntilTheyAreErased(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")}
	happened := func(id string, e event.Event[orderdraft.State]) projectiontest.Event {
		return projectiontest.Happened(orderdraft.Kind, id, e, meta)
	}
	received := func(id, sender string) projectiontest.Event {
		return happened(id, orderdraft.Received{
			Sender: sender, Phone: orderdraft.Senders.Personal(sender, "91"+sender), Raw: orderdraft.Senders.Personal(sender, "payal"), Reply: true,
			Unused: orderdraft.Senders.Personal(sender, `["soon"]`), Entries: []orderdraft.Entry{},
		})
	}
	entry := func(id int64, sender, item string) orderdraft.Entry {
		return orderdraft.Entry{ID: id, Item: orderdraft.Senders.Personal(sender, item), Client: orderdraft.Senders.Personal(sender, "Mira"),
			Weight: new(unit.Grams(2_500)), Slip: new("7"), Parser: "rules", Confidence: 80_000, Proposals: []orderdraft.Proposal{}}
	}
	tables := projectiontest.Run(t, ledgerproj.OrderDrafts,
		received("1", "a1"), received("2", "b2"), received("3", "a1"),
		happened("2", orderdraft.Replied{Status: "sent", Text: "ok"}),
		happened("3", orderdraft.EntryAdded{Entry: entry(9, "a1", "gone")}),
		happened("3", orderdraft.Deleted{}),
		happened("1", orderdraft.EntryAdded{Entry: entry(4, "a1", "nath")}),
		happened("2", orderdraft.EntryAdded{Entry: entry(5, "b2", "ring")}),
		happened("2", orderdraft.EntryAdded{Entry: entry(6, "b2", "chain")}),
		happened("2", orderdraft.EntryAdded{Entry: entry(7, "b2", "payal")}),
		happened("2", orderdraft.EntryEdited{ID: 6, Weight: patch.Clear[unit.Grams](), Quantity: patch.Set(int64(4)),
			ClientID: patch.Set(int64(3)), Client: patch.Set(orderdraft.Senders.Personal("b2", "Asha"))}),
		happened("2", orderdraft.EntryDeleted{ID: 7}),
		happened("2", orderdraft.Edited{
			Client: patch.Set(int64(8)), ClientName: orderdraft.Senders.Personal("b2", "Ravi"), Date: patch.Set(unit.Date(20_000)),
			Notes: patch.Set(book.Text("soon")),
			Phone: patch.Set(orderdraft.Senders.Personal("b2", "91777")),
		}),
		happened("2", orderdraft.Edited{Notes: patch.Clear[book.Text]()}),
		happened("2", orderdraft.SlipsAssigned{Slips: []orderdraft.Assigned{{ID: 5, Slip: "41"}}}),
		received("4", "b2"), happened("4", orderdraft.Converted{Orders: []orderdraft.Ordered{{ID: 1}}}),
		projectiontest.Happened(orderdraft.SenderKind, "a1", orderdraft.SenderErased{}, meta),
	)
	require.Equal(t, []string{`(1,,,,,,,1)`, `(2,91777,payal,"[""soon""]",8,2024-10-04,,9)`},
		tables.Rows(`select id, phone_number, raw_message, warnings, client_id, date, notes, revision from order_draft order by id`))
	require.Equal(t, []string{`(4,,2500,,,,7,80000,[])`, `(5,ring,2500,,8,Ravi,41,80000,[])`, `(6,chain,,4,3,Asha,7,80000,[])`},
		tables.Rows(`select id, item_name, weight_mg, quantity, client_id, client_name, slip_number, confidence, proposals from order_draft_entry
			order by id`))
	require.Equal(t, []string{`(1,,,)`, `(2,91b2,ok,sent)`, `(3,,,)`, `(4,91b2,,)`},
		tables.Rows(`select draft_id, phone_number, text, status from order_draft_reply order by draft_id`))
}
