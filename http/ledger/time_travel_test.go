package ledger_test

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
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/http/api/apitest"
	"bahi/http/pdf"
	"bahi/internal/app"
	"bahi/internal/app/apptest"
	"bahi/readmodels"
	auditviews "bahi/readmodels/audit"
)

// replayed is what a workspace's books say according to the log alone, folded in the simplest way there is.
type replayed struct {
	accounts  map[int64]string // those that exist, by their names
	rows      map[int64]*replayedRow
	revisions map[string]int64 // of streams
}

type replayedRow struct {
	book.Row

	id int64
}

// replay folds the log up to a position. Nobody races in these tests, so that no event in it is void.
func replay(t require.TestingT, o *apptest.Office, workspace uuid.UUID, upTo event.Position) replayed {
	r := replayed{accounts: map[int64]string{}, rows: map[int64]*replayedRow{}, revisions: map[string]int64{}}
	for stored, err := range o.Sys.Store.ReadAll(o.T.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		if stored.Position > upTo {
			break
		}
		e, err := domain.Catalogue.Decode(stored)
		require.NoError(t, err)
		r.revisions[stored.Stream] = stored.Revision
		if e.Meta.Workspace != workspace || e.Meta.Of != 0 {
			continue
		}
		id, _ := strconv.ParseInt(e.StreamID(), 10, 64)
		switch data := e.Data.(type) {
		case book.AccountOpened:
			r.accounts[id] = data.Name
		case book.AccountRenamed:
			r.accounts[id] = data.To
		case book.AccountDeleted:
			delete(r.accounts, id)
		case book.RowsPosted:
			b := data.Evolve(book.Bulk{})
			for i := range b.Rows {
				r.rows[id+int64(i)] = &replayedRow{b.Added(i).Evolve(book.Row{}), id + int64(i)}
			}
		case book.RowsReversed:
			b := data.Evolve(book.Bulk{})
			for i, old := range b.Reverses {
				r.rows[id+int64(i)] = &replayedRow{b.Added(i).Evolve(book.Row{}), id + int64(i)}
				r.rows[old].ReversedBy = id + int64(i)
			}
		case event.Event[book.Row]:
			if r.rows[id] == nil {
				r.rows[id] = &replayedRow{id: id}
			}
			r.rows[id].Row = data.Evolve(r.rows[id].Row)
		}
	}
	return r
}

// read is what the ledger of an account reads like, each row with its balance, and what it comes to.
func (r replayed) read(account int64, of *unit.Date) (rows []apptest.BankRow, balance decimal.Decimal) {
	ids := slices.SortedFunc(maps.Keys(r.rows), func(a, b int64) int {
		if x, y := r.rows[a].Date, r.rows[b].Date; x != y {
			return int(x - y)
		}
		return int(a - b)
	})
	entries := func(side book.Side) []bank.Entry {
		list, err := book.EntriesOf[bank.Entry](side)
		if err != nil {
			panic(err)
		}
		return list
	}
	lines := func(entries []bank.Entry) []apptest.Line {
		list := []apptest.Line{}
		for _, e := range entries {
			list = append(list, apptest.Line{Description: string(e.Description), Amount: json.Number(e.Amount.Decimal().String())})
		}
		return list
	}
	for _, id := range ids {
		row := r.rows[id]
		if row.Account != account || !row.Exists() || of != nil && row.Date > *of {
			continue
		}
		if !row.Void {
			for _, e := range entries(row.In) {
				balance = balance.Add(e.Amount.Decimal())
			}
			for _, e := range entries(row.Out) {
				balance = balance.Sub(e.Amount.Decimal())
			}
		}
		sum := json.Number(balance.String())
		rows = append(rows, apptest.BankRow{
			ID: id, Date: row.Date.String(), In: lines(entries(row.In)), Out: lines(entries(row.Out)), Balance: &sum,
			Void: row.Void, Reverses: row.Reverses, ReversedBy: row.ReversedBy, Revision: r.revisions[fmt.Sprintf("bankrow-%d", id)],
		})
	}
	return rows, balance
}

// journey is a workspace whose books are changed and looked back at.
type journey struct {
	t        *rapid.T
	test     *testing.T
	o        *apptest.Office
	clerk    *apitest.Client
	auditor  *apitest.Client
	space    uuid.UUID
	accounts []int64
	rows     map[int64]int64 // account of each
	first    int64           // before which nothing of this happened
	drawn    int
}

func (j *journey) date() string {
	return fmt.Sprintf("2025-0%d-1%d", rapid.IntRange(1, 4).Draw(j.t, "month"), rapid.IntRange(0, 3).Draw(j.t, "day"))
}

func (j *journey) entry() string {
	return fmt.Sprintf(`[{"amount":%d.%02d}]`, rapid.IntRange(1, 999).Draw(j.t, "rupees"), rapid.IntRange(0, 99).Draw(j.t, "paise"))
}

func (j *journey) account() int64 { return rapid.SampledFrom(j.accounts).Draw(j.t, "account") }

func (j *journey) row() (account, row int64) {
	for len(j.rows) == 0 { // a date in the locked period is refused
		j.add()
	}
	row = rapid.SampledFrom(slices.Sorted(maps.Keys(j.rows))).Draw(j.t, "row")
	return j.rows[row], row
}

func (j *journey) add() {
	account := j.account()
	j.begun(account, j.clerk.POST(apptest.Ledger(account), fmt.Sprintf(`{"date":%q,"in_entries":%s,"out_entries":%s}`, j.date(), j.entry(), j.entry())))
}

func (j *journey) begun(account int64, a *apitest.Answer) {
	if a.Response.StatusCode != http.StatusCreated {
		return
	}
	var rows []apptest.BankRow
	if strings.Contains(a.Text, `"rows"`) {
		rows = apptest.Posted(a)
	} else {
		rows = make([]apptest.BankRow, 1)
		a.JSON(&rows[0])
	}
	for _, r := range rows {
		j.rows[r.ID] = account
	}
}

// Whatever is refused is refused: the row may be deleted, settled or void.
func (j *journey) change(a *apitest.Answer) {
	require.Contains(j.t, []int{200, 204, 404, 409, 422}, a.Response.StatusCode, a.Text)
}

// past draws what a reader asks for, and answers the query, and the state that it is of.
func (j *journey) past() (query url.Values, of *unit.Date, known event.Position) {
	j.o.Sys.Books.Wait() // for what follows on answers
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
			at, err := (app.Recorder{Store: j.o.Sys.Store}).RecordedAt(j.o.T.Context(), known)
			require.NoError(j.t, err)
			known, err = j.o.Sys.Store.PositionAt(j.o.T.Context(), at)
			require.NoError(j.t, err)
			query.Set("known_at", at.Format(time.RFC3339Nano))
		}
	}
	return query, of, known
}

// look reads everything there is to read of one state, and holds it against a replay.
func (j *journey) look() {
	query, of, known := j.past()
	told := replay(j.t, j.o, j.space, known)
	ask := func(path string, more ...string) *apitest.Answer {
		q := maps.Clone(query)
		for i := 0; i+1 < len(more); i += 2 {
			q.Set(more[i], more[i+1])
		}
		return j.clerk.GET(path + "?" + q.Encode())
	}
	var want []apptest.BankAccount
	for _, id := range slices.Sorted(maps.Keys(told.accounts)) {
		_, balance := told.read(id, of)
		sum := json.Number(balance.String())
		want = append(want, apptest.BankAccount{ID: id, Name: told.accounts[id], Balance: &sum, Revision: told.revisions[fmt.Sprintf("bank-%d", id)]})
	}
	got := apptest.ClerkBanks(ask("/banks").Status(200))
	require.Equal(j.t, append([]apptest.BankAccount{}, want...), append([]apptest.BankAccount{}, got...), "%s", query)

	account := j.account()
	_, stands := told.accounts[account]
	if !stands {
		ask(fmt.Sprintf("/bank/%d", account)).Problem(404, "Bank account not found")
		ask(apptest.Ledger(account)).Problem(404, "Bank account not found")
		ask(apptest.Ledger(account, "/statement.pdf")).Problem(404, "Bank account not found")
		return
	}
	var one apptest.BankAccount
	ask(fmt.Sprintf("/bank/%d", account)).Status(200).JSON(&one)
	rows, balance := told.read(account, of)
	require.Equal(j.t, []string{told.accounts[account], balance.String()}, []string{one.Name, one.Balance.String()}, "%s", query)
	j.lookAtRows(ask, account, rows)
	if j.drawn++; j.drawn%8 == 1 {
		text := apptest.Words(j.test, ask(apptest.Ledger(account, "/statement.pdf")))
		require.Contains(j.t, text, "Closing balance "+strings.TrimPrefix(pdf.Rupees.Text(balance), "₹ "), "%s", query)
	}
}

func (j *journey) lookAtRows(ask func(string, ...string) *apitest.Answer, account int64, rows []apptest.BankRow) {
	more, selected := []string{}, rows
	if rapid.Bool().Draw(j.t, "from") {
		from := "2025-01-10"
		more = append(more, "from", from)
		selected = slices.DeleteFunc(slices.Clone(selected), func(r apptest.BankRow) bool { return r.Date < from })
	}
	if rapid.Bool().Draw(j.t, "to") {
		to := j.date()
		more = append(more, "to", max(to, "2025-01-10"))
		selected = slices.DeleteFunc(slices.Clone(selected), func(r apptest.BankRow) bool { return r.Date > max(to, "2025-01-10") })
	}
	shown := selected
	if rapid.Bool().Draw(j.t, "paged") {
		size := rapid.IntRange(1, 3).Draw(j.t, "size")
		page := rapid.IntRange(1, len(selected)/size+1).Draw(j.t, "page")
		more = append(more, "page", strconv.Itoa(page), "page_size", strconv.Itoa(size))
		shown = selected[min((page-1)*size, len(selected)):min(page*size, len(selected))]
	}
	var got []apptest.BankRow
	a := ask(apptest.Ledger(account), more...).Status(200)
	a.JSON(&got)
	require.Equal(j.t, append([]apptest.BankRow{}, shown...), got, more)
	require.Equal(j.t, strconv.Itoa(len(selected)), a.Header("X-Total-Count"), more)
	for id, of := range j.rows {
		if of != account {
			continue
		}
		i := slices.IndexFunc(rows, func(r apptest.BankRow) bool { return r.ID == id })
		if i < 0 {
			ask(apptest.At(account, id)).Problem(404, "Bank ledger row not found")
			continue
		}
		var alone apptest.BankRow
		ask(apptest.At(account, id)).Status(200).JSON(&alone)
		require.Equal(j.t, rows[i], alone)
	}
}

// audit replays the trail's fields from nothing, and holds what comes of it against the books.
func (j *journey) audit() {
	j.o.Sys.Books.Wait()
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
		got := state[fmt.Sprintf("bankrow-%d", id)]
		if !row.Exists() {
			require.Empty(j.t, got)
			continue
		}
		text, err := json.Marshal(map[string]any{"date": row.Date})
		require.NoError(j.t, err)
		want := map[string]json.RawMessage{}
		require.NoError(j.t, json.Unmarshal(text, &want))
		for name, side := range map[string]book.Side{"in_entries": row.In, "out_entries": row.Out} {
			entries, err := book.EntriesOf[bank.Entry](side)
			require.NoError(j.t, err)
			for i, e := range entries {
				want[fmt.Sprintf("%s[%d].amount", name, i)] = json.RawMessage(e.Amount.String())
			}
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
		name, stands := told.accounts[account]
		got := state[fmt.Sprintf("bank-%d", account)]["name"]
		if require.Equal(j.t, stands, got != nil); stands {
			require.Equal(j.t, strconv.Quote(name), string(got))
		}
	}
	j.inSteps(whole)
}

// inSteps reads the trail once more, in the smallest steps, by the log's table or as where there is none.
func (j *journey) inSteps(whole apptest.Trail) {
	small := &auditviews.Trails{
		Reader: j.o.Sys.Ledger.Reader, Look: rapid.IntRange(1, 7).Draw(j.t, "look"), Rows: rapid.IntRange(1, 3).Draw(j.t, "rows"),
	}
	if rapid.Bool().Draw(j.t, "without the table") || apptest.Elsewhere {
		small.Log = app.ViewedLog{Store: j.o.Sys.Store}
	}
	ctx := readmodels.WithFreshness(j.o.T.Context(), &readmodels.Freshness{Wait: apptest.ReadWait})
	f := auditviews.TrailFilter{Workspace: &j.space}
	want := whole.Changes
	if rapid.Bool().Draw(j.t, "of one account") {
		f.Account = j.account()
		want = slices.DeleteFunc(slices.Clone(want), func(c apptest.TrailChange) bool { return c.Account == nil || c.Account.ID != f.Account })
	}
	var got []auditviews.Change
	walk := small.Walk(f, event.Position(j.first), event.Position(whole.Drawn.Position))
	for more := true; more; {
		changes, goesOn, err := walk.Next(ctx)
		require.NoError(j.t, err)
		got, more = append(got, changes...), goesOn
	}
	text, err := json.Marshal(append([]auditviews.Change{}, got...))
	require.NoError(j.t, err)
	var back []apptest.TrailChange
	require.NoError(j.t, json.NewDecoder(bytes.NewReader(text)).Decode(&back))
	require.Equal(j.t, append([]apptest.TrailChange{}, want...), back)
}

// Every read of the past, by whatever combination of effective date, record time, days and pages, is what a replay of
// the log up to there says; and the trail leads from nothing to the books.
func TestAnyPastReadsAsAReplayOfTheLogUpToThereWould(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	rapid.Check(t, func(rt *rapid.T) {
		j := &journey{t: rt, test: t, o: o, space: uuid.New(), rows: map[int64]int64{}, first: o.Head()}
		workspace := j.space.String()
		j.clerk, j.auditor = o.Clerk(workspace), o.Auditor(workspace)
		j.accounts = []int64{apptest.Open(j.clerk, "HDFC"), apptest.Open(j.clerk, "SBI")}
		rt.Repeat(map[string]func(*rapid.T){
			"":     func(*rapid.T) {},
			"look": func(*rapid.T) { j.look() },
			"add":  func(*rapid.T) { j.add() },
			"post": func(*rapid.T) {
				account := j.account()
				j.begun(account, j.clerk.POST(apptest.Ledger(account, "/rows"), fmt.Sprintf(`{"rows":[{"date":%q,"in_entries":%s},{"date":%q,"out_entries":%s}]}`, j.date(), j.entry(), j.date(), j.entry())))
			},
			"edit": func(*rapid.T) {
				account, row := j.row()
				j.change(j.clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row, j.entry())))
			},
			"move": func(*rapid.T) {
				account, row := j.row()
				j.change(j.clerk.PUT(apptest.Ledger(account), fmt.Sprintf(`{"id":%d,"date":%q}`, row, j.date())))
			},
			"delete": func(*rapid.T) {
				account, row := j.row()
				j.change(j.clerk.DELETE(apptest.At(account, row)))
			},
			"void": func(*rapid.T) {
				account, row := j.row()
				j.change(j.clerk.POST(apptest.At(account, row, "/void"), `{"reason":"x"}`))
			},
			"reverse": func(*rapid.T) {
				account, row := j.row()
				_, other := j.row()
				body := fmt.Sprintf(`{"reason":"x","rows":[%d,%d],"date":"2025-04-13"}`, row, other)
				if row == other || rapid.Bool().Draw(rt, "alone") {
					body = fmt.Sprintf(`{"reason":"x","rows":[%d],"date":"2025-04-13"}`, row)
				}
				j.begun(account, j.clerk.POST(apptest.Ledger(account, "/rows/reverse"), body))
			},
			"rename": func(*rapid.T) {
				name := rapid.StringMatching(`[A-Z]{1,3}`).Draw(rt, "name")
				j.change(j.clerk.PUT(fmt.Sprintf("/bank/%d", j.account()), fmt.Sprintf(`{"name":%q}`, name)))
			},
			"lock": func(*rapid.T) {
				j.change(j.clerk.With("Bahi-Reason", "x").PUT("/books/lock", `{"locked_through":"2025-01-11"}`))
			},
			"unlock": func(*rapid.T) {
				j.change(j.clerk.With("Bahi-Reason", "x").PUT("/books/lock", `{"locked_through":null}`))
			},
			"delete account": func(*rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "really") == 0 {
					j.change(j.clerk.DELETE(fmt.Sprintf("/bank-account/%d", j.account())))
				}
			},
		})
		j.look()
		j.audit()
	})
}
