package messaginghttp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/internal/test/apptest"
)

// One contact has only an id at the network, another only a phone. A message with both merges them into the older contact.
func TestContactsAreMergedWhenIDAndPhoneComeTogether(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	sales := channelOf(t, c, `{"name":"Sales","type":"chat"}`)
	says := func(w messagingcmd.Sender, text string) {
		t.Helper()
		o.Receives(messagingcmd.InboundMessage{Sender: w, Channel: sales.ID, Text: text})
	}
	says(messagingcmd.Sender{UserID: "IN.7", Username: "asha"}, "Hello")
	byID := appears(t, c, "@asha")
	byPhone := made(t, c, `{"name":"Asha Mehta","phone":"919812345678","email":"asha@example.org"}`)
	c.PATCH(at(byID.ID), `{"optIn":true}`).Status(200)
	c.POST("/api/contact-lists", fmt.Sprintf(`{"name":"Retailers","contactIds":[%d]}`, byPhone.ID)).Status(201)
	says(messagingcmd.Sender{From: "919812345678", Name: "Asha"}, "It is me")

	says(messagingcmd.Sender{From: "919812345678", UserID: "IN.7", Name: "Asha"}, "Both")
	asha := appears(t, c, "919812345678")
	require.Equal(t, []any{byID.ID, "Asha Mehta", "asha@example.org", false, int64(3)},
		[]any{asha.ID, *asha.Name, *asha.Email, asha.OptIn, asha.Unread}, "the older one stays, a given name wins, consent was not of both")
	require.Len(t, asha.ListIDs, 1)
	require.Contains(t, c.GET("/api/contact-lists").Status(200).Text, `"contactCount":1`)
	talk := conversation(t, c, asha.ID, "")
	require.Len(t, talk, 3)
	for _, ask := range []string{at(byPhone.ID), at(byPhone.ID) + "/messages"} {
		require.Contains(t, c.GET(ask).Problem(404, "Contact not found").Text,
			fmt.Sprintf(`"errors":[{"field":"id","message":"The contact was merged into another one","id":%d}]`, asha.ID))
	}
	elsewhere := fmt.Sprintf(`"id":%d}]`, asha.ID)
	require.Contains(t, c.PATCH(at(byPhone.ID), `{"status":"pending"}`).Status(404).Text, elsewhere)
	require.Contains(t, c.DELETE(at(byPhone.ID)).Status(404).Text, elsewhere)
	require.Contains(t, c.POST(at(byPhone.ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":"a"}`, sales.ID)).Status(404).Text, elsewhere)
	require.NotContains(t, stranger.GET(at(byPhone.ID)).Problem(404, "Contact not found").Text, `"errors"`)

	// Later messages with either identity belong to the older contact, and so does the reply window.
	says(messagingcmd.Sender{From: "919812345678"}, "By phone")
	says(messagingcmd.Sender{UserID: "IN.7"}, "By id")
	require.Len(t, conversation(t, c, asha.ID, ""), 5)
	c.POST("/api/chat/send", text("919812345678", sales.ID)).Status(200)
	c.POST(at(asha.ID)+"/read", fmt.Sprintf(`{"messageId":%q}`, talk[1].ID)).Status(200)
	c.POST(at(asha.ID)+"/read", `{}`).Status(200).Body(`{"unread":0}`)
	require.Len(t, people(t, c, ""), 1)

	// Another phone, or another id at the network, belongs to another person.
	says(messagingcmd.Sender{UserID: "IN.8", From: "919812345678"}, "A new owner of the phone")
	says(messagingcmd.Sender{UserID: "IN.7", From: "919812345679"}, "Another phone of an id")
	require.Len(t, people(t, c, ""), 1)

	// Both identities are erased together.
	c.DELETE(at(asha.ID)).Status(204)
	forgotten(t, o, fmt.Sprintf("messagingcontact-%d", asha.ID), fmt.Sprintf("messagingcontact-%d", byPhone.ID))
}

func TestAContactLearnsThePhone(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	for _, w := range []messagingcmd.Sender{{UserID: "IN.70", Username: "learner"}, {UserID: "IN.70", From: "919812345670"}} {
		o.Receives(messagingcmd.InboundMessage{Sender: w, Channel: sales.ID, Text: "Hi"})
	}
	require.Equal(t, "919812345670", *appears(t, c, "@learner").Phone)
}
