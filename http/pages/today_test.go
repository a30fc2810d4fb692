package pages_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/commands/messagingcmd"
	"bahi/internal/test/apptest"
)

// waiting creates open tasks: a draft of an order, an enquiry and a message.
func waiting(o *apptest.Server) {
	o.T.Helper()
	_, _, err := ledgercmd.ReceiveDraft(o.T.Context(), commands.Request{Workspace: uuid.MustParse(apptest.Home)}, o.Sys.Books,
		ledgercmd.Message{ID: uuid.NewString(), From: "919812345678", Text: "party: ramesh\npayal 250 gm 4 pcs", At: time.Now()})
	require.NoError(o.T, err)
	agent := o.Bearer(o.Key(apptest.Home, `{"messaging":"write","marketplace":"write"}`).Key)
	var company map[string]any
	var channel struct{ ID int64 }
	agent.POST("/api/v1/companies", `{"name":"Mill"}`).Status(201).JSON(&company)
	for range 2 {
		o.Anonymous().POST("/api/v1/enquiries",
			fmt.Sprintf(`{"to_company_id":%q,"user_name":"Asha","user_email":"asha@example.com"}`, company["id"])).Status(201)
	}
	made := agent.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)
	require.NoError(o.T, json.Unmarshal([]byte(made.Text), &channel))
	ravi := messagingcmd.Sender{From: "919812345001", Name: "Ravi"}
	o.Receives(messagingcmd.InboundMessage{Channel: channel.ID, Sender: ravi, Text: "Hello?"})
}

func TestTodaySaysWhatWaits(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	book(o, o.Clerk(apptest.Home), 2)
	all := byKey(o, apptest.Home, `{"ledger":"read","messaging":"read","marketplace":"read"}`)
	require.NotContains(t, all.get("/app/").Is(200).Words(), "To do")
	waiting(o)
	all.get("/app/").Is(200).Says("To do", "Drafts to check 1", "Unread conversations 1", "New enquiries 2", "Who owes what")
	clerk := byKey(o, apptest.Home, write).get("/app/").Is(200).Says("Drafts to check 1")
	require.NotContains(t, clerk.Words(), "New enquiries")
	require.NotContains(t, clerk.Words(), "Unread")
	agent := byKey(o, apptest.Home, `{"messaging":"read"}`).get("/app/").Is(200).Says("Unread conversations 1", "You may not read the books")
	require.NotContains(t, agent.Words(), "Drafts to check")
	require.NotContains(t, byKey(o, apptest.OtherWorkspace, write).get("/app/").Is(200).Words(), "To do")

	past := all.get("/app/?as_of=2025-03-01").Is(200).Says("Earlier books 01 Mar 2025", "These are earlier books.", "₹1.00")
	require.Contains(t, past.Text, `href="/app/accounts?kind=bank&amp;as_of=2025-03-01&amp;known_at="`)
	then := all.get("/app/accounts?kind=bank&as_of=2025-03-01&known_at=").Is(200).Says("These are earlier books.", "₹1.00")
	require.Contains(t, then.Text, `?as_of=2025-03-01"`)
	require.NotContains(t, past.Words(), "Rows of today")
	require.NotContains(t, past.Words(), "To do")
	all.get("/app/").Is(200).Says("₹3.00", "Earlier books")
	all.get("/app/?known_at=never").Is(422).Says("Known at", "Earlier books")
}
