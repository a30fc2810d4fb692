package ledgerhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/commands/messagingcmd"
	"bahi/domain/ledger/confirmation"
	"bahi/domain/messaging/network"
	"bahi/http/api"
	"bahi/http/ledgerhttp"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pdftest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/ledgerview"
	"bahi/readmodels/messagingview"
)

const confirmations = "/books/confirmations"

// asking is a workspace that asks its clients to confirm balances.
type asking struct {
	*apptest.Server
	*apitest.Client

	t                 *testing.T
	channel, template int64
	templates         map[string]int64
}

func startAsking(t *testing.T) *asking {
	o := apptest.Share(t)
	a := &asking{Server: o, t: t, Client: o.Bearer(o.Key(o.Home, `{"ledger":"write","messaging":"write"}`).Key), templates: map[string]int64{}}
	a.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)
	all := apitest.Read[[]messagingview.Template](a.GET("/api/chat/templates").Status(200))
	for _, k := range all {
		a.channel, a.templates[k.Name] = k.ChannelID, k.ID
	}
	a.template = a.templates["balance"]
	return a
}

func (a *asking) opened(name string) int64 {
	a.t.Helper()
	return apptest.IdOf(a.t, []byte(a.POST("/client", fmt.Sprintf(`{"name":%q}`, name)).Status(201).Text))
}

func (a *asking) known(name, phone string, optIn bool) (k messagingview.Contact) {
	a.t.Helper()
	body := fmt.Sprintf(`{"name":%q}`, name)
	if phone != "" {
		body = fmt.Sprintf(`{"name":%q,"phone":%q}`, name, phone)
	}
	a.POST("/api/contacts", body).Status(201).JSON(&k)
	if optIn {
		a.PATCH(fmt.Sprintf("/api/contacts/%d", k.ID), `{"optIn":true}`).Status(200)
	}
	return k
}

// party opens a client with a contact.
func (a *asking) party(name, phone string) (account, contact int64) {
	a.t.Helper()
	account, contact = a.opened(name), a.known(name, phone, true).ID
	a.join(account, contact).Status(200)
	return account, contact
}

func (a *asking) join(account, contact int64) *apitest.Answer {
	return a.PUT(fmt.Sprintf("/books/accounts/%d/contact", account), fmt.Sprintf(`{"contactId":%d}`, contact))
}

func (a *asking) post(account int64, date, side string, amount int) {
	a.t.Helper()
	a.POST(fmt.Sprintf("/client-ledger/%d", account),
		fmt.Sprintf(`{"date":%q,"%s_entries":[{"amount":%d}]}`, date, side, amount)).Status(201)
}

// body is a request for some accounts, or for all of a kind.
func (a *asking) body(of string) string {
	return fmt.Sprintf(`{%s,"as_of":"2025-03-31","channelId":%d,"templateId":%d}`, of, a.channel, a.template)
}

func (a *asking) ask(of string) ledgerview.Confirmation {
	a.t.Helper()
	return apitest.Read[ledgerview.Confirmation](a.POST(confirmations, a.body(of)).Status(201))
}

func (a *asking) await(id int64, wanted func(ledgerview.ConfirmationCounts) bool) (c ledgerview.Confirmation) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		c = ledgerview.Confirmation{}
		a.GET(fmt.Sprintf("%s/%d", confirmations, id)).Status(200).JSON(&c)
		return wanted(c.Counts)
	}, time.Minute, 20*time.Millisecond, "the confirmation is %+v", &c)
	return c
}

func (a *asking) parties(id int64) map[int64]ledgerview.ConfirmationParty {
	a.t.Helper()
	all := apitest.Read[[]ledgerview.ConfirmationParty](a.GET(fmt.Sprintf("%s/%d/parties?limit=200", confirmations, id)).Status(200))
	by := map[int64]ledgerview.ConfirmationParty{}
	for _, p := range all {
		by[p.ID] = p
	}
	return by
}

// write lets a phone write to the channel.
func (a *asking) write(phone, text string) (message int64) {
	a.t.Helper()
	out := a.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: phone}, Channel: a.channel, Text: text})
	_, err := fmt.Sscan(out.ID, &message)
	require.NoError(a.t, err)
	return message
}

func (a *asking) talk(contact int64) []messagingview.Message {
	a.t.Helper()
	return apitest.Read[[]messagingview.Message](a.GET(fmt.Sprintf("/api/contacts/%d/messages", contact)).Status(200))
}

var link = regexp.MustCompile(`https?://\S+(/s/\S+)`)

func TestPartiesConfirmTheirBalances(t *testing.T) {
	t.Parallel()
	a := startAsking(t)
	meera, meeraContact := a.party("Meera", "9812345601")
	asha, _ := a.party("Asha", "9812345602")
	ravi, _ := a.party("Ravi", "9812345603")
	usha, _ := a.party("Usha", "9812345604")
	nobody := a.opened("Nobody")
	silent := a.opened("No consent")
	a.join(silent, a.known("No consent", "9812345605", false).ID).Status(200)
	noPhone := a.opened("No phone")
	a.join(noPhone, a.known("No phone", "", true).ID).Status(200)
	erased, erasedContact := a.party("Erased", "9812345606")
	a.DELETE(fmt.Sprintf("/api/contacts/%d", erasedContact)).Status(204)
	closed, _ := a.party("Closed", "9812345607")
	a.DELETE(fmt.Sprintf("/client/%d", closed)).Status(204)
	a.post(meera, "2025-03-31", "out", 1500)
	a.post(meera, "2025-04-01", "out", 99)
	a.post(asha, "2025-01-01", "in", 250)

	named := fmt.Sprintf(`"accounts":[%d,%d,%d,%d,%d,%d,%d,%d,%d]`, meera, asha, ravi, usha, nobody, silent, noPhone, erased, closed)
	dry := apitest.Read[ledgerview.Confirmation](a.With("Bahi-Dry-Run", "true").POST(confirmations, a.body(named)).Status(200))
	skipped := ledgerview.SkipReasons{NoContact: 1, ContactErased: 1, NoPhone: 1, NoConsent: 1, AccountClosed: 1}
	require.Equal(t, ledgerview.ConfirmationCounts{Parties: 9, Open: 4, Skipped: 5, Reasons: skipped}, dry.Counts)
	require.Zero(t, dry.ID)
	a.GET(confirmations).Status(200).Body(`[]`)
	keyed := a.With("Idempotency-Key", "march")
	var c ledgerview.Confirmation
	first := keyed.POST(confirmations, a.body(named)).Status(201).JSON(&c)
	require.Equal(t, dry.Counts, c.Counts)
	require.Equal(t, first.Text, keyed.POST(confirmations, a.body(named)).Status(201).Text)

	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Read == 4 })
	p := a.parties(c.ID)
	require.Equal(t, "they_owe 1500 settled", fmt.Sprint(p[meera].CashPosition, " ", p[meera].Cash.Abs(), " ", p[meera].CrystalPosition))
	require.Equal(t, "we_owe", p[asha].CashPosition)
	require.True(t, c.Document)
	sent := a.talk(meeraContact)
	require.Len(t, sent, 1)
	require.Contains(t, *sent[0].Text, "Meera, your account as of 31 Mar 2025: ₹1,500.00 you owe; 0.000 g fine settled. Statement: http")

	// Only the first reply of each party counts.
	agreed := a.write("9812345601", "1")
	a.write("9812345602", "नहीं")
	a.write("9812345603", "which bill is that?")
	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool {
		return n.Confirmed == 1 && n.Disputed == 1 && n.Answered == 1
	})
	a.write("9812345601", "2")
	a.write("9812345602", "1")
	a.write("9812345604", "hello")
	c = a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Answered == 2 })
	require.Equal(t, ledgerview.ConfirmationCounts{Parties: 9, Sent: 4, Read: 4, Answered: 2, Confirmed: 1, Disputed: 1, Skipped: 5,
		Reasons: skipped}, c.Counts)
	p = a.parties(c.ID)
	require.Equal(t, agreed, *p[meera].AnswerID)
	require.Equal(t, fmt.Sprintf("contact:%d", meeraContact), *p[meera].AnsweredBy)

	// A person decides about other replies, even against the text of a message.
	decide := func(account int64, body string) *apitest.Answer {
		return a.POST(fmt.Sprintf("%s/%d/parties/%d", confirmations, c.ID, account), body)
	}
	decide(ravi, `{"outcome":"disputed","note":"bill 118 is missing"}`).Status(200).Contains(`"status":"disputed"`, `bill 118`)
	decide(meera, `{"outcome":"disputed"}`).Status(200)
	a.write("9812345603", "1")
	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Disputed == 3 && n.Confirmed == 0 })
	decide(nobody, `{"outcome":"confirmed"}`).Problem(409, "The party was not asked: no message was sent to it")
	decide(1<<40, `{"outcome":"confirmed"}`).Status(404)

	// A later row dated on or before the day overtakes a confirmation. A row dated after the day does not.
	a.post(usha, "2025-04-01", "in", 1)
	a.post(asha, "2025-03-30", "in", 1)
	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Overtaken == 1 })
	require.True(t, a.parties(c.ID)[asha].Overtaken)

	list := apitest.Read[[]ledgerview.Confirmation](a.GET(confirmations).Status(200))
	require.Equal(t, c.ID, list[0].ID)
	var disputed []ledgerview.ConfirmationParty
	require.Equal(t, "3", a.GET(fmt.Sprintf("%s/%d/parties?status=disputed&limit=2", confirmations, c.ID)).Status(200).JSON(&disputed).
		Header("X-Total-Count"))
	require.Len(t, disputed, 2)
}

// The newest text of a message counts, even if an earlier text was an answer.
func TestAnEditedMessageIsAnAnswer(t *testing.T) {
	t.Parallel()
	a := startAsking(t)
	asha, _ := a.party("Asha", "9812345611")
	c := a.ask(fmt.Sprintf(`"accounts":[%d]`, asha))
	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Sent == 1 })
	a.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: "9812345611"}, Channel: a.channel, Text: "one moment",
		ProviderID: "asha's"})
	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Answered == 1 })
	edit := func(text string) {
		_, err := a.Sys.Messages.Revise(t.Context(), a.channel, "asha's", text, network.Moment{At: time.Now()})
		require.NoError(t, err)
	}
	edit("1")
	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Confirmed == 1 })
	edit("2")
	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Disputed == 1 })
}

func TestTheLinkLeadsToTheStatement(t *testing.T) {
	t.Parallel()
	a := startAsking(t)
	meera, contact := a.party("Meera", "9812345601")
	a.post(meera, "2025-03-31", "out", 1500)
	a.post(meera, "2025-04-01", "out", 99)
	c := a.ask(`"kind":"client"`)
	a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Sent == 1 })
	a.post(meera, "2025-03-01", "out", 777) // later than the position
	path := link.FindStringSubmatch(*a.talk(contact)[0].Text)[1]
	pdf := a.Anonymous().GET(path)
	words := apptest.Words(t, pdf)
	require.Contains(t, words, "1,500.00")
	require.NotContains(t, words, "777.00")
	require.NotContains(t, words, "99.00")
	require.Contains(t, words, "/verify")
	require.Contains(t, words, "Closing balance 1,500.00 you owe 0.000 settled")
	require.Contains(t, words, "In the balances, you are Meera.")
	a.Signed()
	require.Contains(t, pdftest.Code(t, []byte(a.Anonymous().GET(path).Status(200).Text)), "/verify#s1/", "it can be checked with the code")
	require.Equal(t, []string{"noindex", "no-store"}, []string{pdf.Header("X-Robots-Tag"), pdf.Header("Cache-Control")})
	another := strings.Replace(path, fmt.Sprintf("-%d-", meera), fmt.Sprintf("-%d-", meera+1), 1)
	for _, forged := range []string{path + "0", another, "/s/x", "/s/1-2-3", "/s/--"} {
		a.Anonymous().GET(forged).Problem(404, "Statement not found")
	}
	later := commands.New(a.Sys.Store, a.Sys.Vault, func() time.Time { return time.Now().Add(confirmation.LinkLifetime + time.Minute) })
	_, err := (&ledgercmd.Confirmations{Books: &ledgercmd.Books{Commands: later}}).Statement(t.Context(), strings.TrimPrefix(path, "/s/"))
	require.ErrorIs(t, err, ledgercmd.ErrLinkEnded)
}

// A chat network gets one message for each party. The network fetches the statement of a template with a document.
func TestTheMessageCarriesTheStatement(t *testing.T) {
	t.Parallel()
	sent := make(chan string, 10)
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/message_templates"):
			_, _ = io.WriteString(w, `{"data":[{"id":"1","name":"with_file","status":"APPROVED","components":[
				{"type":"HEADER","format":"DOCUMENT"},{"type":"BODY","text":"{{1}}: {{2}}, {{3}}"}]},
				{"id":"2","name":"link_alone","status":"APPROVED","components":[{"type":"BODY","text":"{{1}} {{2}} {{3}} {{4}} {{5}}"}]}]}`)
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"quality_rating":"GREEN"}`)
		default:
			body, _ := io.ReadAll(r.Body)
			sent <- string(body)
			_, _ = fmt.Fprintf(w, `{"messages":[{"id":"w.%d"}]}`, time.Now().UnixNano())
		}
	}))
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.ChatURL, with.Outside.FetchAllow = server.URL, []string{strings.TrimPrefix(server.URL, "http://")}
	var err error
	with.Outside.Limits, err = api.ParseLimits([]string{"BAHI_LIMIT_LEDGER_SHARED_STATEMENT=1/1h", "BAHI_LIMIT_LEDGER_PDF=3/1h"})
	require.NoError(t, err)
	o := apptest.StartAs(t, with)
	a := &asking{Server: o, t: t, Client: o.Bearer(o.Key(o.Home, `{"ledger":"write","messaging":"write"}`).Key)}
	a.channel = apptest.IdOf(t, []byte(a.POST("/api/channels", `{"name":"Sales","type":"chat","apiKey":"good",
		"settings":{"senderId":"PN1","accountId":"ACC"}}`).Status(201).Text))
	templates := apitest.Read[[]messagingview.Template](a.GET("/api/chat/templates").Status(200))
	require.Len(t, templates, 2)
	meera, _ := a.party("Meera", "9812345601")
	a.post(meera, "2025-03-31", "out", 1500)
	for _, k := range templates {
		a.template = k.ID
		c := a.ask(fmt.Sprintf(`"accounts":[%d]`, meera))
		require.Equal(t, k.Name == "with_file", c.Document)
		require.Equal(t, c.Document, a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Sent == 1 }).Document)
		message := <-sent
		require.Contains(t, message, "1,500.00 you owe")
		file := regexp.MustCompile(`"document":\{"link":"http[^"]+(/s/[^"]+)","filename":"with_file.pdf"\}`).FindStringSubmatch(message)
		if !c.Document {
			require.Nil(t, file)
			continue
		}
		require.Len(t, file, 2, message)
		a.post(meera, "2025-03-01", "out", 777) // later than the position
		words := apptest.Words(t, a.Anonymous().GET(file[1]))
		require.Contains(t, words, "1,500.00")
		require.NotContains(t, words, "777.00")
		for range 2 { // the network fetches the statements of all parties from one address
			a.Anonymous().GET(file[1]).Status(200)
		}
		a.Anonymous().GET(file[1]).Problem(429, "Too many requests")
		a.Anonymous().GET("/s/1-2-3").Problem(429, "Too many requests")
		a.POST(fmt.Sprintf("/client-ledger/%d", meera), `{"date":"2025-03-01","in_entries":[{"amount":777}]}`).Status(201)
		callback := regexp.MustCompile(`"biz_opaque_callback_data":"(\w+)"`).FindStringSubmatch(message)[1]
		failed := messagingcmd.DeliveryReceipt{Channel: a.channel, Callback: callback}
		failed.Status, failed.Code, failed.Details = "failed", 131053, "the file could not be fetched"
		_, err = o.Sys.Messages.Receipts(t.Context(), []messagingcmd.DeliveryReceipt{failed})
		require.NoError(t, err)
		a.await(c.ID, func(n ledgerview.ConfirmationCounts) bool { return n.Failed == 1 && n.Sent == 0 })
	}
	require.Empty(t, sent, "each message is sent once")
}

func TestAContactOfAnAccount(t *testing.T) {
	t.Parallel()
	a := startAsking(t)
	account, contact := a.opened("Meera"), a.known("Meera", "", false).ID
	require.Nil(t, a.contactOf(account))
	set := a.join(account, contact)
	set.Status(200).Body(fmt.Sprintf(`{"kind":"client","account_id":%d,"contact_id":%d}`, account, contact))
	require.Equal(t, contact, *a.contactOf(account))
	path := fmt.Sprintf("/books/accounts/%d/contact", account)
	other := a.Bearer(a.Key(a.Abroad, `{"messaging":"write"}`).Key)
	foreign := apitest.Read[messagingview.Contact](other.POST("/api/contacts", `{"name":"Foreign"}`).Status(201))
	for _, id := range []int64{foreign.ID, 1 << 40} {
		a.join(account, id).Problem(422, "Validation error", "contactId", "Contact not found")
	}
	a.PUT(path, `{"contactId":null}`).Status(200)
	require.Nil(t, a.contactOf(account))
}

func TestBadConfirmations(t *testing.T) {
	t.Parallel()
	a := startAsking(t)
	account, _ := a.party("Meera", "9812345601")
	one := fmt.Sprintf(`"accounts":[%d]`, account)
	request := func(day string, channel, template int64) *apitest.Answer {
		return a.POST(confirmations, fmt.Sprintf(`{%s,"as_of":%q,"channelId":%d,"templateId":%d}`, one, day, channel, template))
	}
	request("2025-03-31", 1<<40, a.template).Problem(422, "Validation error", "channelId", "Channel not found")
	request("2025-03-31", a.channel, 1<<40).Problem(422, "Validation error", "templateId", "Template not found")
	a.POST(confirmations, `{"accounts":[999999999,999999999],"as_of":"2199-01-01","channelId":999999999,"templateId":999999999}`).
		Problem(422, "Validation error", "accounts[1]", "is named twice", "as_of", "must not be in the future",
			"accounts[0]", "Account not found", "accounts[1]", "Account not found", "channelId", "Channel not found",
			"templateId", "Template not found")
	request("2025-03-31", a.channel, a.templates["offer"]).Status(422).Contains("the template's placeholder customer is none of")
	other := apptest.IdOf(t, []byte(a.POST("/api/channels", `{"name":"Other","type":"chat"}`).Status(201).Text))
	request("2025-03-31", other, a.template).Problem(422, "Validation error", "templateId", "Template not found")
	a.GET(confirmations).Status(200).Body(`[]`)
}

// contactOf returns the contact of an account.
func (a *asking) contactOf(account int64) *int64 {
	a.t.Helper()
	all := apitest.Read[[]ledgerhttp.NamedAccount](a.GET("/books/accounts?kind=client").Status(200))
	i := slices.IndexFunc(all, func(k ledgerhttp.NamedAccount) bool { return k.ID == account })
	require.GreaterOrEqual(a.t, i, 0)
	return all[i].ContactID
}
