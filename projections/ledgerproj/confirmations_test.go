package ledgerproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/confirmation"
	"bahi/domain/ledger/party"
	"bahi/domain/messaging/contact"
	"bahi/internal/test/projectiontest"
	"bahi/projections/ledgerproj"
)

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
