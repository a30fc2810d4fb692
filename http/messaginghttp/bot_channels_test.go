package messaginghttp_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/commands/messagingcmd/knowledge"
	"bahi/internal/test/pgtest"
	"bahi/readmodels/messagingview"
)

func TestOnlyAMessageThatABotMayAnswerGetsAJob(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	sales := channelOf(t, c, `{"name":"Quiet","type":"chat"}`)
	jobs := func(id string) (count int) {
		require.NoError(t, o.Sys.Pool.QueryRow(t.Context(), `select count(*) from river.river_job where kind = 'answer_message'
			and args->>'message' = $1`, id).Scan(&count))
		return count
	}
	comes := func() string {
		out := o.Receives(messagingcmd.InboundMessage{
			Sender: messagingcmd.Sender{From: "919811100027", Name: "Quiet"}, Channel: sales.ID, Text: "Are you open?",
		})
		require.Eventually(t, func() (reached bool) {
			require.NoError(t, o.Sys.Pool.QueryRow(t.Context(), `select position >= $1 from reactor.checkpoint where name = 'bots'`,
				int64(out.Position)).Scan(&reached))
			return reached
		}, time.Minute, 10*time.Millisecond)
		return out.ID
	}
	require.Zero(t, jobs(comes()))
	botOf(t, c, fmt.Sprintf(`,"channelIds":[%d]`, sales.ID))
	require.Equal(t, 1, jobs(comes()))
}

func TestABotAnswersOnChannelsOfEveryType(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	telegram, page := channelOf(t, c, `{"name":"Bot","type":"telegram","apiKey":"20:k"}`), channelOf(t, c, `{"name":"Page","type":"web"}`)
	direct, sales := channelOf(t, c, `{"name":"Direct","type":"twitter","accessToken":"t"}`), channelOf(t, c, `{"name":"Sales","type":"chat"}`)
	b := botOf(t, c, fmt.Sprintf(`,"channelIds":[%d,%d,%d,%d]`, telegram.ID, page.ID, direct.ID, sales.ID))
	f := taught(t, c, b, "We are open from 11 to 4 on Sunday.")
	longAgo := time.Now().Add(-25 * time.Hour)
	for name, a := range map[string]messagingcmd.InboundMessage{
		"Tara":  {Sender: messagingcmd.Sender{UserID: "501", Social: true}, Channel: telegram.ID, SentAt: longAgo},
		"Willa": {Sender: messagingcmd.Sender{UserID: uuid.NewString()}, Channel: page.ID, SentAt: longAgo},
		"Dipa":  {Sender: messagingcmd.Sender{UserID: "502", Social: true}, Channel: direct.ID, SentAt: longAgo},
		"Chand": {Sender: messagingcmd.Sender{From: "919811100020"}, Channel: sales.ID, SentAt: time.Now()},
	} {
		a.Name, a.Text = name, "Are you open on Sunday?"
		o.Receives(a)
		who := appears(t, c, name)
		said := replies(t, c, who.ID, 1)
		require.Equal(t, "We are open from 11 to 4 on Sunday.\n\nSource: "+f.FileName, *said[0].Text, name)
		require.Equal(t, []any{fmt.Sprintf("bot:%d", b.ID), a.Channel}, []any{said[0].By, said[0].ChannelID}, name)
		require.NotEqual(t, "failed", said[0].Status, name)
	}

	// On a chat channel a bot does not reply to a contact whose last message is a day old. A person must decide.
	o.Receives(messagingcmd.InboundMessage{
		Sender: messagingcmd.Sender{From: "919811100021", Name: "Late"}, Channel: sales.ID, Text: "Are you open on Sunday?", SentAt: longAgo,
	})
	late := eventually(t, func() string { return appears(t, c, "919811100021").Status },
		func(status string) bool { return status == "pending" })
	require.Equal(t, "pending", late)
	require.Empty(t, replies(t, c, appears(t, c, "919811100021").ID, 0))
}

func TestABotLooksOutForLoopsAndForWordsThatWantNoAnswer(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	b := botOf(t, c, fmt.Sprintf(`,"channelIds":[%d]`, sales.ID))
	taught(t, c, b, "We are open from 11 to 4 on Sunday.")
	const robot, person = "919811100022", "919811100023"
	for i, text := range []string{"STOP", "", "Open on Sunday?"} {
		writes(t, o, sales.ID, person, fmt.Sprint("silent", i), text)
	}
	require.Len(t, replies(t, c, contactOf(t, c, person).ID, 1), 1, "STOP and no text get no answer")

	// Messages from a time without a bot stay unanswered after a later message that needs no reply, and do not hide a later question.
	const early = "919811100024"
	c.PATCH(botAt(b.ID), `{"active":false}`).Status(200)
	for i := range 21 {
		writes(t, o, sales.ID, early, fmt.Sprint("early", i), "Sunday?")
	}
	c.PATCH(botAt(b.ID), `{"active":true}`).Status(200)
	writes(t, o, sales.ID, early, "stop", "STOP")
	o.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: early}, Channel: sales.ID, Type: "reaction", Text: "👍"})
	writes(t, o, sales.ID, early, "question", "Open on Sunday?")
	require.Contains(t, *replies(t, c, contactOf(t, c, early).ID, 1)[0].Text, "from 11 to 4")
	require.Len(t, replies(t, c, contactOf(t, c, early).ID, 1), 1)

	writes(t, o, sales.ID, robot, "loop", "Open on Sunday?")
	who := contactOf(t, c, robot)
	replies(t, c, who.ID, 1)
	for i := range 19 {
		answered(t, o, uuid.MustParse(o.Home), fmt.Sprintf("90%d%d", who.ID, i), b.ID, who.ID)
	}
	writes(t, o, sales.ID, robot, "loop2", "Open on Sunday?")
	eventually(t, func() string { return contactOf(t, c, robot).Status }, func(status string) bool { return status == "pending" })
	require.Len(t, replies(t, c, who.ID, 1), 1, "after 20 replies in an hour, a person is asked")
	c.PATCH(at(who.ID), `{"status":"open"}`).Status(200)
	writes(t, o, sales.ID, robot, "loop3", "Open on Sunday?")
	eventually(t, func() string { return contactOf(t, c, robot).Status }, func(status string) bool { return status == "pending" })
	require.Len(t, replies(t, c, who.ID, 1), 1)
}

// A process that dies leaves a running job and a lease that ends.
func TestAnAnswerWhoseProcessDiedIsGivenAgain(t *testing.T) {
	t.Parallel()
	o, c, sales := openSales(t)
	taught(t, c, botOf(t, c, fmt.Sprintf(`,"channelIds":[%d]`, sales.ID)), "We are open from 11 to 4 on Sunday.")
	writes(t, o, sales.ID, "919811100029", "dies", "Open on Sunday?")
	who := contactOf(t, c, "919811100029").ID
	replies(t, c, who, 1)
	const ofContact = ` where kind = 'answer_message' and args->>'contact' = $1::bigint::text`
	done := func() (count int) {
		require.NoError(t, o.Sys.Pool.QueryRow(t.Context(), `select count(*) from river.river_job`+ofContact+` and state = 'completed'`,
			who).Scan(&count))
		return count
	}
	eventually(t, done, func(count int) bool { return count == 1 })
	o.Sql(`insert into knowledge.lease (contact_id, holder, until) values ($1, gen_random_uuid(), now() - interval '1 second')`, who)
	o.Sql(`update river.river_job set state = 'running', finalized_at = null, attempted_at = now() - interval '1 minute'`+ofContact, who)
	eventually(t, done, func(count int) bool { return count == 1 })
	require.Len(t, replies(t, c, who, 1), 1, "one answer")
}

// nothing is an embedder without a model.
type nothing struct{}

func (nothing) Embeds() string { return "" }

func (nothing) Embed(context.Context, []string) ([][]float32, error) { return nil, nil }

func TestABotsKnowledgeIsReadAgainForAnotherModel(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	b := botOf(t, c, "")
	taught(t, c, b, "We are open from 11 to 4 on Sunday.")
	set := func(model any) {
		pgtest.Exec(t, o.Sys.Pool, `update knowledge.chunk set model = $2 where bot_id = $1`, b.ID, model)
	}
	set("the one before")
	store := &knowledge.Store{Pool: o.Sys.Pool, Model: nothing{}}
	outdated, err := store.Outdated(t.Context(), 100)
	require.NoError(t, err)
	require.NotEmpty(t, outdated)
	require.NoError(t, o.Sys.Knowledge().Revise(t.Context()))
	outdated, err = store.Outdated(t.Context(), 100)
	require.NoError(t, err)
	require.Empty(t, outdated)
	require.Contains(t, c.POST(botAt(b.ID, "/try"), `{"text":"Open on Sunday?"}`).Status(200).Text, "from 11 to 4")
}

func TestABotsReadingIsFollowedLive(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	b := botOf(t, c, "")
	stream := c.Stream(botAt(b.ID, "/knowledge/stream"))
	f := taught(t, c, b, "We are open from 11 to 4 on Sunday.")
	var k messagingview.Knowledge
	for k.Status != "ready" {
		name, _ := stream.Next(&k)
		require.Equal(t, []any{"knowledge", f.ID, "file"}, []any{name, k.ID, k.Type})
		require.Contains(t, []string{"processing", "ready"}, k.Status)
	}
	require.Equal(t, int64(1), k.ChunkCount)

	folder := messagingcmd.BotFolder(b.ID)
	kept, err := o.Sys.Blobs.List(t.Context(), folder)
	require.NoError(t, err)
	require.Len(t, kept, 1)
	c.DELETE(botAt(b.ID, "/files/", f.ID)).Status(204)
	require.Eventually(t, func() bool {
		kept, err := o.Sys.Blobs.List(t.Context(), folder)
		return err == nil && len(kept) == 0 // a file that is deleted during the listing is an error
	}, time.Minute, 10*time.Millisecond)
}
