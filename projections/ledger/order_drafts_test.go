package ledger_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/orderdraft"
	"bahi/projections/ledger"
	"bahi/projections/projectiontest"
)

func TestDraftsAreShownUntilTheyEndAndTheirSendersUntilTheyAreErased(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")}
	happened := func(id string, e event.Event[orderdraft.State]) projectiontest.Event {
		return projectiontest.Happened(orderdraft.Kind, id, e, meta)
	}
	received := func(id, sender string) projectiontest.Event {
		return happened(id, orderdraft.Received{
			Sender: sender, Phone: orderdraft.Senders.Personal(sender, "91"+sender), Raw: orderdraft.Senders.Personal(sender, "payal"), Entries: []orderdraft.Entry{}, Reply: true,
		})
	}
	tables := projectiontest.Run(t, ledger.OrderDrafts,
		received("1", "a1"), received("2", "b2"), received("3", "a1"),
		happened("2", orderdraft.Replied{Status: "sent", Text: "ok"}),
		happened("3", orderdraft.Deleted{}),
		projectiontest.Happened(orderdraft.SenderKind, "a1", orderdraft.SenderErased{}, meta),
	)
	require.Equal(t, []string{`(1,,,[],0)`, `(2,91b2,payal,[],1)`},
		tables.Rows(`select id, phone_number, raw_message, entries, revision from order_draft order by id`))
	require.Equal(t, []string{`(1,,,)`, `(2,91b2,ok,sent)`, `(3,,,)`},
		tables.Rows(`select draft_id, phone_number, text, status from order_draft_reply order by draft_id`))
	require.Empty(t, tables.Examine())
}
