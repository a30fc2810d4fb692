package audithttp_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/cli"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
)

// dealings makes changes of all sorts, most of them as one clerk.
func dealings(t *testing.T, o *apptest.Server) (clerk *apitest.Client, account int64, row apptest.BankRow) {
	t.Helper()
	apptest.TodayIn(t, o) // the test records all changes on one day
	clerk = o.Clerk(o.Home)
	account = apptest.Open(clerk, "HDFC")
	row = apptest.Post(clerk, account, `{"date":"2025-03-01","in_entries":[{"description":"Ramesh, 2 rings","amount":12.5}]}`)
	clerk.With("Bahi-Reason", "typed twice").PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":"2025-03-02",`+
		`"in_entries":[{"description":"Ramesh, 2 rings","amount":1.25}],"out_entries":[{"amount":3}]}`, row.ID)).Status(200)
	clerk.PUT(fmt.Sprintf("/bank/%d", account), `{"name":"HDFC Rajkot"}`).Status(200)
	rows := apptest.Posted(clerk.POST(apptest.Ledger(account, "/rows"),
		apptest.Bulk(apptest.Deposit("2025-03-05", "1"), apptest.Deposit("2025-03-06", "2"))).Status(201))
	clerk.POST(apptest.At(account, row.ID, "/reverse"), `{"reason":"wrong party","date":"2025-03-07"}`).Status(201)
	clerk.POST(apptest.At(account, rows[0].ID, "/void"), `{"reason":"bounced"}`).Status(200)
	o.Clerk(o.Home).DELETE(apptest.At(account, rows[1].ID)).Status(204)
	clerk.PUT("/books/lock", `{"locked_through":"2025-01-31"}`).Status(200)
	clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-01-31", "1")).Status(409)
	return clerk, account, row
}

func TestTrailShowsActorChangeAndReason(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk, account, row := dealings(t, o)
	got := apptest.TrailOf(o.Auditor(o.Home), "")
	clerk.GET(apptest.At(account, row.ID)).Status(200).JSON(&row)
	require.Equal(t, []string{
		`bank opened name:null>"HDFC"`,
		`bankrow added date:null>"2025-03-01" in_entries[0].amount:null>12.5 in_entries[0].description:null>"Ramesh, 2 rings"`,
		`bankrow edited date:"2025-03-01">"2025-03-02" in_entries[0].amount:12.5>1.25 out_entries[0].amount:null>3`,
		`bank renamed name:"HDFC">"HDFC Rajkot"`,
		`bankrow added date:null>"2025-03-05" in_entries[0].amount:null>1`,
		`bankrow added date:null>"2025-03-06" in_entries[0].amount:null>2`,
		fmt.Sprintf(`bankrow added date:null>"2025-03-07" in_entries[0].amount:null>3 out_entries[0].amount:null>1.25 `+
			`out_entries[0].description:null>"Ramesh, 2 rings" reverses:null>%d`, row.ID),
		fmt.Sprintf(`bankrow reversed reversed_by:null>%d`, row.ReversedBy),
		`bankrow voided void:null>true`,
		`bankrow deleted date:"2025-03-06">null in_entries[0].amount:2>null`,
		`bookslock locked locked_through:null>"2025-01-31"`,
	}, got.Short(), "without refused commands")
	require.Equal(t, []string{"", "", "typed twice", "", "", "", "wrong party", "wrong party", "bounced", "", ""},
		apptest.Each(got.Changes, func(c apptest.TrailChange) string { return c.Reason }))
	for i, c := range got.Changes {
		require.Equal(t, o.Home, c.Workspace)
		if c.Kind == "bookslock" {
			require.Equal(t, o.Home, c.ID)
			continue
		}
		require.Equal(t, account, c.Account.ID)
		require.Equal(t, map[bool]string{true: "HDFC", false: "HDFC Rajkot"}[i < 3], c.Account.Name, "with its name at the time")
		require.Equal(t, "bank", c.Ledger)
		require.Equal(t, i == 9, c.Actor != got.Changes[0].Actor)
	}
	h := apitest.Read[[]apptest.Change](clerk.GET(apptest.At(account, row.ID, "/history")).Status(200))
	require.Equal(t, h[1].Position, got.Changes[2].Position)
	require.Equal(t, o.Sys.Store.ID().String(), got.Drawn.Store)
	require.LessOrEqual(t, got.Changes[10].Position, got.Drawn.Position)
	require.Empty(t, got.Restatements)
}

func TestTrailShowsBothSealsOfAPeriodThatWasReopened(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk, operator := o.Clerk(o.Home), o.Operator().With("Bahi-Workspace", o.Home)
	account := apptest.Open(clerk, "HDFC")
	digest := func() string {
		var seal struct{ Digest string }
		require.NoError(t, json.Unmarshal([]byte(clerk.POST("/books/periods", `{"through":"2025-03-31"}`).Status(201).Text), &seal))
		return seal.Digest
	}
	first := digest()
	operator.POST("/books/periods/2025-03-31/reopen", `{"reason":"a late bill"}`).Status(200)
	apptest.Post(clerk, account, apptest.Deposit("2025-03-31", "1"))
	second := digest()
	auditor := o.Auditor(o.Home)
	got := apptest.TrailOf(auditor, "?kind=period")
	require.Equal(t, []string{
		fmt.Sprintf(`period closed through:null>"2025-03-31" digest:null>%q`, first),
		fmt.Sprintf(`period reopened through:"2025-03-31">null digest:%q>null`, first),
		fmt.Sprintf(`period closed through:null>"2025-03-31" digest:null>%q`, second),
	}, got.Short())
	require.NotEqual(t, first, second)
	require.Equal(t, "a late bill", got.Changes[1].Reason)
	require.Len(t, apptest.TrailOf(auditor, "?kind=period&by=effective&from=2025-03-31&to=2025-03-31").Changes, 3)
	require.Empty(t, apptest.TrailOf(auditor, "?kind=period&by=effective&from=2025-04-01").Changes)
	csv := auditor.GET("/audit/trail?kind=period&format=csv").Status(200).Text
	require.Contains(t, csv, first)
	auditor.GET("/audit/trail?kind=period&format=pdf").Status(200)
}

func TestTrailShowsWhatAPolisherWasAndIs(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	var salim struct{ ID int64 }
	require.NoError(t, json.Unmarshal([]byte(clerk.POST("/polisher", `{"name":"Salim","type":0}`).Status(201).Text), &salim))
	one := fmt.Sprint("/polisher/", salim.ID)
	clerk.PUT(one, `{"type":2}`).Status(200)
	clerk.PUT(one, `{"type":1,"name":"Noor"}`).Status(200)
	clerk.DELETE(one).Status(204)
	require.Equal(t, []string{
		`polisher opened name:null>"Salim" type:null>0`, `polisher edited type:0>2`, `polisher renamed name:"Salim">"Noor"`,
		`polisher edited type:2>1`,
		`polisher deleted name:"Noor">null type:1>null`,
	}, apptest.TrailOf(o.Auditor(o.Home), "?kind=polisher").Short())
}

func TestTrailFiltersByRecordPartyUserAndDay(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk, account, row := dealings(t, o)
	other := apptest.Open(clerk, "રમેશભાઈ")
	apptest.Post(clerk, other, apptest.Deposit("2025-04-01", "7"))
	foreign := o.Clerk(o.Abroad)
	apptest.Post(foreign, apptest.Open(foreign, "ICICI"), apptest.Deposit("2025-03-05", "1"))
	auditor := o.Auditor(o.Home)
	all := apptest.TrailOf(auditor, "")
	require.Len(t, all.Changes, 13)
	zone, err := o.Sys.Settings.Zone()
	require.NoError(t, err)
	today := all.Changes[0].RecordedAt.In(zone).Format(time.DateOnly) // now may be the next day already
	for query, want := range map[string]int{
		fmt.Sprintf("?account=%d", account):                          10,
		fmt.Sprintf("?account=%d", other):                            2,
		fmt.Sprintf("?account=%d&kind=bankrow", account):             8,
		fmt.Sprintf("?kind=bank&id=%d", account):                     2,
		fmt.Sprintf("?kind=bankrow&id=%d", row.ID):                   3,
		fmt.Sprintf("?kind=bankrow&id=%d&account=%d", row.ID, other): 0,
		"?kind=bankrow":                  9,
		"?kind=bank":                     3,
		"?kind=bookslock":                1,
		"?kind=bookslock&id=" + o.Abroad: 0,
		"?user=" + all.Changes[0].Actor:  12,
		"?user=" + strings.TrimPrefix(all.Changes[9].Actor, "api_key:"): 1,
		"?user=nobody":  0,
		"?party=ramesh": 4,
		"?party=RAJKOT": 7,
		"?party=" + "%E0%AA%B0%E0%AA%AE%E0%AB%87%E0%AA%B6": 2,
		"?party=%25":                                  0,
		"?from=" + today:                              13,
		"?to=2025-01-01":                              0,
		"?period=" + today[:4]:                        13,
		"?period=FY%202024-25":                        0,
		"?period=FY2024-2025":                         0,
		"?by=effective&period=FY%202024-25":           9,
		"?by=effective&period=2025-04":                1,
		"?by=effective&from=2025-03-02&to=2025-03-05": 4,
		"?by=effective&from=2025-03-01&to=2025-03-01": 2,
	} {
		require.Len(t, apptest.TrailOf(auditor, query).Changes, want, "%s", query)
	}
	require.Equal(t, []string{"2024-04-01", "2025-03-31", "effective", "FY 2024-25"}, func() []string {
		d := apptest.TrailOf(auditor, "?by=effective&period=FY%202024-25").Days
		return []string{d.From, d.To, d.By, d.Period}
	}())
	require.Len(t, apptest.TrailOf(o.Auditor(o.Abroad), "").Changes, 2)
	require.Len(t, apptest.TrailOf(o.Operator(), "").Changes, 15)
	require.Len(t, apptest.TrailOf(o.Operator(), "?workspace="+o.Abroad).Changes, 2)
}

// Metadata written past Bahi may read differently in Go and in SQL.
func TestAmbiguousMetadataCannotHideAChange(t *testing.T) {
	t.Parallel()
	const home = "abcdefab-1111-4111-8111-111111111111"
	o := apptest.Start(t)
	clerk, auditor := o.Clerk(home), o.Auditor(home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	write := func(stream, kind, data, meta string) {
		e := event.Proposed{ID: uuid.New(), Type: kind, Data: []byte(data),
			Meta: []byte(`{"schema":1,"occurred_at":"2025-03-02T10:00:00Z",` + meta + `}`)}
		_, err := o.Sys.Store.Append(t.Context(), eventstore.To(stream, eventstore.Any, e))
		require.NoError(t, err)
	}
	own := `"workspace":"` + home + `","actor":"user:x"`
	for i, meta := range []string{
		own + `,"follow_up_of":0`, own + `,"follow_up_of":2,"FOLLOW_UP_OF":0`, own + `,"follow_up_of":2,"follow_up_\u004ff":0`,
		`"actor":"user:x","workspace":"` + strings.ToUpper(home) + `"`,
		`"actor":"user:x","workspace":"` + strings.ReplaceAll(home, "-", "") + `"`,
		`"actor":"user:x","workspace":"` + o.Abroad + `","Workspace":"` + home + `"`,
		`"actor":"user:x","workspace":"\u0061` + home[1:] + `"`,
		`"workspace":"` + home + `","actor":"user\u003ax"`,
		`"workspace":"` + home + `","actor":"nobody","Actor":"user:x"`,
	} {
		stream := fmt.Sprintf("bankrow-%d", row.ID)
		write(stream, "BankRowEdited", fmt.Sprintf(`{"in_entries":[{"amount":%d}]}`, i+2), meta)
		require.Equal(t, fmt.Sprintf("03-01 %d", i+2), apptest.Balances(clerk, apptest.Ledger(account)), meta)
		for _, query := range []string{"", fmt.Sprintf("?account=%d", account), fmt.Sprintf("?kind=bankrow&id=%d", row.ID), "?user=x"} {
			changes := apptest.TrailOf(auditor, query).Changes
			require.NotEmpty(t, changes, "%s: %s", query, meta)
			require.Contains(t, apptest.Trail{Changes: changes[len(changes)-1:]}.Short()[0], fmt.Sprintf("in_entries[0].amount:%d>%d", i+1, i+2),
				"%s: %s", query, meta)
		}
	}
	write("bookslock-"+home, "BooksLockMoved", `{"to":"2025-01-31"}`, own+`,"follow_up_of":2`)
	changes := apptest.TrailOf(auditor, "?kind=bookslock").Changes
	require.Len(t, changes, 1)
	require.Equal(t, "user:x", changes[0].Actor)
	require.Empty(t, apptest.TrailOf(o.Auditor(o.Abroad), "").Changes)
}

func TestImpossibleTrailFilterIsRefused(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk, auditor := o.Clerk(o.Home), o.Auditor(o.Home)
	account := apptest.Open(clerk, "HDFC")
	for query, wrong := range map[string][2]string{
		"from=2025-03-02&to=2025-03-01": {"from", "must not be after to"},
		"from=2199-01-01":               {"from", "must not be in the future"},
		"period=FY%202190-91":           {"period", "must not be in the future"},
		"period=2025&from=2025-01-01":   {"period", "cannot be given together with from or to"},
		"period=FY%202025-27":           {"period", "expected a fiscal year such as FY 2026-27, a year such as 2026, or a month such as 2026-04"},
		"period=2026-%2B4":              {"period", "expected a fiscal year such as FY 2026-27, a year such as 2026, or a month such as 2026-04"},
		"period=last%20year":            {"period", "expected a fiscal year such as FY 2026-27, a year such as 2026, or a month such as 2026-04"},
		"period=2025-13":                {"period", "expected a fiscal year such as FY 2026-27, a year such as 2026, or a month such as 2026-04"},
		"id=7":                          {"id", "requires kind"},
		"kind=bankrow&id=x":             {"id", "expected a number"},
		"kind=bookslock&id=7":           {"id", "expected a workspace's id"},
		"kind=bookslock&party=x":        {"party", "has no lock of its own"},
		fmt.Sprintf("kind=bookslock&account=%d", account): {"account", "has no lock of its own"},
		"kind=bank&by=effective&from=2025-01-01":          {"by", "accounts bear no day, only rows do and the lock"},
		"party=":                                          {"party", "must not be empty"},
		"user=asha@example.org": {"user", "expected an id, or an actor such as user:<id>: names and addresses are " +
			"sealed in the log"},
		"user=Asha%20Soni": {"user", "expected an id, or an actor such as user:<id>: names and addresses are sealed in the log"},
	} {
		auditor.GET("/audit/trail?"+query).Problem(422, "Validation error", wrong[0], wrong[1])
	}
	auditor.GET("/audit/trail?account=99999").Problem(404, "Account not found")
	foreign := apptest.Open(o.Clerk(o.Abroad), "ICICI")
	auditor.GET(fmt.Sprintf("/audit/trail?account=%d", foreign)).Problem(404, "Account not found")
	auditor.GET("/audit/trail?workspace="+o.Abroad).Problem(404, "Workspace not found")
	auditor.With("Bahi-Min-Position", "999999").GET("/audit/trail").Problem(422, "The log does not reach that position yet")
}

func TestTheTrailAsCSVIsSafeInASpreadsheet(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	account := apptest.Open(clerk, "=HYPERLINK(1)")
	clerk.With("Bahi-Reason", "@SUM(A1)").POST(apptest.Ledger(account), `{"date":"2025-03-01","in_entries":[{"description":"-2+3\",=1",`+
		`"amount":5},{"description":"नकद, \"शुद्ध\"","amount":1}],"out_entries":[{"description":"+1","amount":2}]}`).Status(201)
	a := o.Auditor(o.Home).GET("/audit/trail?format=csv").Status(200)
	require.Equal(t, "text/csv; charset=utf-8", a.Header("Content-Type"))
	require.Equal(t, "attachment; filename=audit-trail.csv", a.Header("Content-Disposition"))
	text, marked := strings.CutPrefix(a.Text, "\ufeff")
	require.True(t, marked)
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"section", "position", "recorded_at", "workspace", "actor", "reason", "change", "kind", "id", "ledger",
		"account_id", "account", "date", "field", "from", "to"}, lines[0])
	require.Len(t, lines, 1+1+7+1)
	for _, line := range lines[1:] {
		for i, value := range line {
			require.False(t, value != "" && strings.ContainsAny(value[:1], "=+-@"), "column %s: %s", lines[0][i], value)
		}
	}
	require.Equal(t, []string{"'=HYPERLINK(1)", "", "name", "", "'=HYPERLINK(1)"}, lines[1][11:])
	require.Equal(t, "'@SUM(A1)", lines[2][5])
	require.Equal(t, []string{"5", "'-2+3\",=1", "1", "नकद, \"शुद्ध\"", "2", "'+1"},
		apptest.Each(lines[3:9], func(line []string) string { return line[15] }))
	last := lines[len(lines)-1]
	require.Equal(t, []string{"drawn_from", o.Sys.Store.ID().String()}, []string{last[0], last[8]})
	drawn, err := strconv.ParseInt(last[1], 10, 64)
	require.NoError(t, err)
	require.LessOrEqual(t, drawn, o.Head())
}

func TestTrailBeforeTheFirstEventSaysSo(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	apptest.Open(o.Clerk(o.Home), "HDFC")
	auditor := o.Auditor(o.Home)
	require.NotContains(t, auditor.GET("/audit/trail?to=2025-01-01").Status(200).Text, "recorded_at")
	require.Contains(t, auditor.GET("/audit/trail?to=2025-01-01&format=csv").Status(200).Text, "drawn_from,0,,")
	text := apptest.Words(t, auditor.GET("/audit/trail?to=2025-01-01&format=pdf"))
	require.Contains(t, text, "at position 0, before the first event")
	require.Contains(t, text, "Nothing was changed.")
	require.Contains(t, text, "Books of workspace "+o.Home)
}

func TestBackDatedChangesRestateClosingBalances(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	now, err := time.Parse(time.DateOnly, apptest.TodayIn(t, o))
	require.NoError(t, err)
	clerk, auditor := o.Clerk(o.Home), o.Auditor(o.Home)
	account, quiet := apptest.Open(clerk, "HDFC"), apptest.Open(clerk, "SBI")
	monthEnd := func(ago int) string {
		return time.Date(now.Year(), now.Month()-time.Month(ago)+1, 0, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	}
	first := time.Date(now.Year(), now.Month()-2, 1, 0, 0, 0, 0, time.UTC)
	row := apptest.Post(clerk, account, apptest.Deposit(first.Format(time.DateOnly), "100"))
	apptest.Post(clerk, quiet, apptest.Deposit(first.Format(time.DateOnly), "1"))
	o.Past(int(now.Sub(first).Hours()/24) - 1) // recorded on the second of that month

	require.Empty(t, apptest.TrailOf(auditor, "").Restatements, "a row posted in its month moves no closing balance")
	edited := clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, apptest.Entry("40"))).Status(200)
	apptest.Post(clerk, account, apptest.Deposit(monthEnd(1), "5"))
	apptest.Post(clerk, account, apptest.Deposit(now.Format(time.DateOnly), "1000"))
	late := apptest.Post(clerk, quiet, apptest.Deposit(first.Format(time.DateOnly), "9"))
	clerk.DELETE(apptest.At(quiet, late.ID)).Status(204)
	clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":[{"amount":40,"description":"rings"}]}`, row.ID)).Status(200)
	got := apptest.TrailOf(auditor, "")
	short := func(t apptest.Trail) (lines []string) {
		for _, r := range t.Restatements {
			lines = append(lines, fmt.Sprintf("%s %s %s %s>%s by %d", r.Account.Name, r.Closing, r.Unit, *r.From, *r.To, r.Changes))
		}
		return lines
	}
	require.Equal(t, []string{
		"HDFC " + monthEnd(2) + " cash 100>40 by 1", "HDFC " + monthEnd(1) + " cash 100>45 by 2",
	}, short(got), "without balances that moved back, and changes without an amount")
	for _, r := range got.Restatements {
		require.Equal(t, strings.HasSuffix(r.Closing, "-03-31"), r.FiscalYear != "")
	}
	require.Empty(t, apptest.TrailOf(auditor, fmt.Sprintf("?account=%d", quiet)).Restatements)
	require.Empty(t, apptest.TrailOf(auditor, "?to="+first.AddDate(0, 0, 2).Format(time.DateOnly)).Restatements)
	require.Len(t, apptest.TrailOf(auditor, "?from="+now.Format(time.DateOnly)).Restatements, 2)
	require.Equal(t, edited.Header("Bahi-Position"), strconv.FormatInt(got.Changes[4].Position, 10))

	clerk.DELETE(fmt.Sprintf("/bank-account/%d", account)).Status(204)
	deleted := apptest.TrailOf(auditor, "?kind=bank")
	require.Len(t, deleted.Restatements, 2)
	require.Nil(t, deleted.Restatements[0].To)
	require.Equal(t, "40", deleted.Restatements[0].From.String())
	lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(auditor.GET("/audit/trail?format=csv").Status(200).Text,
		"\ufeff"))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"restatement", "HDFC", monthEnd(2), "cash", "100", ""},
		append([]string{lines[len(lines)-3][0]}, lines[len(lines)-3][11:]...))
}

func TestTheTrailIsWrittenFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	_, account, _ := dealings(t, o)
	out, wrong, status := apptest.Attached(t, o, "audit", "trail", "--workspace", o.Home)
	require.Equal(t, 0, status, wrong)
	require.Equal(t, o.Auditor(o.Home).GET("/audit/trail?format=csv").Status(200).Text[:500], out[:500])
	out, wrong, status = apptest.Attached(t, o, "audit", "trail", "--format", "json", "--account", strconv.FormatInt(account, 10),
		"--kind", "bank")
	require.Equal(t, 0, status, wrong)
	var got apptest.Trail
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.Changes, 2)
	file := filepath.Join(t.TempDir(), "trail.pdf")
	_, wrong, status = apptest.Attached(t, o, "audit", "trail", "--format", "pdf", "-o", file)
	require.Equal(t, 0, status, wrong)
	text := worktest.File(t, file)
	require.True(t, strings.HasPrefix(string(text), "%PDF-1."))
	for args, why := range map[string]string{
		"--format pdf -o " + file: "file exists", "--from tomorrow": "; from: expected a date",
		"--kind sheep":    `kind: expected value to be one of "bank, bankrow`,
		"--account 99999": "Account not found", "--id 7": "id: requires kind",
	} {
		_, wrong, status := apptest.Attached(t, o, append([]string{"audit", "trail"}, strings.Fields(args)...)...)
		require.Equal(t, 1, status, args)
		require.Contains(t, wrong, why)
	}
}

func TestLongTrailIsComplete(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk, auditor := o.Clerk(o.Home), o.Auditor(o.Home)
	account := apptest.Open(clerk, "HDFC")
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = apptest.Deposit("2025-03-01", "1")
	}
	for range 2 {
		clerk.POST(apptest.Ledger(account, "/rows"), apptest.Bulk(rows...)).Status(201)
	}
	for _, query := range []string{"", fmt.Sprintf("&account=%d", account)} {
		lines, err := csv.NewReader(strings.NewReader(auditor.GET("/audit/trail?format=csv" + query).Status(200).Text)).ReadAll()
		require.NoError(t, err)
		require.Len(t, lines, 1+1+2*2000+1)
		require.Len(t, apptest.TrailOf(auditor, "?format=json"+query).Changes, 2001)
		require.Regexp(t, `/Type /Pages\n.*\n/Count [1-9]\d+\n`, auditor.GET("/audit/trail?format=pdf"+query).Status(200).Text)
	}
}

func TestTrailShowsOrdersAndTakadasAlsoWhereAnotherRecordEndedThem(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	made := func(c *apitest.Client, path, body string, values ...any) (id, item int64) {
		var one struct {
			ID    int64
			Items []struct{ ID int64 }
		}
		require.NoError(t, json.Unmarshal([]byte(c.POST(path, fmt.Sprintf(body, values...)).Status(201).Text), &one))
		for _, i := range one.Items {
			item = i.ID
		}
		return one.ID, item
	}
	meena, _ := made(clerk, "/client", `{"name":"Meena"}`)
	const piece = `"items":[{"item_name":"ring","weight":2}]`
	first, firstItem := made(clerk, "/client-order", `{"client_id":%d,"slip_number":"12","date":"2025-03-01",%s}`, meena, piece)
	second, secondItem := made(clerk, "/client-order", `{"client_id":%d,"date":"2025-03-02",%s}`, meena, piece)
	one, _ := made(clerk, "/takada", `{"client_order_id":%d,"date":"2025-03-05",%s}`, first, piece)
	other, _ := made(clerk, "/takada", `{"client_order_id":%d,"date":"2025-03-06",%s}`, second, piece)
	clerk.With("Bahi-Reason", "typo").PUT(fmt.Sprint("/client-order/", first), `{"slip_number":null,"delivery_date":"2025-03-31"}`).Status(200)
	clerk.PUT(fmt.Sprint("/takada/", one), `{"items":[{"item_name":"ring","weight":1.5,"quantity":3}]}`).Status(200)
	clerk.With("Bahi-Reason", "twice").DELETE(fmt.Sprint("/client-order/", second)).Status(204)
	clerk.PUT(fmt.Sprint("/client/", meena), `{"name":"Meena Shah"}`).Status(200)
	clerk.With("Bahi-Reason", "moved away").DELETE(fmt.Sprint("/client/", meena)).Status(204)
	foreign := o.Clerk(o.Abroad)
	stranger, _ := made(foreign, "/client", `{"name":"Stranger"}`)
	made(foreign, "/client-order", `{"client_id":%d,"date":"2025-03-01",%s}`, stranger, piece)

	auditor := o.Auditor(o.Home)
	trail := apptest.TrailOf(auditor, "")
	require.Equal(t, []string{
		`client opened name:null>"Meena"`,
		fmt.Sprintf(`clientorder added client_id:null>%d date:null>"2025-03-01" items[0].id:null>%d items[0].item_name:null>"ring" `+
			`items[0].making_charge:null>0 items[0].weight:null>2 slip_number:null>"12"`, meena, firstItem),
		fmt.Sprintf(`clientorder added client_id:null>%d date:null>"2025-03-02" items[0].id:null>%d items[0].item_name:null>"ring" `+
			`items[0].making_charge:null>0 items[0].weight:null>2`, meena, secondItem),
		fmt.Sprintf(`takada added client_order_id:null>%d date:null>"2025-03-05" items[0].item_name:null>"ring" items[0].weight:null>2`, first),
		fmt.Sprintf(`takada added client_order_id:null>%d date:null>"2025-03-06" items[0].item_name:null>"ring" items[0].weight:null>2`, second),
		`clientorder edited delivery_date:null>"2025-03-31" slip_number:"12">null`,
		`takada edited items[0].quantity:null>3 items[0].weight:2>1.5`,
		fmt.Sprintf(`clientorder deleted client_id:%d>null date:"2025-03-02">null items[0].id:%d>null items[0].item_name:"ring">null `+
			`items[0].making_charge:0>null items[0].weight:2>null`, meena, secondItem),
		fmt.Sprintf(`takada deleted client_order_id:%d>null date:"2025-03-06">null items[0].item_name:"ring">null items[0].weight:2>null`,
			second),
		`client renamed name:"Meena">"Meena Shah"`,
		`client deleted name:"Meena Shah">null`,
		fmt.Sprintf(`clientorder deleted client_id:%d>null date:"2025-03-01">null delivery_date:"2025-03-31">null items[0].id:%d>null `+
			`items[0].item_name:"ring">null items[0].making_charge:0>null items[0].weight:2>null`, meena, firstItem),
		fmt.Sprintf(`takada deleted client_order_id:%d>null date:"2025-03-05">null items[0].item_name:"ring">null items[0].quantity:3>null `+
			`items[0].weight:1.5>null`, first),
	}, trail.Short())
	require.Equal(t, []string{"", "", "", "", "", "typo", "", "twice", "twice", "", "moved away", "moved away", "moved away"},
		apptest.Each(trail.Changes, func(c apptest.TrailChange) string { return c.Reason }))
	for i, c := range trail.Changes {
		require.Equal(t, meena, c.Account.ID)
		require.Equal(t, map[bool]string{true: "Meena", false: "Meena Shah"}[i < 9], c.Account.Name, "as the client was called then")
	}
	for query, want := range map[string]int{
		"?kind=clientorder": 5,
		"?kind=takada":      5,
		fmt.Sprintf("?kind=clientorder&id=%d", first): 3,
		fmt.Sprintf("?kind=takada&id=%d", other):      2,
		fmt.Sprintf("?kind=takada&id=%d", one):        3,
		fmt.Sprintf("?account=%d", meena):             13,
		fmt.Sprintf("?account=%d&kind=takada", meena): 5,
		"?party=RING": 10,
		"?by=effective&from=2025-03-05&to=2025-03-31":      5,
		"?user=" + trail.Changes[0].Actor + "&kind=takada": 5,
	} {
		require.Len(t, apptest.TrailOf(auditor, query).Changes, want, query)
	}
	require.Contains(t, auditor.GET("/audit/trail?format=csv&kind=clientorder").Status(200).Text, "slip_number,12,")
	text := apptest.Words(t, auditor.GET("/audit/trail?format=pdf").Status(200))
	require.Contains(t, text, fmt.Sprintf("Takada %d of Meena (client %d) edited", one, meena))
	require.Contains(t, text, fmt.Sprintf("Order %d of Meena Shah (client %d) deleted", first, meena))
}

func TestMain(m *testing.M) { apptest.Main(m, cli.Run) }
