package ledgerhttp_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/http/ledgerhttp"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// samples are the inputs of the suite for a ledger. A new ledger is tested once it has them.
type samples struct {
	in, out []sample // of either side, at least two
}

// sample is an entry as a client sends it, and its effect on its side.
type sample struct {
	entry      string
	cash, fine string // decimals; "": no effect
}

// ledgerSamples has the samples of each ledger, by its name.
var ledgerSamples = map[string]samples{
	"bank": {
		in: []sample{{entry: `{"description":"Sale, bill 118","amount":1250.50}`, cash: "1250.50"}, {entry: `{"amount":0.01}`, cash: "0.01"}},
		out: []sample{{entry: `{"description":"₹ किराया <b>&amp; \"bill\" \\ ' -- 😀 é","amount":300}`, cash: "300"},
			{entry: `{"amount":9999999999999}`, cash: "9999999999999"}},
	},
	"bullion": {
		in: []sample{
			{entry: `{"item_name":"bar","weight":100,"touch":99.5}`, fine: "99.5"},
			{entry: `{"description":"by cheque","amount":0.01}`, cash: "0.01"},
			{entry: `{"kind":"metal","fine_weight":10,"rate":72000,"rate_unit":"per_10g"}`, fine: "10"},
		},
		out: []sample{
			{entry: `{"kind":"cash","amount":70000.50}`, cash: "70000.50"},
			{entry: `{"kind":"metal","item_name":"पाटला","fine_weight":0.001}`, fine: "0.001"},
		},
	},
	"client": {
		in: []sample{
			{entry: `{"item_name":"old gold","weight":10,"touch":91.6}`, fine: "9.16"},
			{entry: `{"description":"by cheque","amount":0.01}`, cash: "0.01"},
			{entry: `{"fine_weight":10,"rate":7000}`, cash: "70000"},
		},
		out: []sample{
			{entry: `{"item_name":"पायल","slip_number":"118","weight":100,"touch":92,"wastage_percent":3,"making_charge":1500}`, cash: "1500",
				fine: "95"},
			{entry: `{"weight":10,"touch":91.6,"rate":7000.50,"making_charge":500}`, cash: "64624.58"},
			{entry: `{"weight":100,"touch":92,"wastage_weight":2.5,"amount":7}`, cash: "7", fine: "94.5"},
		},
	},
	"karigar": {
		in: []sample{
			{entry: `{"item_name":"payal","pure_weight":520,"fine_percent":92,"wastage_percent":2,"other":1500}`, cash: "1500", fine: "488.8"},
			{entry: `{"wastage_weight":0.25}`, fine: "0.25"},
			{entry: `{"item_name":"labour","other":0.01}`, cash: "0.01"},
		},
		out: []sample{
			{entry: `{"item_name":"fine silver","weight":500,"touch":99.5}`, fine: "497.5"},
			{entry: `{"item_name":"चाँदी","weight":10,"fine_weight":9.5}`, fine: "9.5"},
			{entry: `{"fine_weight":1,"amount":700.50}`, cash: "700.5", fine: "1"},
		},
	},
	"polisher": {
		in: []sample{
			{entry: `{"item_name":"payal","weight":98.5,"loss_weight":1.5,"pieces":12,"rate":5,"amount":60}`, cash: "60", fine: "100"},
			{entry: `{"loss_weight":0.25}`, fine: "0.25"},
			{entry: `{"description":"labour","amount":0.01}`, cash: "0.01"},
		},
		out: []sample{
			{entry: `{"item_name":"पायल","weight":100,"pieces":12,"description":"urgent"}`, fine: "100"},
			{entry: `{"weight":0.001,"amount":700.50}`, cash: "700.5", fine: "0.001"},
		},
	},
}

func TestEveryLedgerHasSamplesAndPaths(t *testing.T) {
	t.Parallel()
	for _, l := range ledger.All {
		given := ledgerSamples[l.Name]
		require.True(t, len(given.in) > 1 && len(given.out) > 1, "ledger %s has no samples: give it some in ledgerSamples", l.Name)
		require.Contains(t, ledgerhttp.Served(), l.Name, "ledger %s has no paths: give it some in http/ledgerhttp/served.go", l.Name)
		metal := slices.ContainsFunc(slices.Concat(given.in, given.out), func(s sample) bool { return s.fine != "" })
		require.Equal(t, metal, l.Metal, "ledger %s: Metal is not what its samples say", l.Name)
	}
	for name := range ledgerhttp.Served() {
		require.NotNil(t, ledger.Named(name), "ledger %s is in no list: add it to All in domain/ledger/ledgers.go", name)
	}
}

// ledgerSuite has the tests over HTTP that all ledgers pass.
type ledgerSuite struct {
	*testing.T

	samples

	l  *book.Ledger
	at ledgerhttp.Paths

	clerk   *apitest.Client
	account int64
}

func TestEveryLedger(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	for _, l := range ledger.All {
		for name, test := range map[string]func(*ledgerSuite){
			"a row": (*ledgerSuite).row, "deletions": (*ledgerSuite).deletions, "answers": (*ledgerSuite).answers,
			"other accounts": (*ledgerSuite).others,
		} {
			t.Run(l.Name+", "+name, func(t *testing.T) {
				t.Parallel()
				s := &ledgerSuite{T: t, l: l, at: ledgerhttp.Served()[l.Name], samples: ledgerSamples[l.Name], clerk: clerk.In(t)}
				s.account = s.open("Imran")
				test(s)
			})
		}
	}
}

// shown is an account or a row in the form of a response.
type shown struct {
	ID       int64
	Name     string
	Type     *int
	Date     string
	Revision *int64
	In       []map[string]any `json:"in_entries"`
	Out      []map[string]any `json:"out_entries"`

	Balance         *decimal.Decimal
	Cash            *decimal.Decimal `json:"cash_balance"`
	Fine            *decimal.Decimal `json:"crystal_balance"`
	CashPosition    string           `json:"cash_position"`
	CrystalPosition string           `json:"crystal_position"`

	Warnings   json.RawMessage
	Reverses   int64
	ReversedBy int64 `json:"reversed_by"`
	Void       bool
}

var variable = regexp.MustCompile(`\{\w+\}`)

// of returns a path below the account's.
func (s *ledgerSuite) of(path string, rest ...any) string {
	return variable.ReplaceAllLiteralString(path, fmt.Sprint(s.account)) + fmt.Sprint(rest...)
}

func (s *ledgerSuite) open(name string) int64 {
	s.Helper()
	body := map[string]any{"name": name}
	if s.l.Types > 0 {
		body["type"] = s.l.Types - 1
	}
	a := apitest.Read[shown](s.clerk.POST(s.at.Open, body).Status(201))
	s.balances(a, "0", "0")
	return a.ID
}

// counts returns the sum of the samples' effects: IN less OUT.
func counts(in, out []sample) (cash, fine string) {
	var c, f decimal.Decimal
	number := func(text string) decimal.Decimal {
		if text == "" {
			return decimal.Zero
		}
		return decimal.RequireFromString(text)
	}
	for _, e := range in {
		c, f = c.Add(number(e.cash)), f.Add(number(e.fine))
	}
	for _, e := range out {
		c, f = c.Sub(number(e.cash)), f.Sub(number(e.fine))
	}
	return c.String(), f.String()
}

// balances compares the balances of a response with cash and fine metal.
func (s *ledgerSuite) balances(a shown, cash, fine string) {
	s.Helper()
	same := func(want string, got *decimal.Decimal, what string) {
		s.Helper()
		require.NotNil(s, got, what)
		require.Equal(s, decimal.RequireFromString(want).String(), got.String(), what)
	}
	if !s.l.Metal {
		same(cash, a.Balance, "balance")
		return
	}
	require.Nil(s, a.Balance, "cash and metal are not one balance")
	same(cash, a.Cash, "cash_balance")
	same(fine, a.Fine, "crystal_balance")
	require.Equal(s, map[int]string{1: "we_owe", 0: "settled", -1: "they_owe"}[a.Cash.Sign()], a.CashPosition)
}

// amounts compares the account's balances with the samples' effects.
func (s *ledgerSuite) amounts(in, out []sample) {
	s.Helper()
	a := apitest.Read[shown](s.clerk.GET(s.of(s.at.Account)).Status(200))
	cash, fine := counts(in, out)
	s.balances(a, cash, fine)
}

func entries(all []sample) string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.entry
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// body is a row with samples.
func body(date string, in, out []sample) string {
	return fmt.Sprintf(`{"date":%q,"in_entries":%s,"out_entries":%s}`, date, entries(in), entries(out))
}

func (s *ledgerSuite) post(date string, in, out []sample) (row shown) {
	s.Helper()
	s.clerk.POST(s.of(s.at.Ledger), body(date, in, out)).Status(201).JSON(&row)
	s.holds(in, row.In)
	s.holds(out, row.Out)
	return row
}

// holds requires each entry to have the sent fields, beside the computed ones.
func (s *ledgerSuite) holds(sent []sample, got []map[string]any) {
	s.Helper()
	require.Len(s, got, len(sent))
	for i, e := range sent {
		var fields map[string]any
		require.NoError(s, json.Unmarshal([]byte(e.entry), &fields))
		for name, value := range fields {
			require.Equal(s, value, got[i][name], name)
		}
	}
}

func (s *ledgerSuite) row() {
	row := s.post("2025-03-01", s.in[:1], s.out[:1])
	one := s.of(s.at.Ledger, "/row/", row.ID)
	read := s.clerk.GET(one).Status(200)
	s.clerk.PUT(s.of(s.at.Ledger), read.Text).Status(200).JSON(&row)
	require.EqualValues(s, 0, *row.Revision, "what was read is written back, and nothing changes")
	s.amounts(s.in[:1], s.out[:1])
	s.clerk.PUT(s.of(s.at.Ledger), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, entries(s.in[1:2]))).Status(200).JSON(&row)
	s.holds(s.in[1:2], row.In)
	s.holds(s.out[:1], row.Out)
	s.amounts(s.in[1:2], s.out[:1])
	s.clerk.PUT(s.of(s.at.Ledger), fmt.Sprintf(`{"id":%d,"date":"2025-02-01"}`, row.ID)).Status(200)
	versions := apitest.Read[[]map[string]any](s.clerk.GET(one + "/history").Status(200))
	require.Len(s, versions, 3)
	for i, change := range []string{"added", "edited", "edited"} {
		require.Equal(s, change, versions[i]["change"])
	}
	pdf := s.clerk.GET(s.of(s.at.Ledger, "/statement.pdf")).Status(200)
	require.True(s, strings.HasPrefix(pdf.Text, "%PDF-"))
	require.Equal(s, fmt.Sprintf("inline; filename=%s-%d-statement.pdf", s.l.Name, s.account), pdf.Header("Content-Disposition"))
}

func (s *ledgerSuite) deletions() {
	row := s.post("2025-03-01", s.in[:1], s.out[:1])
	if s.at.LooseRow != "" {
		loose := func(rest string) string {
			return variable.ReplaceAllLiteralString(s.at.LooseRow, fmt.Sprint(row.ID)) + rest
		}
		s.clerk.DELETE(loose("/in")).Status(204)
		s.amounts(nil, s.out[:1])
		s.clerk.DELETE(loose("/in")).Problem(404, "Row has no in entries")
		s.clerk.DELETE(loose("/out")).Status(204)
		s.amounts(nil, nil)
		row = s.post("2025-03-01", s.in[:1], s.out[:1])
		s.clerk.DELETE(loose("")).Status(204)
		row = s.post("2025-03-01", s.in[:1], s.out[:1])
	}
	one := s.of(s.at.Ledger, "/row/", row.ID)
	s.clerk.DELETE(one).Status(204)
	s.clerk.DELETE(one).Problem(404, s.l.NoRow.Error())
	s.amounts(nil, nil)
}

// answers checks the optional balances of responses, pages, the statement as a spreadsheet, and that rows that were read can be posted.
func (s *ledgerSuite) answers() {
	s.post("2025-03-01", s.in[:1], nil)
	row := body("2025-03-02", nil, s.out[:1])
	cash, fine := counts(s.in[:1], s.out[:1])
	var would, is shown
	s.clerk.With("Bahi-Dry-Run", "true").POST(s.of(s.at.Ledger), row).Status(200).JSON(&would)
	s.balances(would, cash, fine)
	s.amounts(s.in[:1], nil)
	s.clerk.With("Prefer", "return=representation").POST(s.of(s.at.Ledger), row).Status(201).JSON(&is)
	s.balances(is, cash, fine)
	var page []shown
	second := s.clerk.GET(s.of(s.at.Ledger, "?page=2&page_size=1")).Status(200)
	second.JSON(&page)
	require.Equal(s, "2", second.Header("X-Total-Count"))
	require.Len(s, page, 1)
	require.Equal(s, is.ID, page[0].ID)
	s.balances(page[0], cash, fine)
	lines := strings.Split(strings.TrimSpace(s.clerk.GET(s.of(s.at.Ledger, "/statement.csv")).Status(200).Text), "\n")
	require.Len(s, lines, 6, "a head, the opening balance, two entries, the closing balance, the position")
	want := "," + cash
	if s.l.Metal {
		want += "," + fine
	}
	require.True(s, strings.HasPrefix(lines[4], "closing,") && strings.HasSuffix(lines[4], want), lines[4])

	read := s.clerk.GET(s.of(s.at.Ledger)).Status(200).Text
	s.account = s.open("Ali")
	s.clerk.POST(s.of(s.at.Ledger, "/rows"), `{"rows":`+read+`}`).Status(201)
	s.amounts(s.in[:1], s.out[:1])
}

// others requests rows by the paths of other accounts.
func (s *ledgerSuite) others() {
	row := s.post("2025-03-01", s.in[:1], nil)
	mine := s.account
	s.account = s.open("Ali")
	for _, a := range []*apitest.Answer{
		s.clerk.GET(s.of(s.at.Ledger, "/row/", row.ID)), s.clerk.GET(s.of(s.at.Ledger, "/row/", row.ID, "/history")),
		s.clerk.GET(s.of(s.at.Ledger, "/row/", row.ID, "/proof")),
		s.clerk.PUT(s.of(s.at.Ledger), fmt.Sprintf(`{"id":%d,"date":"2025-03-02"}`, row.ID)), s.clerk.DELETE(s.of(s.at.Ledger, "/row/", row.ID)),
		s.clerk.POST(s.of(s.at.Ledger, "/row/", row.ID, "/void"), `{"reason":"x"}`),
		s.clerk.POST(s.of(s.at.Ledger, "/row/", row.ID, "/reverse"), `{"reason":"x"}`),
	} {
		a.Problem(404, s.l.NoRow.Error())
	}
	s.clerk.POST(s.of(s.at.Ledger), body("2198-03-01", s.in[:1], nil)).Problem(422, "Validation error", "date", "must not be after tomorrow")
	if s.l.Metal && !s.l.Gross {
		const empty = "a weight or an amount above 0 is needed"
		s.clerk.POST(s.of(s.at.Ledger), `{"date":"2025-03-01","in_entries":[{"item_name":5},{"fine_weight":"x"},{}]}`).
			Problem(422, "Validation error", "in_entries[0].item_name", "expected a text", "in_entries[1].fine_weight", "expected a number",
				"in_entries[0]", empty, "in_entries[2]", empty)
		s.clerk.POST(s.of(s.at.Ledger, "/rows"), `{"rows":[{"date":"2025-03-01","in_entries":[{"item_name":5},{"fine_weight":"x"}]}]}`).
			Problem(422, "Validation error", "rows[0].in_entries[0].item_name", "expected a text",
				"rows[0].in_entries[1].fine_weight", "expected a number", "rows[0].in_entries[0]", empty)
	}
	s.clerk.PUT(s.of(s.at.Ledger), `{"date":"2025-03-02"}`).Problem(422, "Validation error", "id", "is required: the id of the row")
	s.amounts(nil, nil)
	s.account = mine
	s.amounts(s.in[:1], nil)
}
