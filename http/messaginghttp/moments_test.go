package messaginghttp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/domain/messaging/network"
)

// Calls are handled at once, in any order. A conversation has the order of their arrival.
func TestMessagesOfOneSecondAreInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	second := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, n := range rand.Perm(20) {
		o.Receives(messagingcmd.InboundMessage{
			Sender: messagingcmd.Sender{From: "919812345678", Name: "Asha"}, Channel: sales.ID, Text: fmt.Sprint(n),
			SentAt: second, ArrivedAt: second.Add(time.Minute - time.Duration(n)*time.Millisecond), // the newest first
		})
	}
	talk := conversation(t, c, appears(t, c, "919812345678").ID, "")
	pages := conversation(t, c, appears(t, c, "919812345678").ID, "?limit=7")
	for len(pages) < 20 {
		pages = append(pages, conversation(t, c, appears(t, c, "919812345678").ID, "?limit=7&before="+pages[len(pages)-1].ID)...)
	}
	require.Len(t, talk, 20)
	for n := range 20 {
		require.Equal(t, []string{fmt.Sprint(n), fmt.Sprint(n)}, []string{*talk[n].Text, *pages[n].Text})
	}
	c.POST(at(appears(t, c, "919812345678").ID)+"/read", fmt.Sprintf(`{"messageId":%q}`, talk[5].ID)).Status(200).Body(`{"unread":5}`)
}

func TestAnEditIsReadForWordsOfConsent(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	heard(t, o, sales.ID, "919812345678", "w1", time.Now().Add(-time.Hour))
	asha := appears(t, c, "919812345678").ID
	c.PATCH(at(asha), `{"optIn":true}`).Status(200)
	edit := func(text string, at time.Time) {
		_, err := o.Sys.Messages.Revise(t.Context(), sales.ID, "w1", text, network.Moment{At: at, ArrivedAt: time.Now()})
		require.NoError(t, err)
	}
	edit("STOP", time.Now())
	require.False(t, appears(t, c, "919812345678").OptIn)
	edit("Start", time.Now().Add(-time.Minute))
	require.False(t, appears(t, c, "919812345678").OptIn, "that was before")
	require.Equal(t, "STOP", *conversation(t, c, asha, "")[0].Text, "an older edit does not win")
}

func TestAReactionIsNoMessage(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	begin := time.Now().Add(-time.Hour)
	heard(t, o, sales.ID, "919812345678", "w1", begin)
	asha := appears(t, c, "919812345678").ID
	c.PATCH(at(asha), `{"status":"resolved"}`).Status(200)
	n := 0
	react := func(from, emoji string) {
		n++
		o.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: from}, Channel: sales.ID, Type: "reaction", Text: emoji,
			Reacts: "w1", SentAt: begin.Add(time.Duration(n) * time.Minute)})
	}
	said := func() (all []string) {
		for _, m := range conversation(t, c, asha, "") {
			all = append(all, *m.Text)
		}
		return all
	}
	react("919812345678", "👍")
	require.Equal(t, []string{"👍", "Is it ready?"}, said())
	react("919812345678", "STOP")
	require.Equal(t, []string{"STOP", "Is it ready?"}, said(), "it has replaced the one before")
	react("919812345678", "")
	require.Equal(t, []string{"Is it ready?"}, said())
	require.Equal(t, "resolved", appears(t, c, "919812345678").Status)
	react("919812345600", "")
	require.Empty(t, people(t, c, "?search=919812345600"), "nobody becomes a contact by taking one back")
}
