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
	"bahi/commands/spreadsheet"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

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
	const want = `{"success":true,"created":2,"failed":5,"errors":[{"row":3,"error":"phone: row 2 has the same phone"},` +
		`{"row":4,"error":"phone: Another contact has this phone"},` +
		`{"row":5,"error":"name: 1 to 100 characters"},{"row":6,"error":"email: expected an email address (\"x\"); optInEvidence: is required ` +
		`with optIn"},{"row":7,"error":"listIds[0]: Contact list not found"}]}`
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
		`{"success":false,"created":0,"failed":1,"errors":[{"row":2,"error":"optInEvidence: at most 500 characters `+
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

func TestContactsOfASpreadsheetAreTheOnesThatItShows(t *testing.T) {
	t.Parallel()
	c := agent(apptest.Share(t), apptest.Share(t).Home)
	book := excelize.NewFile()
	defer book.Close()
	for i, row := range [][]any{{"Family list"}, {"name", "mobile", "opt in", "opt in evidence", "email"},
		{"Chaitali", "98123 45711", "yes", "Form 9", "hidden@example.org"}, {"Bhargav", "98123 45712"}, {"Gone", "98123 45713"},
		{nil, "98123 45714"}, {"Indu"}, {}, {"Jaya", "", "yes"}} {
		require.NoError(t, book.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row))
	}
	for _, cells := range [][2]string{{"A1", "E1"}, {"C3", "C7"}, {"D3", "D7"}, {"A4", "A6"}} {
		require.NoError(t, book.MergeCell("Sheet1", cells[0], cells[1]))
	}
	require.NoError(t, book.SetRowVisible("Sheet1", 5, false))
	require.NoError(t, book.SetColVisible("Sheet1", "E", false))
	rightToLeft := true
	require.NoError(t, book.SetSheetView("Sheet1", 0, &excelize.ViewOptions{RightToLeft: &rightToLeft}))
	var file bytes.Buffer
	require.NoError(t, book.Write(&file))
	body, kind := apptest.Form(t, "application/octet-stream", file.Bytes())
	a := c.With("Content-Type", kind).POST(contacts+"/import", body)
	toldOf(t, a, `{"success":true,"created":4,"failed":1,"errors":[{"row":9,"error":"optInEvidence: is required with optIn"}]}`)
	told := apitest.Read[spreadsheet.ImportResult](a)
	require.Equal(t, []string{"hidden column E", "hidden row 5"}, told.Columns.Ignored)
	for name, phones := range map[string][]string{"Chaitali": {"919812345711"}, "Bhargav": {"919812345712", "919812345714"}, "Indu": {""}} {
		appears(t, c, name)
		var found []string
		for _, p := range people(t, c, "?search="+name) {
			require.Equal(t, []any{true, "Form 9", (*string)(nil)}, []any{p.OptIn, *p.OptInEvidence, p.Email}, name)
			phone := ""
			if p.Phone != nil {
				phone = *p.Phone
			}
			found = append(found, phone)
		}
		require.ElementsMatch(t, phones, found, name)
	}
}
