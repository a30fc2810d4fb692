package messaginghttp_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/commands/spreadsheet"
	"bahi/eventstore"
	"bahi/http/messaginghttp"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

const contacts = "/api/contacts"

func at(id int64) string { return fmt.Sprintf("%s/%d", contacts, id) }

// agent returns a caller with write access to a workspace's messages.
func agent(o *apptest.Server, workspace string) *apitest.Client {
	return o.Bearer(o.Key(workspace, `{"messaging":"write"}`).Key)
}

// openShared returns the shared system, and an agent of the test's own workspace there.
func openShared(t *testing.T) (*apptest.Server, *apitest.Client) {
	t.Helper()
	o := apptest.Share(t)
	return o, agent(o, o.Home)
}

// openSales also returns a sandbox channel for chat.
func openSales(t *testing.T) (o *apptest.Server, c *apitest.Client, sales messagingview.Channel) {
	t.Helper()
	o, c = openShared(t)
	return o, c, channelOf(t, c, `{"name":"Sales","type":"chat"}`)
}

func made(t *testing.T, c *apitest.Client, body string) messagingview.Contact {
	t.Helper()
	return apitest.Read[messagingview.Contact](c.POST(contacts, body).Status(201))
}

// forgotten waits until the keys of subjects are destroyed.
func forgotten(t *testing.T, o *apptest.Server, subjects ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var left int
		err := o.Sys.Pool.QueryRow(t.Context(), `select count(*) from vault.key where subject = any($1) and destroyed_at is null`,
			subjects).Scan(&left)
		return err == nil && left == 0
	}, time.Minute, 10*time.Millisecond)
}

func TestAPhoneBelongsToOneContactOfAWorkspace(t *testing.T) {
	t.Parallel()
	o, c := openShared(t)
	asha, usha := made(t, c, `{"name":"Asha","phone":"+91 98123 45678"}`), made(t, c, `{"name":"Usha"}`)
	require.Equal(t, "919812345678", *asha.Phone)
	taken := func(a *apitest.Answer) {
		a.Problem(409, "Another contact has this phone", "phone", "Another contact has this phone")
		require.Contains(t, a.Text, `"code":"phone_taken"`)
		require.Contains(t, a.Text, fmt.Sprintf(`"id":%d`, asha.ID))
	}
	taken(c.POST(contacts, `{"name":"Ravi","phone":"9812345678"}`))
	taken(c.PATCH(at(usha.ID), `{"phone":"00919812345678"}`))
	require.NotEqual(t, asha.ID, made(t, agent(o, o.Abroad), `{"name":"Asha","phone":"919812345678"}`).ID)

	// A contact that gave up the phone no longer has it. The contact with the phone may set it again.
	c.PATCH(at(asha.ID), `{"phone":null}`).Status(200)
	moved := c.PATCH(at(usha.ID), `{"phone":"919812345678"}`).Status(200)
	require.Equal(t, `"1"`, moved.Header("ETag"))
	again := c.PATCH(at(usha.ID), `{"phone":"+919812345678"}`).Status(200)
	require.Equal(t, moved.Text, again.Text)
}

func TestOddPhonesAreReadEverywhere(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, importing, visitor := agent(o, o.Home), agent(o, o.Abroad), o.Anonymous()
	file := "name,phone\n"
	odd := []string{
		"\u202a+91 98123 45678\u202c", "\u200etel:+919812345679", "'9812345680", "98123.45681", "९८१२३४५६८२", "9812345683\u200b",
		"+52 1 55 1234 5678",
	}
	for i, phone := range odd {
		want := fmt.Sprint(919812345678 + i)
		if i == len(odd)-1 {
			want = "525512345678"
		}
		require.Equal(t, want, *made(t, c, fmt.Sprintf(`{"name":"Odd","phone":%q}`, phone)).Phone, "%q", phone)
		visitor.POST("/api/v1/enquiries/verify-chat", fmt.Sprintf(`{"phone":%q}`, phone)).Status(200).
			Contains(`"phone":"+`+want+`"`, `"is_valid":true`)
		file += fmt.Sprintf("Odd%d,%s\n", i, phone)
	}
	body, kind := apptest.Form(t, "text/csv", []byte(file))
	importing.With("Content-Type", kind).POST(contacts+"/import", body).Status(200).Contains(`"created":7,"failed":0`)
}

func TestAnUnreadablePhoneCostsNoContact(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := agent(o, o.Home)
	const warning = `"warnings":[{"field":"phone","message":"is not a readable telephone number: it is stored as a text, and not used"}]`
	shop := apitest.Read[messaginghttp.ContactChange](c.POST(contacts, `{"name":"Shop","phone":" ask at the shop\u202c"}`).Status(201).
		Contains(warning, `"phone":null,"phoneText":"ask at the shop"`))
	c.POST(contacts, `{"name":"Another","phone":"ask at the shop"}`).Status(201) // two contacts may have the same unreadable phone
	asha := made(t, c, `{"name":"Asha","phone":"9812345690"}`)
	c.PATCH(at(asha.ID), `{"phone":"98123 / 4569","optIn":true}`).Status(200).Contains(warning, `"phone":null,"phoneText":"98123 / 4569"`)
	c.GET(at(asha.ID)).Status(200).Contains(`"phone":null,"phoneText":"98123 / 4569"`)
	known := c.PATCH(at(shop.ID), `{"phone":"9812345690"}`).Status(200).Contains(`"phone":"919812345690","phoneText":null`)
	require.NotContains(t, known.Text, "warnings")
	c.PATCH(at(asha.ID), `{"phone":null}`).Status(200).Contains(`"phone":null,"phoneText":null`)
}

func TestContactsAreFound(t *testing.T) {
	t.Parallel()
	_, c := openShared(t)
	for _, body := range []string{
		`{"name":"Élodie Rao","phone":"+6581234567"}`, `{"name":"આશા","email":"asha@example.org","source":"social"}`,
		`{"name":"Usha 100%","phone":"9812345678"}`,
	} {
		made(t, c, body)
	}
	all := apitest.Read[[]messagingview.Contact](c.GET(contacts).Status(200))
	c.PATCH(at(all[0].ID), `{"optIn":true,"status":"pending"}`).Status(200)
	for query, names := range map[string]string{
		"": "Usha 100%,આશા,Élodie Rao", "limit=2": "Usha 100%,આશા", "limit=2&page=2": "Élodie Rao", "search=é": "Élodie Rao", "search=આ": "આશા",
		"search=ASHA@": "આશા", "search=%2B91+98123-456": "Usha 100%", "search=%25": "Usha 100%", "search=-": "", "source=social": "આશા",
		"status=pending": "Usha 100%", "optIn=false&status=open": "આશા,Élodie Rao", "optIn=true&source=social": "",
		"search=": "Usha 100%,આશા,Élodie Rao",
	} {
		all = nil
		a := c.GET(contacts + "?" + query).Status(200).JSON(&all)
		found := make([]string, len(all))
		for i, k := range all {
			found[i] = *k.Name
		}
		require.Equal(t, names, strings.Join(found, ","), query)
		if query == "limit=2&page=2" {
			require.Equal(t, "3", a.Header("X-Total-Count"))
		}
	}
}

func TestADeletedContactIsForgotten(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t) // the statistics of a shared system have samples of its tables
	c := agent(o, apptest.Home)
	const body = `{"name":"Zéphyrine","phone":"9812340987","email":"quillfeather@example.org"}`
	keyed := c.With("Idempotency-Key", "k")
	k := made(t, keyed, body)
	sales := channelOf(t, c, `{"name":"Sales","type":"chat"}`)
	o.Receives(messagingcmd.InboundMessage{Sender: messagingcmd.Sender{From: "919812340987"}, Channel: sales.ID, Text: "marmaladefish"})
	c.POST(at(k.ID)+"/messages", fmt.Sprintf(`{"channelId":%d,"text":"quincebasket"}`, sales.ID)).Status(201)
	untilRead(t, c, k.ID, 1)
	files := fmt.Sprintf("files/messagingcontact-%d/", k.ID)
	require.NoError(t, o.Sys.Blobs.Put(t.Context(), files+"1", "image/png", []byte("a picture")))
	known := apptest.NewTraces(t)
	known.Know("Zéphyrine", "9812340987", "quillfeather", "marmaladefish", "quincebasket")
	require.NotEmpty(t, known.InDatabase(o.Database), "the search finds what there is")
	c.DELETE(at(k.ID)).Status(204)

	c.GET(at(k.ID)).Problem(404, "Contact not found")
	c.GET(contacts + "?search=quill").Status(200).Body(`[]`)
	require.NotEqual(t, k.ID, made(t, c, `{"name":"Usha","phone":"9812340987"}`).ID, "the phone is free")

	forgotten(t, o, fmt.Sprintf("messagingcontact-%d", k.ID))
	require.Eventually(t, func() bool {
		left, err := o.Sys.Blobs.List(t.Context(), files)
		require.NoError(t, err)
		return len(left) == 0
	}, time.Minute, 10*time.Millisecond)
	again := keyed.POST(contacts, body).Status(201)
	require.Equal(t, "true", again.Header("Idempotency-Replayed"))
	require.Contains(t, again.Text, fmt.Sprintf(`"id":%d,"name":null,"phone":null,"phoneText":null,"email":null`, k.ID))
	forgotten := apptest.NewTraces(t)
	forgotten.Know("Zéphyrine", "quillfeather", "marmaladefish", "quincebasket") // another contact has the phone
	require.Empty(t, forgotten.InDatabase(o.Database))
}

const contactLists = "/api/contact-lists"

func TestContactsAreInLists(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	asha, usha := made(t, c, `{"name":"Asha"}`), made(t, c, `{"name":"Usha"}`)
	var retail, empty messagingview.ContactList
	body := fmt.Sprintf(`{"name":"Retailers","contactIds":[%d,%d,%d]}`, usha.ID, asha.ID, usha.ID)
	keyed := c.With("Idempotency-Key", "retailers")
	keyed.POST(contactLists, body).Status(201).JSON(&retail)
	require.EqualValues(t, 2, retail.ContactCount)
	c.POST(contactLists, `{"name":"New"}`).Status(201).JSON(&empty)
	ravi := made(t, c, fmt.Sprintf(`{"name":"Ravi","listIds":[%d,%d,%d]}`, empty.ID, retail.ID, empty.ID))
	require.Equal(t, []int64{retail.ID, empty.ID}, ravi.ListIDs)

	// The response to a write of a contact equals the later read, and lists count their contacts.
	read := apitest.Read[messagingview.Contact](c.GET(at(ravi.ID)).Status(200))
	require.Equal(t, ravi, read)
	moved := apitest.Read[messagingview.Contact](c.PATCH(at(asha.ID), fmt.Sprintf(`{"listIds":[%d]}`, empty.ID)).Status(200))
	require.Equal(t, []int64{empty.ID}, moved.ListIDs)
	c.PATCH(at(usha.ID), `{"listIds":[]}`).Status(200)
	again := keyed.POST(contactLists, body).Status(201)
	require.Equal(t, "true", again.Header("Idempotency-Replayed"))
	counts := func() (all []int64) {
		var found []messagingview.ContactList
		a := c.GET(contactLists).Status(200).JSON(&found)
		require.Equal(t, "2", a.Header("X-Total-Count"))
		for _, l := range found {
			all = append(all, l.ContactCount)
		}
		return all
	}
	require.Equal(t, []int64{2, 1}, counts(), "a repeated request adds no contact again")
	found := apitest.Read[[]messagingview.Contact](c.GET(fmt.Sprintf("%s?listId=%d&search=a", contacts, empty.ID)).Status(200))
	require.Equal(t, []int64{ravi.ID, asha.ID}, []int64{found[0].ID, found[1].ID})
	c.DELETE(at(ravi.ID)).Status(204)
	require.Equal(t, []int64{1, 0}, counts())

	c.POST(contactLists, fmt.Sprintf(`{"name":" ","contactIds":[%d,%d]}`, asha.ID, ravi.ID)).
		Problem(422, "Validation error", "name", "1 to 100 characters", "contactIds[1]", "Contact not found")
	stranger.POST(contactLists, fmt.Sprintf(`{"name":"Theirs","contactIds":[%d]}`, asha.ID)).Problem(422, "Validation error",
		"contactIds[0]", "Contact not found")
	stranger.POST(contacts, fmt.Sprintf(`{"name":"Mine","listIds":[%d]}`, retail.ID)).Problem(422, "Validation error", "listIds[0]",
		"Contact list not found")
	require.Equal(t, []int64{1, 0}, counts())
}

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

// toldOf requires an import's report on its rows.
func toldOf(t *testing.T, a *apitest.Answer, want string) *apitest.Answer {
	t.Helper()
	rows, _, _ := strings.Cut(a.Status(200).Text, `,"columns":`)
	require.Equal(t, want, rows+"}")
	return a
}

func TestContactsAreImported(t *testing.T) {
	t.Parallel()
	_, c := openShared(t)
	made(t, c, `{"name":"There","phone":"919812345701"}`)
	list := apptest.IdOf(t, []byte(c.POST(contactLists, `{"name":"Retailers"}`).Status(201).Text))
	bring := func(c *apitest.Client, text string) *apitest.Answer {
		body, kind := apptest.Form(t, "text/csv", []byte(text))
		return c.With("Content-Type", kind).POST(contacts+"/import", body)
	}
	file := fmt.Sprintf("Name;Mobile;E-mail;lists;opt in;opt_in_evidence\n"+
		"Imran;+91 98123 45702;imran@example.org;%d;yes;Form 7\nAgain;919812345702;;;;\nThere too;919812345701;;;;\n;919812345703;;;;\nNo "+
		"evidence;;x;;true;\nUnknown list;;;999999;;\nPlain;;;;;\n", list)
	key := c.With("Idempotency-Key", "import")
	const want = `{"success":true,"created":2,"failed":5,"errors":[{"row":3,"error":"Mobile: row 2 has the same phone"},` +
		`{"row":4,"error":"Mobile: Another contact has this phone"},` +
		`{"row":5,"error":"Name: 1 to 100 characters"},{"row":6,"error":"E-mail: expected an email address ` +
		`(\"x\"); opt_in_evidence: is required with a consent"},{"row":7,"error":"lists [0]: Contact list not found"}]}`
	toldOf(t, bring(key, file), want)
	imran := appears(t, c, "Imran")
	require.Equal(t, []any{"919812345702", true, "Form 7", []int64{list}},
		[]any{*imran.Phone, imran.OptIn, *imran.OptInEvidence, imran.ListIDs})
	require.False(t, appears(t, c, "Plain").OptIn)
	for _, text := range []string{"", "phone\n91\n", "name,name\na,b\n", "\x00"} {
		require.Equal(t, 400, bring(c, text).Response.StatusCode, text)
	}
	bring(c, "name,phone\n"+strings.Repeat(",", 9<<20)).Problem(413, "A line of the file has too many cells: at most 16,384")
	toldOf(t, bring(c, "name,phone\n"+strings.Repeat("a", 9<<20)+","), `{"success":false,"created":0,"failed":1,"errors":[{"row":2,`+
		`"error":"name: 1 to 100 characters (\"`+strings.Repeat("a", 60)+`…\")"}]}`)
	require.Len(t, people(t, c, "?search=Imran"), 1)
	for i, names := range []string{"Name;Mobile No.", "Name;Phone No", "Name;Mobile Number", "Name;Contact no.",
		"Customer Name;Cell", "नाम;मोबाइल", "पूरा नाम;फ़ोन नंबर",
		"ग्राहक का नाम;मोबाइल नं.", "નામ;ફોન",
		"ગ્રાહકનું નામ;મોબાઈલ નંબર"} {
		bring(c, fmt.Sprintf("%s\nBook%d;98123 4571%d\n", names, i, i)).Status(200)
		require.Equal(t, fmt.Sprint("91981234571", i), *appears(t, c, fmt.Sprint("Book", i)).Phone, names)
	}
	for i, yes := range []string{"Y", "हाँ", "હા", "n", "नहीं", "ના"} {
		bring(c, fmt.Sprintf("name,opt in,opt in evidence\nAgreed%d,%s,Form 8\n", i, yes)).Status(200)
		require.Equal(t, i < 3, appears(t, c, fmt.Sprint("Agreed", i)).OptIn, yes)
	}
	toldOf(t, bring(c, "name,opt in,opt in evidence\nLong,yes,"+strings.Repeat("a", 501)+"\n"),
		`{"success":false,"created":0,"failed":1,"errors":[{"row":2,"error":"opt in evidence: at most 500 characters `+
			`(\"`+strings.Repeat("a", 60)+`…\")"}]}`)

	// Unread columns are reported.
	told := apitest.Read[spreadsheet.ImportResult](bring(c, "Full Name,Birthday,Whats App\nKiran,1 May,98123\n").Status(200))
	require.Equal(t, []string{"Birthday", "Whats App"}, told.Columns.Ignored)
	require.Equal(t, []spreadsheet.Column{{Header: "Full Name", Field: "name"}}, told.Columns.Used)

	// A contact with an unreadable phone is still created.
	unread := bring(c.With("Idempotency-Key", "unread"), "name,phone\nShop,ask at the shop\nTwo,98123 45720 / 98123 45721\n,nobody\n")
	toldOf(t, unread, `{"success":true,"created":2,"failed":1,"errors":[{"row":4,"error":"name: 1 to 100 characters"}]}`)
	require.Contains(t, unread.Text,
		`"warnings":[{"row":2,"error":"phone: is not a readable telephone number: it is stored as a text, and not used (\"ask at the shop\")"},`+
			`{"row":3,`)
	shop := appears(t, c, "Shop")
	require.Nil(t, shop.Phone)
	require.Equal(t, "ask at the shop", *shop.PhoneText)
	require.Equal(t, "98123 45720 / 98123 45721", *appears(t, c, "Two").PhoneText)

	// A batch is identified by its first contact, even a refused one. Two spellings of one phone are one phone.
	first := c.With("Idempotency-Key", "first")
	const spelt = "name,phone\nThere again,919812345701\nMobile,5511987654321\nOld spelling,551187654321\n"
	const one = `{"success":true,"created":1,"failed":2,"errors":[{"row":2,"error":"phone: Another contact has this phone"},` +
		`{"row":4,"error":"phone: Another contact has this phone"}]}`
	require.Empty(t, toldOf(t, bring(first, spelt), one).Header("Idempotency-Replayed"))
	require.Equal(t, "true", toldOf(t, bring(first, spelt), one).Header("Idempotency-Replayed"))

	// A repetition changes nothing: withdrawn consent stays withdrawn, and deleted contacts stay deleted.
	c.PATCH(at(imran.ID), `{"optIn":false}`).Status(200)
	require.Equal(t, "true", toldOf(t, bring(key, file), want).Header("Idempotency-Replayed"))
	require.False(t, appears(t, c, "Imran").OptIn)
	c.DELETE(at(imran.ID)).Status(204)
	toldOf(t, bring(key, file), want)
	require.Empty(t, people(t, c, "?search=Imran"))
}

// failingLog is a log that can be unavailable for appends.
type failingLog struct {
	eventstore.Store

	left atomic.Int64 // large transactions until the outage
}

func (o *failingLog) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	if len(t.Writes) > 100 && o.left.Add(-1) < 0 {
		return eventstore.Appended{}, eventstore.ErrUnavailable
	}
	return o.Store.Append(ctx, t)
}

func TestAnImportThatIsInterruptedSaysHowFarItCameAndGoesOn(t *testing.T) {
	t.Parallel()
	log := &failingLog{}
	log.left.Store(2) // a batch, twice: one of its rows is refused
	o := apptest.StartAs(t, apptest.Settings(t, apptest.Database(t)), func(s *app.System) {
		log.Store = s.Store
		s.Commands = commands.New(log, s.Vault, time.Now)
	})
	c := agent(o, o.Home)
	made(t, c, `{"name":"There","phone":"919810000007"}`)
	var file strings.Builder
	file.WriteString("name,phone\n")
	const rows = 300
	for i := range rows {
		fmt.Fprintf(&file, "C%d,98100%05d\n", i, i)
	}
	bring := func(text string) *apitest.Answer {
		body, kind := apptest.Form(t, "text/csv", []byte(text))
		return c.With("Idempotency-Key", "cut").With("Content-Type", kind).POST(contacts+"/import", body)
	}
	bring(file.String()).Problem(503, "The import was interrupted: of 300 rows, 99 are contacts and 1 have faults. "+
		"Send the file again with the same Idempotency-Key to continue")
	log.left.Store(1000)
	for range 2 { // a refused row is refused again
		toldOf(t, bring(file.String()), fmt.Sprintf(`{"success":true,"created":%d,"failed":1,"errors":[{"row":9,`+
			`"error":"phone: Another contact has this phone"}]}`, rows-1))
	}
	bring(file.String()+"D,1\n").Problem(422, "Idempotency-Key was used with another request")
	bring("name\n"+strings.Repeat("x\n", 50_001)).Problem(413, "The file has too many rows: at most 50,000")
	require.Equal(t, fmt.Sprint(rows), c.GET(contacts+"?limit=1").Status(200).Header("X-Total-Count"))
}

func TestNumbersOfASpreadsheetAreReadAsItShowsThem(t *testing.T) {
	t.Parallel()
	_, c := openShared(t)
	book := excelize.NewFile()
	defer book.Close()
	require.NoError(t, book.SetSheetRow("Sheet1", "A1", &[]any{"name", "phone", "opt in", "opt in evidence"}))
	require.NoError(t, book.SetSheetRow("Sheet1", "A2", &[]any{"Java", 111, 222, "Form 7"}))
	var plain, file bytes.Buffer
	require.NoError(t, book.Write(&plain))
	archive, err := zip.NewReader(bytes.NewReader(plain.Bytes()), int64(plain.Len()))
	require.NoError(t, err)
	w := zip.NewWriter(&file)
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		if f.Name == "xl/worksheets/sheet1.xml" {
			text = []byte(strings.NewReplacer("<v>111</v>", "<v>9.812345704E9</v>", "<v>222</v>", "<v>1.0</v>").Replace(string(text)))
		}
		to, err := w.Create(f.Name)
		require.NoError(t, err)
		_, err = to.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	body, kind := apptest.Form(t, "application/octet-stream", file.Bytes())
	toldOf(t, c.With("Content-Type", kind).POST(contacts+"/import", body), `{"success":true,"created":1,"failed":0,"errors":[]}`)
	k := appears(t, c, "Java")
	require.Equal(t, []any{"919812345704", true}, []any{*k.Phone, k.OptIn})
}
