package ledgerhttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

// ledgerSummary are small books of every kind: a bank, a dealer, two clients, one of them a debtor, a karigar and a polisher.
type ledgerSummary struct {
	*apitest.Client

	hdfc, dealer, meena, asha, imran, salim int64
	row                                     int64 // of the dealer's cut
}

func openBooks(t *testing.T) (s ledgerSummary) {
	t.Helper()
	s.Client = apptest.Clerk(t)
	open := func(path, body string) int64 {
		a := apitest.Read[shown](s.POST(path, body).Status(201))
		return a.ID
	}
	s.hdfc, s.dealer = open("/bank", `{"name":"HDFC"}`), open("/bullion", `{"name":"Zaveri Bazaar"}`)
	s.meena, s.asha = open("/client", `{"name":"मीना शाह"}`), open("/client", `{"name":"Asha"}`)
	s.imran, s.salim = open("/karigar", `{"name":"Imran"}`), open("/polisher", `{"name":"Salim","type":0}`)
	post := func(kind string, account int64, body string) shown {
		return apitest.Read[shown](s.POST(fmt.Sprintf("/%s-ledger/%d", kind, account), body).Status(201))
	}
	post("bank", s.hdfc, `{"date":"2025-03-01","in_entries":[{"description":"Opening","amount":1000}]}`)
	post("bank", s.hdfc, `{"date":"2025-03-02","out_entries":[{"description":"=Rent","amount":250.50}]}`)
	s.row = post("bullion", s.dealer, `{"date":"2025-03-02","out_entries":[{"kind":"rate_cut","fine_weight":10,"rate":7000}]}`).ID
	post("client", s.meena, `{"date":"2025-03-02","out_entries":[{"item_name":"पायल","weight":100,"touch":92,"making_charge":500}]}`)
	post("client", s.asha, `{"date":"2025-03-03","in_entries":[{"fine_weight":5,"amount":40}]}`)
	post("karigar", s.imran, `{"date":"2025-03-03","out_entries":[{"weight":500,"touch":99.5}]}`)
	post("polisher", s.salim, `{"date":"2025-03-03","in_entries":[{"weight":98.5,"loss_weight":1.5,"amount":60}]}`)
	return s
}

const noBooks = `{"kind":"bank","accounts":0,"cash":{"net":0}}`

func none(kind string) string {
	return fmt.Sprintf(`{"kind":%q,"accounts":0,"cash":{"we_owe":0,"they_owe":0,"net":0},"crystal":{"we_owe":0,"they_owe":0,"net":0}}`, kind)
}

func TestTheSummaryAddsUpEveryKindOfAccount(t *testing.T) {
	t.Parallel()
	s := openBooks(t)
	read := s.GET("/books/summary?as_of=2025-03-02").Status(200)
	position := read.Header("Bahi-Position")
	const day = `{"date":"2025-03-02","kinds":[
		{"kind":"bank","rows":1,"cash_in":0,"cash_out":250.5},
		{"kind":"bullion","rows":1,"cash_in":70000,"cash_out":0,"crystal_in":0,"crystal_out":10},
		{"kind":"client","rows":1,"cash_in":0,"cash_out":500,"crystal_in":0,"crystal_out":92},
		{"kind":"karigar","rows":0,"cash_in":0,"cash_out":0,"crystal_in":0,"crystal_out":0},
		{"kind":"polisher","rows":0,"cash_in":0,"cash_out":0,"crystal_in":0,"crystal_out":0}]}`
	early := fmt.Sprintf(`{"as_of":"2025-03-02","position":%s,"kinds":[
		{"kind":"bank","accounts":1,"cash":{"net":749.5}},
		{"kind":"bullion","accounts":1,"cash":{"we_owe":70000,"they_owe":0,"net":70000},"crystal":{"we_owe":0,"they_owe":10,"net":-10}},
		{"kind":"client","accounts":2,"cash":{"we_owe":0,"they_owe":500,"net":-500},"crystal":{"we_owe":0,"they_owe":92,"net":-92}},
		{"kind":"karigar","accounts":1,"cash":{"we_owe":0,"they_owe":0,"net":0},"crystal":{"we_owe":0,"they_owe":0,"net":0}},
		{"kind":"polisher","accounts":1,"cash":{"we_owe":0,"they_owe":0,"net":0},"crystal":{"we_owe":0,"they_owe":0,"net":0}}],`+
		`"day":%s}`, position, day)
	read.Body(early)
	s.With("Bahi-Reason", "struck").POST(fmt.Sprintf("/bullion-ledger/%d/row/%d/void", s.dealer, s.row), nil).Status(200)
	s.DELETE(fmt.Sprint("/karigar/", s.imran)).Status(204)
	s.GET("/books/summary?as_of=2025-03-02&known_at=" + position).Status(200).Body(early)

	now := apitest.Read[map[string]json.RawMessage](s.GET("/books/summary").Status(200))
	require.Equal(t, "null", string(now["as_of"]))
	require.JSONEq(t, `[{"kind":"bank","accounts":1,"cash":{"net":749.5}},
		{"kind":"bullion","accounts":1,"cash":{"we_owe":0,"they_owe":0,"net":0},"crystal":{"we_owe":0,"they_owe":0,"net":0}},
		{"kind":"client","accounts":2,"cash":{"we_owe":40,"they_owe":500,"net":-460},"crystal":{"we_owe":5,"they_owe":92,"net":-87}},
		`+none("karigar")+`,
		{"kind":"polisher","accounts":1,"cash":{"we_owe":60,"they_owe":0,"net":60},"crystal":{"we_owe":100,"they_owe":0,`+
		`"net":100}}]`, string(now["kinds"]))

	s.GET("/books/summary?as_of=tomorrow").Status(422)
	s.GET("/books/summary?from=2025-03-02").Problem(422, "Validation error", "from", "unknown parameter")
	apptest.Clerk(t).GET("/books/summary").Status(200).JSON(&now)
	require.JSONEq(t, "["+noBooks+","+none("bullion")+","+none("client")+","+none("karigar")+","+none("polisher")+"]", string(now["kinds"]),
		"another workspace's books are not in it")
}

// daybook is the response with a daybook.
type daybook struct {
	From, To string
	Position uint64
	Opening  decimal.Decimal `json:"opening_cash"`
	Closing  decimal.Decimal `json:"closing_cash"`
	Days     []struct {
		Date    string
		Opening decimal.Decimal `json:"opening_cash"`
		Closing decimal.Decimal `json:"closing_cash"`
		Rows    []bookRow
		Totals  []map[string]any
	}
}

type bookRow struct {
	Kind string
	ID   int64  `json:"account_id"`
	Name string `json:"account_name"`
	Row  shown
}

func TestTheDaybookHasTheRowsOfAllLedgersByDay(t *testing.T) {
	t.Parallel()
	today, s := apptest.TodayIn(t, apptest.Share(t)), openBooks(t)
	var book daybook
	a := s.GET("/books/daybook?from=2025-03-02&to=2025-03-03").Status(200)
	a.JSON(&book)
	require.Equal(t, a.Header("Bahi-Position"), fmt.Sprint(book.Position))
	require.Equal(t, []string{"2025-03-02", "2025-03-03", "1000", "749.5"},
		[]string{book.From, book.To, book.Opening.String(), book.Closing.String()})
	require.Len(t, book.Days, 2)
	first := book.Days[0]
	require.Equal(t, []string{"1000", "749.5"}, []string{first.Opening.String(), first.Closing.String()})
	var names []string
	for _, r := range first.Rows {
		names = append(names, r.Kind+" "+r.Name)
		require.Nil(t, r.Row.Balance)
		require.Nil(t, r.Row.Cash)
		require.Equal(t, first.Date, r.Row.Date)
	}
	require.Equal(t, []string{"bank HDFC", "bullion Zaveri Bazaar", "client मीना शाह"}, names)
	require.Equal(t, s.row, first.Rows[1].Row.ID)
	require.Equal(t, "rate_cut", first.Rows[1].Row.Out[0]["kind"])
	require.Equal(t, []map[string]any{
		{"kind": "bank", "cash_in": 0.0, "cash_out": 250.5},
		{"kind": "bullion", "cash_in": 70000.0, "cash_out": 0.0, "crystal_in": 0.0, "crystal_out": 10.0},
		{"kind": "client", "cash_in": 0.0, "cash_out": 500.0, "crystal_in": 0.0, "crystal_out": 92.0},
	}, first.Totals)
	require.Equal(t, []string{"2025-03-03", "749.5", "749.5"},
		[]string{book.Days[1].Date, book.Days[1].Opening.String(), book.Days[1].Closing.String()})

	for _, query := range []string{"", "&known_at=" + fmt.Sprint(book.Position)} {
		var sum struct {
			Day struct{ Newest []bookRow }
		}
		apptest.Lenient(t, s.GET("/books/summary?as_of=2025-03-02&newest=2"+query), &sum)
		require.Equal(t, []bookRow{first.Rows[2], first.Rows[1]}, sum.Day.Newest, query)
	}
	s.GET("/books/summary?newest=101").Status(422)

	for query, want := range map[string][]string{
		"":                               {today, today, "0"},
		"?to=2025-03-01":                 {"2025-03-01", "2025-03-01", "1"},
		"?from=2025-03-03":               {"2025-03-03", today, "1"},
		"?from=2199-01-01":               {"2199-01-01", "2199-01-01", "0"},
		"?from=2025-03-01&to=2025-03-31": {"2025-03-01", "2025-03-31", "3"},
	} {
		some := apitest.Read[daybook](s.GET("/books/daybook" + query).Status(200))
		require.Equal(t, want, []string{some.From, some.To, fmt.Sprint(len(some.Days))}, query)
	}
	s.GET("/books/daybook?from=2025-03-03&to=2025-03-02").Problem(422, "Validation error", "from", "must not be after to")
	s.GET("/books/daybook?format=csv").Status(422)
	s.GET("/books/daybook?as_of=2025-03-02").Problem(422, "Validation error", "as_of", "unknown parameter")
}

func TestTheSummaryHasTheNewestRowsOfTheDayBehindAThousandOthers(t *testing.T) {
	t.Parallel()
	s := apptest.Clerk(t)
	bank := made(s, "/bank", `{"name":"HDFC"}`)
	row := func(day string) string {
		return `{"date":"` + day + `","in_entries":[{"description":"x","amount":1}]}`
	}
	var done struct{ Rows []shown }
	two := `{"rows":[` + row("2025-03-02") + `,` + row("2025-03-02") + `]}`
	s.POST(fmt.Sprintf("/bank-ledger/%d/rows", bank), two).Status(201).JSON(&done)
	s.POST(fmt.Sprintf("/bank-ledger/%d/row/%d/void", bank, done.Rows[0].ID), `{"reason":"written twice"}`).Status(200)
	newest := func() (ids []int64) {
		var sum struct {
			Day struct{ Newest []bookRow }
		}
		apptest.Lenient(t, s.GET("/books/summary?as_of=2025-03-02&newest=5"), &sum)
		for _, r := range sum.Day.Newest {
			ids = append(ids, r.Row.ID)
		}
		return ids
	}
	want := []int64{done.Rows[1].ID, done.Rows[0].ID}
	require.Equal(t, want, newest())

	others := strings.TrimSuffix(strings.Repeat(row("2025-03-03")+",", 500), ",")
	for range 2 {
		s.POST(fmt.Sprintf("/bank-ledger/%d/rows", bank), `{"rows":[`+others+`]}`).Status(201)
	}
	require.Equal(t, want, newest())
}

// cells are the values of a sheet, line by line.
func cells(t *testing.T, a *apitest.Answer, name string) [][]string {
	t.Helper()
	file, err := excelize.OpenReader(bytes.NewReader([]byte(a.Text)))
	require.NoError(t, err)
	rows, err := file.GetRows(name)
	require.NoError(t, err)
	return rows
}

func TestTheDaybookIsASheet(t *testing.T) {
	t.Parallel()
	s := openBooks(t)
	rows := cells(t, s.GET("/books/daybook?from=2025-03-02&to=2025-03-02&format=xlsx").Status(200), "Daybook")
	var lines []string
	for _, r := range rows[1 : len(rows)-1] {
		lines = append(lines, strings.Join(append([]string{r[0], r[1], r[2]}, r[6:]...), "|"))
	}
	require.Equal(t, []string{
		"opening|2025-03-02|||||||1000",
		"out|2025-03-02|bank|=Rent||250.5",
		"in|2025-03-02|bullion|rate cut, counter|70000||0",
		"out|2025-03-02|bullion|rate cut, fine weight 10, rate 7,000, per gram||0||10",
		"out|2025-03-02|client|पायल, weight 100, touch 92, fine weight 92, making charge 500||500||92",
		"total|2025-03-02|bank||0|250.5",
		"total|2025-03-02|bullion||70000|0|0|10",
		"total|2025-03-02|client||0|500|0|92",
		"closing|2025-03-02|||||||749.5",
	}, lines)
	last := rows[len(rows)-1]
	require.Equal(t, "drawn_from", last[0])
	require.NotEmpty(t, last[5])
}

func TestAStatementForASpreadsheetHasALineForEachEntry(t *testing.T) {
	t.Parallel()
	s := openBooks(t)
	ledger := fmt.Sprint("/client-ledger/", s.meena)
	s.POST(ledger, `{"date":"2025-03-05","in_entries":[{"description":"=HYPERLINK(1)","amount":100.50},{"fine_weight":2}]}`).Status(201)
	a := s.GET(ledger + "/statement.csv?from=2025-03-03").Status(200)
	require.Equal(t, "text/csv", a.Header("Content-Type"))
	require.Contains(t, a.Header("Content-Disposition"), fmt.Sprintf("client-%d-statement.csv", s.meena))
	lines := strings.Split(strings.TrimSpace(strings.TrimPrefix(a.Text, "\ufeff")), "\n")
	require.Len(t, lines, 6)
	require.Equal(t, "line,id,date,item_name,slip_number,weight,touch,wastage_percent,wastage_weight,fine_weight,metal,making_charge,rate,"+
		"amount,description,void,reverses,reversed_by,cash_balance,crystal_balance", lines[0])
	require.Equal(t, "opening,,2025-03-03,,,,,,,,,,,,,,,,-500,-92", lines[1])
	require.Regexp(t, `^in,\d+,2025-03-05,,,,,,,,,,,100\.5,'=HYPERLINK\(1\),false,,,-399\.5,-90$`, lines[2])
	require.Regexp(t, `^in,\d+,2025-03-05,,,,,,,2,,,,,,false,,,-399\.5,-90$`, lines[3])
	require.Equal(t, "closing,,,,,,,,,,,,,,,,,,-399.5,-90", lines[4])
	require.Regexp(t, `^drawn_from,\d+,\d{4}-\d\d-\d\d,,,,,,,,,,,,,,,,,$`, lines[5])

	known := strings.Split(lines[5], ",")[1]
	require.JSONEq(t, `{"opening":{"cash_balance":-500,"crystal_balance":-92,"cash_position":"they_owe","crystal_position":"they_owe"},
		"cash_in":100.5,"cash_out":0,"crystal_in":2,"crystal_out":0,"closing":{"cash_balance":-399.5,"crystal_balance":-90,
		"cash_position":"they_owe","crystal_position":"they_owe"},"position":`+known+`}`,
		s.GET(ledger+"/totals?from=2025-03-03&known_at="+known).Status(200).Text)
	bank := apitest.Read[map[string]any](s.GET(fmt.Sprint("/bank-ledger/", s.hdfc, "/totals?to=2025-03-01")).Status(200))
	require.Equal(t, map[string]any{"balance": 0.0}, bank["opening"])

	again := s.GET(ledger + "/statement.xlsx?known_at=" + known).Status(200)
	rows := cells(t, again, "Statement")
	require.Len(t, rows, 7)
	require.Equal(t, []string{"out", "2025-03-02", "पायल", "100", "92", "-500", "-92"},
		[]string{rows[2][0], rows[2][2], rows[2][3], rows[2][5], rows[2][6], rows[2][18], rows[2][19]})
	require.Equal(t, "=HYPERLINK(1)", rows[3][14])
	s.GET(ledger + "/statement.csv?page=2").Status(422)
	s.GET(fmt.Sprint("/bank-ledger/", s.hdfc, "/statement.xlsx?to=2025-03-01")).Status(200)
	s.GET(fmt.Sprint("/bank-ledger/", s.meena, "/statement.csv")).Problem(404, "Bank account not found")
}

// Short lists and pages need no turn: a colleague's long answers do not delay them. A long list waits for its turn.
func TestShortListsAreReadBesideLongAnswers(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	c := o.Bearer(o.Key(o.Home, `{"ledger":"write"}`).Key)
	account := apptest.Open(c, "SBI")
	apptest.Post(c, account, apptest.Deposit("2025-03-01", "5"))
	long := apptest.Open(c, "HDFC")
	for range 51 {
		apptest.Post(c, long, apptest.Deposit("2025-03-01", "5"))
	}
	c.GET("/client-orders").Status(200)
	table := pgtest.Value[string](t, o.Sys.Pool, `select oid::regclass::text from pg_class where relname = 'client_order' and
		relkind = 'r'`)
	tx, err := o.Sys.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	pgtest.Exec(t, tx, `lock table `+table+` in access exclusive mode`)
	var drawing sync.WaitGroup
	for range 2 { // the turns of the workspace
		drawing.Go(func() { c.GET("/client-orders/pdf").Status(200) })
	}
	require.Eventually(t, func() bool {
		var waiting int
		err := tx.QueryRow(t.Context(), `select count(*) from pg_locks where not granted and relation = $1::regclass`, table).Scan(&waiting)
		return err == nil && waiting >= 2
	}, time.Minute, 10*time.Millisecond)
	for _, path := range []string{"/banks", apptest.Ledger(account), "/khata-uploads", apptest.Ledger(long) + "?page_size=60"} {
		c.GET(path).Status(200)
	}
	answered := make(chan struct{})
	drawing.Go(func() {
		c.GET(apptest.Ledger(long)).Status(200)
		close(answered)
	})
	select {
	case <-answered:
		require.Fail(t, "a long list needs no turn")
	case <-time.After(300 * time.Millisecond):
	}
	require.NoError(t, tx.Rollback(t.Context()))
	drawing.Wait()
}

// A statement can be drawn again, byte for byte, after the log is signed beyond its position. Then its newest checkpoint stays the last.
func TestPrintsAreHeadedByTheCompany(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Bearer(o.Key(o.Home, `{"ledger":"write","marketplace":"write"}`).Key)
	account := apptest.Open(clerk, "HDFC")
	prints := []string{apptest.Ledger(account, "/statement.pdf"), "/books/daybook?from=2025-03-01&to=2025-03-31&format=pdf",
		"/client-orders/pdf"}
	for _, path := range prints {
		require.Contains(t, apptest.Words(t, clerk.GET(path)), "Bahi", path)
	}
	nameless := o.Head()
	first := clerk.POST("/api/v1/companies", `{"name":"Soni Jewellers"}`).Status(201)
	for _, path := range prints {
		require.Contains(t, apptest.Words(t, clerk.GET(path)), "Soni Jewellers", path)
	}
	o.Signed()
	at := fmt.Sprintf("%s?known_at=%d", prints[0], o.Head())
	drawn := clerk.GET(at).Status(200).Text
	made := apitest.Read[map[string]any](first)
	company := fmt.Sprint("/api/v1/companies/", made["id"])
	clerk.POST("/api/v1/companies", `{"name":"Younger"}`).Status(201)
	apptest.Post(clerk, account, apptest.Deposit("2025-01-01", "1000"))
	clerk.PATCH(company, `{"name":"Soni and Sons"}`).Status(200)
	require.Contains(t, apptest.Words(t, clerk.GET(prints[0])), "Soni and Sons")
	require.Equal(t, drawn, clerk.GET(at).Status(200).Text)
	clerk.DELETE(company).Status(204)
	require.Contains(t, apptest.Words(t, clerk.GET(prints[0])), "Younger")
	require.Equal(t, drawn, clerk.GET(at).Status(200).Text)
	require.Contains(t, apptest.Words(t, clerk.GET(fmt.Sprintf("%s?known_at=%d", prints[0], nameless))), "Bahi")
}
