package ledgerproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/confirmation"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/party"
	"bahi/domain/ledger/takada"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/projectiontest"
	"bahi/projections/ledgerproj"
)

func account(l *book.Ledger, id int64, workspace uuid.UUID, e event.Event[book.Account]) happened {
	return projectiontest.Happened(l.Accounts, text(id), e, event.Meta{Workspace: workspace, Actor: "user:7", Reason: "why"})
}

var staff = event.Meta{Workspace: home, Actor: "user:8"}

func ordering(id int64, e event.Event[order.State]) happened {
	return projectiontest.Happened(order.Kind, text(id), e, staff)
}

func delivering(id int64, e event.Event[takada.State]) happened {
	return projectiontest.Happened(takada.Kind, text(id), e, staff)
}

func orderOf(holder int64, weight unit.Grams) order.Added {
	return order.Added{Order: order.Order{Client: holder, Slip: new(book.Text("A1")), Date: day,
		Items: []order.Item{{ID: 1, Name: "ring", Weight: weight}}}}
}

func takadaOf(number int64, weight unit.Grams, maker *int64) takada.Added {
	return takada.Added{Takada: takada.Takada{Order: number, Date: day, Items: []takada.Item{{Name: "ring", Weight: weight, Karigar: maker}}}}
}

const (
	orderRows  = `select id, client_id, slip_folded, weight_mg, delivered_mg, takadas, revision, deleted from client_order order by id`
	takadaRows = `select id, order_id, karigars, revision, deleted from takada order by id`
)

func TestOrdersAndTakadasEndWithWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}),
		account(karigar.Ledger, 2, home, book.AccountOpened{Name: "Imran"}),
		account(client.Ledger, 3, home, book.AccountOpened{Name: "Asha"}),
		ordering(1, orderOf(1, 20_000)), // 4
		ordering(2, orderOf(1, 30_000)),
		delivering(1, takadaOf(1, 5_000, new(int64(2)))), // 6
		delivering(2, takadaOf(1, 20_000, nil)),
		delivering(2, takada.Edited{Order: patch.Set[int64](2)}),
		delivering(6, takadaOf(2, 15_000, nil)), // 9
		account(karigar.Ledger, 2, home, book.AccountDeleted{}),
		ordering(5, orderOf(3, 7_000)), // 11
		ordering(1, order.Deleted{}),
		account(client.Ledger, 1, home, book.AccountDeleted{}), // 13
	)
	require.Equal(t, []string{`(1,1,a1,20000,0,0,1,t)`, `(2,1,a1,30000,0,0,0,t)`, `(5,3,a1,7000,0,0,0,f)`}, tables.Rows(orderRows))
	require.Equal(t, []string{`(1,1,{2},0,t)`, `(2,2,{},1,t)`, `(6,2,{},0,t)`}, tables.Rows(takadaRows))
	require.Equal(t, []string{
		`(clientorder,1,4,1,0,f,user:8,)`, `(clientorder,1,12,1,1,t,user:8,)`,
		`(clientorder,2,5,1,0,f,user:8,)`, `(clientorder,2,13,1,,t,user:7,why)`,
		`(clientorder,5,11,3,0,f,user:8,)`,
		`(takada,1,6,1,0,f,user:8,)`, `(takada,1,12,1,,t,user:8,)`,
		`(takada,2,7,1,0,f,user:8,)`, `(takada,2,8,1,1,f,user:8,)`, `(takada,2,13,1,,t,user:7,why)`,
		`(takada,6,9,1,0,f,user:8,)`, `(takada,6,13,1,,t,user:7,why)`,
	}, tables.Rows(`select kind, id, position, client_id, revision, state is null, actor, reason from record_version order by kind, id,
		position`))
}

func TestOrdersOfADraftNameIt(t *testing.T) {
	t.Parallel()
	made := orderOf(1, 20_000)
	made.Draft = 7
	tables := projectiontest.Run(t, ledgerproj.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}), ordering(11, made), ordering(12, orderOf(1, 1)),
		ordering(11, order.Edited{Date: patch.Set(day + 1)}))
	require.Equal(t, []string{`(11,7)`, `(12,)`}, tables.Rows(`select id, draft_id from client_order order by id`))
}

func TestDeliveredWeightFollowsTheTakadas(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}),
		ordering(1, orderOf(1, 20_000)), ordering(2, orderOf(1, 20_000)),
		delivering(1, takadaOf(1, 5_000, nil)), delivering(2, takadaOf(1, 6_000, nil)), delivering(3, takadaOf(2, 1_000, nil)),
		delivering(2, takada.Edited{Items: patch.Set([]takada.Item{{Name: "ring", Weight: 8_000}})}),
		delivering(1, takada.Edited{Order: patch.Set[int64](2)}),
		delivering(3, takada.Deleted{}),
		ordering(1, order.Edited{Items: patch.Set([]order.Item{{ID: 2, Name: "ring", Weight: 1_500}}), Slip: patch.Clear[book.Text]()}),
	)
	require.Equal(t, []string{`(1,1,"",1500,8000,1,1,f)`, `(2,1,a1,20000,5000,1,0,f)`}, tables.Rows(orderRows))
}

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

func TestUploadsAreShownWithHowFarTheyAreRead(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: "user:7"}
	happened := func(id string, e event.Event[khata.State]) projectiontest.Event {
		return projectiontest.Happened(khata.Kind, id, e, meta)
	}
	begun := khata.Uploaded{Pipeline: "v2", Blob: "khata/a", Type: "image/png", Size: 9, Later: true}
	tables := projectiontest.Run(t, ledgerproj.Khatas,
		happened("3", begun), happened("3", khata.PageRead{Page: 1, Of: 2}),
		happened("4", begun), happened("4", khata.Failed{Reason: "broken"}),
		happened("5", begun), happened("5", khata.Read{Engine: "text", Pages: 2, Entries: 7}), happened("5", khata.Removed{}),
		happened("5", khata.Submitted{First: 10, Rows: 2}), happened("9", khata.Submitted{First: 20}),
	)
	require.Equal(t, []string{`(3,v2,processing,,2,1,0,f,0,0,user:7,1)`, `(4,v2,failed,broken,0,0,0,f,0,0,user:7,1)`,
		`(5,v2,done,,2,2,7,t,10,2,user:7,3)`},
		tables.Rows(`select id, pipeline, status, error, pages, pages_done, entry_count, removed,
			first_row, row_count, actor, revision from khata order by id`))
}

func TestConfirmationsHaveTheirPartiesAndAnswers(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: "user:7"}
	said := func(account string, e event.Event[party.State]) projectiontest.Event {
		return projectiontest.Happened(party.Kind, account, e, meta)
	}
	asked := func(e event.Event[confirmation.State]) projectiontest.Event {
		return projectiontest.Happened(confirmation.Kind, "5", e, meta)
	}
	note := event.NewPersonal("messagingcontact-21", "called")
	tables := projectiontest.Run(t, ledgerproj.Confirmations,
		said("1", party.ContactSet{Contact: new(int64(20))}), said("2", party.ContactSet{Contact: new(int64(21))}),
		said("3", party.ContactSet{Contact: new(int64(22))}), said("3", party.ContactSet{}),
		asked(confirmation.Requested{Kind: "client", AsOf: 20_000, Position: 9, Channel: 3, Template: 4, Campaign: 6}),
		asked(confirmation.PartiesListed{Parties: []confirmation.Party{
			{Ledger: "client", Account: 1, Contact: 20, Message: 30, Cash: -150050, Fine: 9500},
			{Ledger: "client", Account: 2, Contact: 21, Message: 31},
		}}),
		asked(confirmation.PartiesListed{Parties: []confirmation.Party{{Ledger: "client", Account: 3, Skipped: "no_contact"}}}),
		said("1", party.Confirmed{Answer: party.Answer{Confirmation: 5, Message: 40, Position: 9}}),
		said("2", party.Disputed{Answer: party.Answer{Confirmation: 5, Position: 9, Note: note}}),
		projectiontest.Happened(contact.Kind, "20", contact.Absorbed{Contact: 21}, meta),
		projectiontest.Happened(contact.Kind, "20", contact.Deleted{}, meta),
	)
	require.Equal(t, []string{`(1,20)`, `(2,20)`, `(3,)`}, tables.Rows(`select account_id, contact_id from party order by 1`))
	require.Equal(t, []string{`(5,client,9,3,4,6,user:7)`},
		tables.Rows(`select id, kind, position, channel_id, template_id, campaign_id, created_by from confirmation`))
	require.Equal(t, []string{
		`(1,client,20,30,,-1500.50,9.500,confirmed,40,user:7,)`, `(2,client,20,31,,0.00,0.000,disputed,,user:7,)`,
		`(3,client,,,no_contact,0.00,0.000,,,,)`,
	}, tables.Rows(`select account_id, ledger, contact_id, message_id, skipped, cash, fine, outcome, answer_id, answered_by, note
		from asked order by 1`))
}
