package messaginghttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd"
	"bahi/commands/messagingcmd/knowledge"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/readmodels/messagingview"
)

const bots = "/api/bots"

func botAt(id int64, rest ...any) string {
	return fmt.Sprintf("%s/%d", bots, id) + fmt.Sprint(rest...)
}

func botOf(t *testing.T, c *apitest.Client, more string) (b messagingview.Bot) {
	t.Helper()
	c.POST(bots, `{"name":"Asha","description":"Answers questions","systemPrompt":"Be polite."`+more+`}`).Status(201).JSON(&b)
	return b
}

func TestAUserSeesTheirOwnBotsFirst(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("bots"))
	b := botOf(t, asha.Client, "")
	require.Equal(t, asha.User.ID, *b.OwnerID)
	foreign := botOf(t, o.Bearer(o.Key(asha.Workspace, `{"messaging":"write"}`).Key), "")
	var own, all []messagingview.Bot
	asha.GET(bots).Status(200).JSON(&own)
	require.Equal(t, []messagingview.Bot{b}, own)
	asha.GET(bots + "?scope=workspace").Status(200).JSON(&all)
	require.Equal(t, []messagingview.Bot{foreign, b}, all)
}

func TestAWebhookKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	_, c := openShared(t)
	b := botOf(t, c, "")
	at := botAt(b.ID, "/webhooks")
	made := c.POST(at, `{"name":"Stock","url":"https://shop.example/stock/{sku}","method":"POST",`+
		`"description":"Tells the stock",
		"headers":{"X-Key":"hunter2"},"queryParams":{"shop":"1"},"jsonData":{"n":9007199254740993},
		"parameters":[{"name":"sku","dataType":"string","type":"path_param","source":"by_ai"},{"name":"till","dataType":"number",`+
		`"type":"post_data","source":"fixed","value":"4711"}]}`).Status(201)
	var w struct {
		ID     int64
		Secret string
	}
	require.NoError(t, json.Unmarshal([]byte(made.Text), &w))
	require.True(t, strings.HasPrefix(w.Secret, "whsec_"))
	listed := c.GET(at).Status(200)
	for _, said := range []string{
		`"headers":{"X-Key":"********"}`, `"queryParams":{"shop":"********"}`, `"jsonData":{"n":"********"}`,
		`"parameters":[{"name":"sku","dataType":"string","type":"path_param","source":"by_ai"},{"name":"till","dataType":"number",` +
			`"type":"post_data","source":"fixed","value":"********"}]`,
	} {
		require.Contains(t, listed.Text, said)
		require.Contains(t, made.Text, said)
	}
	for _, secret := range []string{"hunter2", "4711", w.Secret} {
		require.NotContains(t, listed.Text, secret)
	}
	one := fmt.Sprint(at, "/", w.ID)
	edited := c.PATCH(one, `{"active":false,"headers":{"x-key":"********","B":"b"},"jsonData":null}`).Status(200)
	require.JSONEq(t, "["+edited.Text+"]", c.GET(at).Status(200).Text, "a read says what the write said")
	c.PATCH(botAt(botOf(t, c, "").ID, "/webhooks/", w.ID), `{}`).Problem(404, "Webhook not found")
}

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

// opened creates an account with rows, and returns the path of its ledger.
func opened(c *apitest.Client, ledger, account string, rows ...string) string {
	id := apitest.Read[map[string]any](c.POST("/"+ledger, account).Status(201))["id"]
	for _, row := range rows {
		c.POST(fmt.Sprintf("/%s-ledger/%v", ledger, id), row).Status(201)
	}
	return fmt.Sprintf("/%s-ledger/%v", ledger, id)
}

// Each asked question has the beginnings of the quoted rows, after the account. An empty answer hands over.
func TestABotAnswersFromTheStatementOfEachLedger(t *testing.T) {
	t.Parallel()
	const closing = "Details: Closing balance; Balance Cash ₹: 8,500.00 you owe; Balance Fine g: 109.715 owes you"
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, `{"messaging":"write","ledger":"write"}`).Key)
	for _, l := range []struct {
		ledger, account, head string
		rows                  []string
		pdf                   string
		asked                 map[string][]string
	}{
		{"client", `{"name":"Patel Jewellers"}`, "Patel Jewellers: Client ledger", patel, "/statement.pdf", map[string][]string{
			"what is the balance of Patel Jewellers?":                 {closing},
			"पटेल का बैलेंस कितना है?":                                {closing},
			"પટેલ પાસે કેટલા બાકી છે?":                                {closing},
			"how much does Patel owe us?":                             {closing},
			"what was given on 1 March 2025?":                         {"01 Mar: Payal", "01 Mar: Bichhiya"},
			"What did we give on 01-03-2025?":                         {"01 Mar: Payal", "01 Mar: Bichhiya"},
			"What did we receive on March 11, 2025?":                  {"11 Mar: by cheque; IN (jama) Cash ₹: 10,000.00"},
			"What was received on ૪ માર્ચ?":                           {"04 Mar: old silver"},
			"how much payal did Patel take?":                          {"01 Mar: Payal, slip number 118, weight 100"},
			"પાયલ કેટલી આપી?":                                         {"01 Mar: Payal, slip number 118, weight 100"},
			"How much did they pay by cheque?":                        {"11 Mar: by cheque; IN (jama) Cash ₹: 10,000.00"},
			"balance on 11 March 2025?":                               {"11 Mar: Kada, slip number 214"},
			"total received?":                                         {"Details: Total; IN (jama) Cash ₹: 10,000.00; IN (jama) Fine g: 45.000"},
			"opening balance?":                                        {"Details: Opening balance; Balance Cash ₹: 0.00 settled"},
			"what happened on 2 March 2025?":                          nil,
			"balance of Shah Jewellers?":                              nil,
			"what did we receive on 1 March 2025?":                    nil,
			"what was given before 5 March 2025?":                     nil,
			"what was given from 1 to 5 March 2025?":                  nil,
			"How much chain did Patel take?":                          nil,
			"What is the making charge of bichhiya given on 1 March?": nil,
		}},
		{"client", `{"name":"Patel Jewellers"}`, "Patel Jewellers: Client ledger", patel, "/pdf/out", map[string][]string{
			"what was given on 1 March 2025?": {"01 Mar: Payal", "01 Mar: Bichhiya, slip number " +
				"118, weight 40, touch 80, fine weight 32; OUT (naame) Fine g: 32.000"},
			"total given?":     {"Details: Total; OUT (naame) Cash ₹: 1,500.00; OUT (naame) Fine g: 154.715"},
			"total received?":  nil,
			"the balance?":     nil,
			"opening balance?": nil,
		}},
		{"karigar", `{"name":"Imran"}`, "Imran: Karigar ledger", []string{
			`{"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5}]}`,
			`{"date":"2025-03-05","in_entries":[{"item_name":"payal","pure_weight":520,"fine_percent":92,"wastage_percent":2,"other":1500}]}`,
			`{"date":"2025-03-15","in_entries":[{"item_name":"kada","pure_weight":20,"fine_percent":92},{"item_name":"nath","pure_weight":10,` +
				`"fine_percent":80}],"out_entries":[{"item_name":"advance","amount":500}]}`,
		}, "/statement.pdf", map[string][]string{
			"how much fine weight of payal did Imran give?":    {"05 Mar: payal, pure weight 520, fine percent 92, fine weight 478.4"},
			"how much fine weight of payal did Imran receive?": nil, // it is on the IN side
			"इमरान ने कितनी पायल दी?":                          {"05 Mar: payal"},
			"How much kada came on 15 March?":                  {"15 Mar: kada, pure weight 20"},
			"How much advance did Imran get?":                  {"15 Mar: advance; OUT (naame) Cash ₹: 500.00"},
			"How much fine silver did Imran take?":             {"01 Mar: fine silver, weight 500"},
			"balance on 5 March 2025":                          {"05 Mar: payal"},
			"what is the balance of Imran?":                    {"Details: Closing balance; Balance Cash ₹: 1,000.00 you owe"},
		}},
		{"bullion", `{"name":"Mehta Bullion"}`, "Mehta Bullion: Bullion ledger", []string{
			`{"date":"2025-03-01","in_entries":[{"item_name":"bar","weight":1000,"touch":99.5}]}`,
			`{"date":"2025-03-05","out_entries":[{"kind":"cash","amount":20000,"description":"NEFT"}]}`,
		}, "/statement.pdf", map[string][]string{
			"balance of Mehta Bullion?":       {"Details: Closing balance; Balance Cash ₹: 20,000.00 owes you; Balance Fine g: 995.000 you owe"},
			"How much did we pay by NEFT?":    {"05 Mar: NEFT, cash; OUT (naame) Cash ₹: 20,000.00"},
			"how much bar came?":              {"01 Mar: bar, metal, weight 1,000"},
			"how much bar was given?":         nil,
			"how much was paid in cash?":      {"05 Mar: NEFT, cash"},
			"what was paid on 5th March '25?": nil,
		}},
		{"polisher", `{"name":"Salim","type":0}`, "Salim: Polisher ledger", []string{
			`{"date":"2025-03-01","out_entries":[{"item_name":"payal","weight":100,"pieces":12,"description":"urgent"}]}`,
			`{"date":"2025-03-02","in_entries":[{"item_name":"payal","weight":98.5,"loss_weight":1.5,"pieces":12,"rate":5,"amount":60}]}`,
		}, "/statement.pdf", map[string][]string{
			"balance of Salim?":              {"Details: Closing balance; Balance Cash ₹: 60.00 you owe; Balance Weight g: 0.000 settled"},
			"How much payal was given?":      {"01 Mar: urgent, payal, weight 100"},
			"How much payal did Salim give?": {"02 Mar: payal, weight 98.5"},
			"payal?":                         {"01 Mar: urgent, payal, weight 100", "02 Mar: payal, weight 98.5"},
		}},
		{"bank", `{"name":"SBI"}`, "SBI: Bank ledger", []string{
			`{"date":"2025-03-01","in_entries":[{"amount":12500,"description":"Opening deposit"}]}`,
			`{"date":"2025-04-05","out_entries":[{"amount":400,"description":"Rent for the shop"},{"amount":50,"description":"Total"}]}`,
		}, "/statement.pdf", map[string][]string{
			"what is the balance?":      {"Details: Closing balance; Balance Cash ₹: 12,050.00"},
			"what was paid on 5 April?": {"05 Apr: Rent for the shop", "05 Apr: Total; OUT (naame) Cash ₹: 50.00; Balance Cash ₹: 12,050.00"},
			"total paid?":               {"Details: Total; IN (jama) Cash ₹: 12,500.00; OUT (naame) Cash ₹: 450.00"},
			"5 अप्रैल को क्या दिया?": {"05 Apr: Rent for the shop", "05 Apr: Total"},
		}},
	} {
		b := botOf(t, c, "")
		taughtAs(t, c, b, "application/pdf", c.GET(opened(c, l.ledger, l.account, l.rows...)+l.pdf).Status(200).Text)
		for question, want := range l.asked {
			requireRows(t, c, b.ID, question, l.head, want)
		}
	}
}

var patel = []string{
	`{"date":"2025-03-01","out_entries":[{"item_name":"Payal","slip_number":"118","weight":100,"touch":92,"wastage_percent":3,` +
		`"making_charge":1500},{"item_name":"Bichhiya","slip_number":"118","weight":40,"touch":80}]}`,
	`{"date":"2025-03-04","in_entries":[{"item_name":"old silver","weight":50,"touch":90}]}`,
	`{"date":"2025-03-11","in_entries":[{"description":"by cheque","amount":10000}],` +
		`"out_entries":[{"item_name":"Kada","slip_number":"214","weight":30.125,"touch":92}]}`,
}

// requireRows tests that a bot's answer has the account and the given rows only, which begin with the day.
func requireRows(t *testing.T, c *apitest.Client, bot int64, question, head string, want []string) {
	t.Helper()
	said := apitest.Read[map[string]any](c.POST(botAt(bot, "/try"), fmt.Sprintf(`{"text":%q}`, question)).Status(200))
	require.Equal(t, want == nil, said["handover"], "%s: %s\n%s", head, question, said["answer"])
	if want == nil {
		return
	}
	quoted, _, _ := strings.Cut(said["answer"].(string), "\n\nSource: ")
	above, rows, _ := strings.Cut(quoted, "\n\n")
	require.Equal(t, head, above, question)
	lines := strings.Split(rows, "\n")
	require.Len(t, lines, len(want), "%s: %s\n%s", head, question, said["answer"])
	for i, line := range lines {
		require.Contains(t, dayOfRow.ReplaceAllString(line, "$1: "), want[i], question)
	}
}

var dayOfRow = regexp.MustCompile(`^Date: (\d\d \pL+) 2025; No\.: \d+; Details: `)

// A statement of many pages is in several passages. Each keeps the account, and a day's rows are found on every page.
func TestABotAnswersFromLongStatementsOfTwoAccounts(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, `{"messaging":"write","ledger":"write"}`).Key)
	b := botOf(t, c, "")
	for n, name := range []string{"Patel Jewellers", "Shah and Sons"} {
		var rows []string
		for day := 1; day <= 28; day++ {
			rows = append(rows, fmt.Sprintf(`{"date":"2025-02-%02d","out_entries":[{"item_name":"payal","slip_number":"%d","weight":%d,"touch":80},`+
				`{"item_name":"ring","weight":%d,"touch":80},{"item_name":"kada","weight":%d,"touch":80}]}`, day, 1000*n+day, 100+day, 10+day, 50+day))
		}
		taughtAs(t, c, b, "application/pdf", c.GET(opened(c, "client", `{"name":"`+name+`"}`, rows...)+"/statement.pdf").Status(200).Text)
	}
	for day := 1; day <= 28; day++ {
		requireRows(t, c, b.ID, fmt.Sprintf("How much kada was given to Shah on %d February 2025?", day), "Shah and Sons: Client ledger",
			[]string{fmt.Sprintf("%02d Feb: kada, weight %d, touch 80", day, 50+day)})
	}
	requireRows(t, c, b.ID, "What is the balance of Shah and Sons?", "Shah and Sons: Client ledger", []string{"Details: Closing balance; "})
	requireRows(t, c, b.ID, "What is the balance of Mehta?", "", nil)
}
