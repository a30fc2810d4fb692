package ledgerhttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/http/ledgerhttp"
	"bahi/http/pdf"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels"
	"bahi/readmodels/auditview"
)

// effect is the effect of entries on the balances.
type effect struct{ cash, fine decimal.Decimal }

func (e effect) plus(o effect) effect  { return effect{e.cash.Add(o.cash), e.fine.Add(o.fine)} }
func (e effect) minus(o effect) effect { return effect{e.cash.Sub(o.cash), e.fine.Sub(o.fine)} }

func at(path string, id int64) string { return variable.ReplaceAllLiteralString(path, fmt.Sprint(id)) }

// replayed has the books of a workspace, folded from the log in the simplest way.
type replayed struct {
	accounts  map[int64]book.Account // existing accounts
	rows      map[int64]*replayedRow
	revisions map[string]int64 // of streams
}

type replayedRow struct {
	book.Row

	id int64
}

// replay folds the log's transactions that end at or before a position.
func replay(t require.TestingT, o *apptest.Server, workspace uuid.UUID, upTo event.Position) replayed {
	r := replayed{accounts: map[int64]book.Account{}, rows: map[int64]*replayedRow{}, revisions: map[string]int64{}}
	for stored, err := range o.Sys.Store.ReadAll(o.T.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		if stored.Position+event.Position(event.More(stored.Meta)) > upTo {
			break
		}
		e, err := domain.Catalogue.Decode(stored)
		require.NoError(t, err)
		r.revisions[stored.Stream] = stored.Revision
		if e.Meta.Workspace != workspace {
			continue
		}
		id, _ := strconv.ParseInt(e.StreamID(), 10, 64)
		switch data := e.Data.(type) {
		case book.AccountDeleted:
			delete(r.accounts, id)
		case event.Event[book.Account]:
			r.accounts[id] = data.Evolve(r.accounts[id])
		case event.Event[book.Row]:
			if r.rows[id] == nil {
				r.rows[id] = &replayedRow{id: id}
			}
			r.rows[id].Row = data.Evolve(r.rows[id].Row)
		}
	}
	return r
}

// pastRow is a row in the form of a response.
type pastRow struct {
	ID       int64           `json:"id"`
	Date     string          `json:"date"`
	In       json.RawMessage `json:"in_entries"`
	Out      json.RawMessage `json:"out_entries"`
	Warnings json.RawMessage `json:"warnings,omitempty"`
	Revision int64           `json:"revision"`

	Void       bool  `json:"void,omitempty"`
	Reverses   int64 `json:"reverses,omitempty"`
	ReversedBy int64 `json:"reversed_by,omitempty"`
	pastBalance
}

// pastAccount is an account in the form of a response.
type pastAccount struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Type     *int   `json:"type,omitempty"`
	Revision int64  `json:"revision"`
	pastBalance
}

// pastBalance has the balance of a bank's response, or the balances of another ledger's.
type pastBalance struct {
	Balance         json.Number `json:"balance,omitempty"`
	Cash            json.Number `json:"cash_balance,omitempty"`
	Crystal         json.Number `json:"crystal_balance,omitempty"`
	CashPosition    string      `json:"cash_position,omitempty"`
	CrystalPosition string      `json:"crystal_position,omitempty"`
}

func balanceOf(l *book.Ledger, b effect) pastBalance {
	cash, fine := json.Number(b.cash.String()), json.Number(b.fine.String())
	if !l.Metal {
		return pastBalance{Balance: cash}
	}
	owes := map[int]string{1: "we_owe", 0: "settled", -1: "they_owe"}
	return pastBalance{Cash: cash, Crystal: fine, CashPosition: owes[b.cash.Sign()], CrystalPosition: owes[b.fine.Sign()]}
}

// read returns the expected rows of an account, each with its balance, and the account's balance.
func (r replayed) read(l *book.Ledger, account int64, of *unit.Date) (rows []pastRow, balance effect) {
	ids := slices.SortedFunc(maps.Keys(r.rows), func(a, b int64) int {
		if x, y := r.rows[a].Date, r.rows[b].Date; x != y {
			return int(x - y)
		}
		return int(a - b)
	})
	amount := func(e book.Effect) effect { return effect{e.Cash.Decimal(), e.Fine.Decimal()} }
	for _, id := range ids {
		row := r.rows[id]
		if row.Account != account || !row.Exists() || of != nil && row.Date > *of {
			continue
		}
		in, out := row.Counts()
		balance = balance.plus(amount(in)).minus(amount(out))
		shown := pastRow{
			ID: id, Date: row.Date.String(), In: row.In.JSON(), Out: row.Out.JSON(), pastBalance: balanceOf(l, balance),
			Void: row.Void, Reverses: row.Reverses, ReversedBy: row.ReversedBy, Revision: r.revisions[l.Rows.Stream(fmt.Sprint(id))],
		}
		if row.Warnings != "" {
			shown.Warnings = json.RawMessage(row.Warnings)
		}
		rows = append(rows, shown)
	}
	return rows, balance
}

// pastFixture is a workspace in which a test changes the books of one ledger and reads their past.
type pastFixture struct {
	l        *book.Ledger
	at       ledgerhttp.Paths
	t        *rapid.T
	test     *testing.T
	o        *apptest.Server
	clerk    *apitest.Client
	auditor  *apitest.Client
	space    uuid.UUID
	accounts []int64
	rows     map[int64]int64 // account of each
	first    int64           // position before the first change
	drawn    int
}

func (j *pastFixture) date() string {
	return fmt.Sprintf("2025-0%d-1%d", rapid.IntRange(1, 4).Draw(j.t, "month"), rapid.IntRange(0, 3).Draw(j.t, "day"))
}

// sides draws an entry for each side.
func (j *pastFixture) sides() (in, out string) {
	of := ledgerSamples[j.l.Name]
	return entries(rapid.SliceOfN(rapid.SampledFrom(of.in), 1, 2).Draw(j.t, "in")),
		entries(rapid.SliceOfN(rapid.SampledFrom(of.out), 1, 2).Draw(j.t, "out"))
}

// path is below the path of an account's ledger.
func (j *pastFixture) path(account int64, rest ...any) string {
	return at(j.at.Ledger, account) + fmt.Sprint(rest...)
}

func (j *pastFixture) account() int64 { return rapid.SampledFrom(j.accounts).Draw(j.t, "account") }

func (j *pastFixture) row() (account, row int64) {
	row = rapid.SampledFrom(slices.Sorted(maps.Keys(j.rows))).Draw(j.t, "row")
	return j.rows[row], row
}

func (j *pastFixture) add() {
	account := j.account()
	in, out := j.sides()
	j.begun(account, j.clerk.POST(j.path(account), fmt.Sprintf(`{"date":%q,"in_entries":%s,"out_entries":%s}`, j.date(), in, out)))
}

func (j *pastFixture) begun(account int64, a *apitest.Answer) {
	if a.Response.StatusCode != http.StatusCreated {
		return
	}
	var posted struct{ Rows []pastRow }
	if strings.Contains(a.Text, `"rows"`) {
		a.JSON(&posted)
	} else {
		posted.Rows = make([]pastRow, 1)
		a.JSON(&posted.Rows[0])
	}
	for _, r := range posted.Rows {
		j.rows[r.ID] = account
	}
}

// A change may be refused: the row may be deleted, settled or void.
func (j *pastFixture) change(a *apitest.Answer) {
	require.Contains(j.t, []int{200, 204, 404, 409, 422}, a.Response.StatusCode, a.Text)
}

// past draws a query for a past state, and returns the query with that state's date and position.
func (j *pastFixture) past() (query url.Values, of *unit.Date, known event.Position) {
	query, known = url.Values{}, event.Position(j.o.Head())
	if rapid.Bool().Draw(j.t, "as of") {
		query.Set("as_of", j.date())
		day, err := unit.ParseDate(query.Get("as_of"))
		require.NoError(j.t, err)
		of = &day
	}
	if rapid.IntRange(0, 3).Draw(j.t, "known at") > 0 {
		known = event.Position(rapid.Int64Range(j.first, j.o.Head()).Draw(j.t, "position"))
		query.Set("known_at", strconv.FormatUint(uint64(known), 10))
		if rapid.Bool().Draw(j.t, "by moment") {
			at, err := app.NewLogReads(j.o.Sys.Store).RecordedAt(j.o.T.Context(), known)
			require.NoError(j.t, err)
			known, err = j.o.Sys.Store.PositionAt(j.o.T.Context(), at)
			require.NoError(j.t, err)
			query.Set("known_at", at.Format(time.RFC3339Nano))
		}
	}
	return query, of, known
}

// look reads everything of one state and compares it with a replay.
func (j *pastFixture) look() {
	query, of, known := j.past()
	told := replay(j.t, j.o, j.space, known)
	ask := func(path string, more ...string) *apitest.Answer {
		q := maps.Clone(query)
		for i := 0; i+1 < len(more); i += 2 {
			q.Set(more[i], more[i+1])
		}
		return j.clerk.GET(path + "?" + q.Encode())
	}
	want, got := []pastAccount{}, []pastAccount{}
	for _, id := range slices.Sorted(maps.Keys(told.accounts)) {
		a := told.accounts[id]
		_, balance := told.read(j.l, id, of)
		want = append(want, pastAccount{ID: id, Name: a.Name, Type: a.Type, Revision: told.revisions[j.l.Accounts.Stream(fmt.Sprint(id))],
			pastBalance: balanceOf(j.l, balance)})
	}
	ask(j.at.List).Status(200).JSON(&got)
	require.Equal(j.t, want, got, "%s", query)

	account := j.account()
	if _, stands := told.accounts[account]; !stands {
		for _, path := range []string{at(j.at.Account, account), j.path(account), j.path(account, "/statement.pdf")} {
			ask(path).Problem(404, j.l.NoAccount.Error())
		}
		return
	}
	one := apitest.Read[pastAccount](ask(at(j.at.Account, account)).Status(200))
	require.Equal(j.t, want[slices.IndexFunc(want, func(a pastAccount) bool { return a.ID == account })], one, "%s", query)
	rows, balance := told.read(j.l, account, of)
	j.lookAtRows(ask, account, rows)
	if j.drawn++; j.drawn%8 == 1 {
		text := apptest.Words(j.test, ask(j.path(account, "/statement.pdf")))
		closing := "Closing balance " + strings.TrimPrefix(pdf.Rupees.Text(balance.cash), "₹ ")
		if j.l.Metal {
			words := []string{"owes you", "settled", "you owe"}
			closing = fmt.Sprintf("Closing balance %s %s %s %s",
				strings.TrimPrefix(pdf.Rupees.Text(balance.cash.Abs()), "₹ "), words[balance.cash.Sign()+1],
				strings.TrimSuffix(pdf.FineGrams.Text(balance.fine.Abs()), " g"), words[balance.fine.Sign()+1])
		}
		require.Contains(j.t, text, closing, "%s", query)
	}
}

func (j *pastFixture) lookAtRows(ask func(string, ...string) *apitest.Answer, account int64, rows []pastRow) {
	more, selected := []string{}, rows
	if rapid.Bool().Draw(j.t, "from") {
		from := "2025-01-10"
		more = append(more, "from", from)
		selected = slices.DeleteFunc(slices.Clone(selected), func(r pastRow) bool { return r.Date < from })
	}
	if rapid.Bool().Draw(j.t, "to") {
		to := j.date()
		more = append(more, "to", max(to, "2025-01-10"))
		selected = slices.DeleteFunc(slices.Clone(selected), func(r pastRow) bool { return r.Date > max(to, "2025-01-10") })
	}
	shown := selected
	if rapid.Bool().Draw(j.t, "paged") {
		size := rapid.IntRange(1, 3).Draw(j.t, "size")
		page := rapid.IntRange(1, len(selected)/size+1).Draw(j.t, "page")
		more = append(more, "page", strconv.Itoa(page), "page_size", strconv.Itoa(size))
		shown = selected[min((page-1)*size, len(selected)):min(page*size, len(selected))]
	}
	var got []pastRow
	a := ask(j.path(account), more...).Status(200)
	a.JSON(&got)
	require.Equal(j.t, append([]pastRow{}, shown...), got, more)
	require.Equal(j.t, strconv.Itoa(len(selected)), a.Header("X-Total-Count"), more)
	for id, of := range j.rows {
		if of != account {
			continue
		}
		i := slices.IndexFunc(rows, func(r pastRow) bool { return r.ID == id })
		if i < 0 {
			ask(j.path(account, "/row/", id)).Problem(404, j.l.NoRow.Error())
			continue
		}
		alone := apitest.Read[pastRow](ask(j.path(account, "/row/", id)).Status(200))
		require.Equal(j.t, rows[i], alone)
	}
}

// audit replays the trail's fields from nothing, and compares the result with the books.
func (j *pastFixture) audit() {
	whole := apptest.TrailOf(j.auditor, "")
	state := map[string]map[string]json.RawMessage{}
	for _, c := range whole.Changes {
		key := c.Kind + "-" + c.ID
		if state[key] == nil {
			state[key] = map[string]json.RawMessage{}
		}
		for _, f := range c.Fields {
			was := state[key][f.Field]
			if was == nil {
				was = json.RawMessage("null")
			}
			require.Equal(j.t, string(was), string(f.From), "%s %s", key, f.Field)
			require.NotEqual(j.t, string(f.From), string(f.To))
			if state[key][f.Field] = f.To; string(f.To) == "null" {
				delete(state[key], f.Field)
			}
		}
	}
	told := replay(j.t, j.o, j.space, event.Position(whole.Drawn.Position))
	for id, row := range told.rows {
		got := state[j.l.Rows.Stream(fmt.Sprint(id))]
		if !row.Exists() {
			require.Empty(j.t, got)
			continue
		}
		text, err := json.Marshal(map[string]any{"date": row.Date})
		require.NoError(j.t, err)
		want := map[string]json.RawMessage{}
		require.NoError(j.t, json.Unmarshal(text, &want))
		for name, side := range map[string]book.Side{"in_entries": row.In, "out_entries": row.Out} {
			var entries []map[string]json.RawMessage
			require.NoError(j.t, json.Unmarshal(side.JSON(), &entries))
			for i, e := range entries {
				for field, value := range e {
					want[fmt.Sprintf("%s[%d].%s", name, i, field)] = value
				}
			}
		}
		if row.Warnings != "" {
			want["warnings"] = json.RawMessage(row.Warnings)
		}
		for name, id := range map[string]int64{"reverses": row.Reverses, "reversed_by": row.ReversedBy} {
			if id != 0 {
				want[name] = json.RawMessage(strconv.FormatInt(id, 10))
			}
		}
		if row.Void {
			want["void"] = json.RawMessage("true")
		}
		require.Equal(j.t, want, got, "row %d", id)
	}
	for _, account := range j.accounts {
		a, stands := told.accounts[account]
		got := state[j.l.Accounts.Stream(fmt.Sprint(account))]["name"]
		if require.Equal(j.t, stands, got != nil); stands {
			require.Equal(j.t, strconv.Quote(a.Name), string(got))
		}
	}
	j.inSteps(whole)
}

// inSteps reads the trail again, in the smallest pages.
func (j *pastFixture) inSteps(whole apptest.Trail) {
	small := &auditview.Trails{
		Reader: j.o.Sys.Ledger.Reader, Look: rapid.IntRange(1, 7).Draw(j.t, "look"), Rows: rapid.IntRange(1, 3).Draw(j.t, "rows"),
	}
	at := &readmodels.At{Wait: apptest.ReadWait}
	f := auditview.TrailFilter{Workspace: &j.space}
	want := whole.Changes
	if rapid.Bool().Draw(j.t, "of one account") {
		f.Account = j.account()
		want = slices.DeleteFunc(slices.Clone(want), func(c apptest.TrailChange) bool { return c.Account == nil || c.Account.ID != f.Account })
	}
	var got []auditview.Change
	walk := small.Walk(f, event.Position(j.first), event.Position(whole.Drawn.Position))
	for more := true; more; {
		changes, goesOn, err := walk.Next(j.o.T.Context(), at)
		require.NoError(j.t, err)
		got, more = append(got, changes...), goesOn
	}
	text, err := json.Marshal(append([]auditview.Change{}, got...))
	require.NoError(j.t, err)
	var back []apptest.TrailChange
	require.NoError(j.t, json.NewDecoder(bytes.NewReader(text)).Decode(&back))
	require.Equal(j.t, append([]apptest.TrailChange{}, want...), back)
}

// Every read of the past, by any combination of effective date, record time, days and pages, equals a replay of the log up to that
// position. The trail leads from nothing to the books.
func TestAnyPastReadsAsAReplayOfTheLogUpToThereWould(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	rapid.Check(t, func(rt *rapid.T) {
		l := rapid.SampledFrom(ledger.All).Draw(rt, "ledger")
		j := &pastFixture{t: rt, test: t, o: o, l: l, at: ledgerhttp.Served()[l.Name], space: uuid.New(), first: o.Head()}
		j.rows = map[int64]int64{}
		workspace := j.space.String()
		j.clerk, j.auditor = o.Clerk(workspace), o.Auditor(workspace)
		for _, name := range []string{"HDFC", "SBI"} {
			body := map[string]any{"name": name}
			if l.Types > 0 {
				body["type"] = l.Types - 1
			}
			a := apitest.Read[shown](j.clerk.POST(j.at.Open, body).Status(201))
			j.accounts = append(j.accounts, a.ID)
		}
		j.add()
		require.NotEmpty(rt, j.rows, "the changes below need a row")
		rt.Repeat(map[string]func(*rapid.T){
			"":     func(*rapid.T) {},
			"look": func(*rapid.T) { j.look() },
			"add":  func(*rapid.T) { j.add() },
			"post": func(*rapid.T) {
				account := j.account()
				in, out := j.sides()
				j.begun(account, j.clerk.POST(j.path(account, "/rows"),
					fmt.Sprintf(`{"rows":[{"date":%q,"in_entries":%s},{"date":%q,"out_entries":%s}]}`, j.date(), in, j.date(), out)))
			},
			"edit": func(*rapid.T) {
				account, row := j.row()
				in, _ := j.sides()
				j.change(j.clerk.PUT(j.path(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row, in)))
			},
			"move": func(*rapid.T) {
				account, row := j.row()
				j.change(j.clerk.PUT(j.path(account), fmt.Sprintf(`{"id":%d,"date":%q}`, row, j.date())))
			},
			"delete": func(*rapid.T) {
				account, row := j.row()
				j.change(j.clerk.DELETE(j.path(account, "/row/", row)))
			},
			"void": func(*rapid.T) {
				account, row := j.row()
				j.change(j.clerk.POST(j.path(account, "/row/", row, "/void"), `{"reason":"x"}`))
			},
			"reverse": func(*rapid.T) {
				account, row := j.row()
				_, other := j.row()
				body := fmt.Sprintf(`{"reason":"x","rows":[%d,%d],"date":"2025-04-13"}`, row, other)
				if row == other || rapid.Bool().Draw(rt, "alone") {
					body = fmt.Sprintf(`{"reason":"x","rows":[%d],"date":"2025-04-13"}`, row)
				}
				j.begun(account, j.clerk.POST(j.path(account, "/rows/reverse"), body))
			},
			"rename": func(*rapid.T) {
				name := rapid.StringMatching(`[A-Z]{1,3}`).Draw(rt, "name")
				j.change(j.clerk.PUT(at(j.at.Account, j.account()), fmt.Sprintf(`{"name":%q}`, name)))
			},
			"lock": func(*rapid.T) {
				j.change(j.clerk.With("Bahi-Reason", "x").PUT("/books/lock", `{"locked_through":"2025-01-11"}`))
			},
			"unlock": func(*rapid.T) {
				j.change(j.clerk.With("Bahi-Reason", "x").PUT("/books/lock", `{"locked_through":null}`))
			},
			"delete account": func(*rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "really") == 0 {
					j.change(j.clerk.DELETE(at(j.at.Delete, j.account())))
				}
			},
		})
		j.look()
		j.audit()
	})
}
