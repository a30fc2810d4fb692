package ledgercmd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/polisher"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/projections"
	"bahi/projections/ledgerproj"
	"bahi/readmodels"
)

// standing is a row as one of the two sides sees it.
type standing struct {
	Row, Account  int64
	Date, In, Out string
	Deleted, Void bool
	Reverses      int64
	ReversedBy    int64
	PairedWith    int64
	Revision      int64
}

type opened struct {
	ID              int64
	Name            string
	Opened, Deleted int64
	Revision        int64
	Workspace       uuid.UUID
}

type locked struct {
	Workspace uuid.UUID
	Through   *string
	Revision  int64
}

// agree checks that commands see the books as the projection does.
func (o *office) agree(t *testing.T) {
	t.Helper()
	o.agreeSince(t, t, o.node(t), 0)
}

// agreeSince is agree for the streams that begin after a position.
func (o *office) agreeSince(t *testing.T, rt require.TestingT, judge *node, since event.Position) {
	t.Helper()
	f := &readmodels.At{Min: o.head(t), Wait: time.Minute}
	_, _, err := o.views.Lock(t.Context(), f, workspace)
	require.NoError(rt, err)

	var (
		streams  = map[int64]string{} // of accounts and rows, whose numbers differ
		rows     []standing
		accounts []opened
		locks    []locked
		from     = judge.Commands.Fresh()
		seen     = map[string]bool{}
	)
	for e, err := range o.store.ReadAll(t.Context(), since, eventstore.Forwards) {
		require.NoError(t, err)
		category, key := event.SplitStream(e.Stream)
		if seen[e.Stream] {
			continue
		}
		seen[e.Stream] = true
		for _, of := range ledger.All {
			switch category {
			case of.Accounts.Category():
				l, err := commands.Load(t.Context(), from, of.Accounts, key)
				require.NoError(t, err)
				a := opened{ID: id(t, key), Name: l.State.Name, Opened: int64(l.State.Opened), Deleted: int64(l.State.Deleted), Revision: l.Revision,
					Workspace: l.Workspace}
				if a.Deleted == 0 {
					a.Deleted = math.MaxInt64
				}
				accounts, streams[a.ID] = append(accounts, a), e.Stream
			case of.Rows.Category():
				l, err := commands.Load(t.Context(), from, of.Rows, key)
				require.NoError(t, err)
				streams[id(t, key)] = e.Stream
				switch {
				case l.State.Exists():
					rows = append(rows, stands(id(t, key), l.State, l.Revision))
				case l.State.Deleted:
					rows = append(rows, stands(id(t, key), l.State, 0))
				}
			}
		}
		if category == bookslock.Kind.Category() {
			l, err := commands.Load(t.Context(), from, bookslock.Kind, key)
			require.NoError(t, err)
			k := locked{Workspace: uuid.MustParse(key), Revision: l.Revision}
			if through := l.State.Through; through != nil {
				k.Through = new(through.String())
			}
			locks = append(locks, k)
		}
	}
	schema := o.schema(t, "books")
	same(t, rt, o, streams, func(r standing) int64 { return r.Row }, rows, collect[standing](t, o, `
		select row_id, account_id, date::text, in_entries::text, out_entries::text, deleted, void,
			coalesce(reverses, 0), coalesce(reversed_by, 0), coalesce(paired_with, 0), case when deleted then 0 else revision end
		from `+schema+`.row_version where to_position = 9223372036854775807 and from_position > $1`, since))
	same(t, rt, o, streams, func(a opened) int64 { return a.ID }, accounts, collect[opened](t, o, `
		select id, name, opened_position, deleted_position, revision, workspace_id from `+schema+`.account where opened_position > $1`, since))
	for _, l := range locks {
		require.Equal(rt, []locked{l}, collect[locked](t, o,
			`select workspace_id, locked_through::text, revision from `+schema+`.books_lock where workspace_id = $1`, l.Workspace))
	}
}

// same reports the first difference between the two sides, with the stream's events in the log.
func same[T any](t *testing.T, rt require.TestingT, o *office, streams map[int64]string, key func(T) int64, commands, books []T) {
	t.Helper()
	left, right := map[int64]T{}, map[int64]T{}
	for _, c := range commands {
		left[key(c)] = c
	}
	for _, b := range books {
		right[key(b)] = b
		if _, ok := left[key(b)]; !ok {
			require.Fail(rt, "only in the books", "%+v\n%s", b, o.tell(t, streams[key(b)]))
		}
	}
	for k, l := range left {
		r, ok := right[k]
		require.True(rt, ok, "only commands see %+v\n%s", l, o.tell(t, streams[k]))
		require.Equal(rt, l, r, o.tell(t, streams[k]))
	}
}

// tell formats the stream's events in the log.
func (o *office) tell(t *testing.T, stream string) (text string) {
	t.Helper()
	for e, err := range o.store.ReadStream(t.Context(), stream, 0, eventstore.Forwards) {
		require.NoError(t, err)
		text += fmt.Sprintf("%d %s %d %s %s %s\n", e.Position, e.Stream, e.Revision, e.Type, e.Data, e.Meta)
	}
	return text
}

func stands(row int64, r book.Row, revision int64) standing {
	return standing{
		Row: row, Account: r.Account, Date: r.Date.String(), In: string(r.In.JSON()), Out: string(r.Out.JSON()), Deleted: r.Deleted, Void: r.Void,
		Reverses: r.Reverses, ReversedBy: r.ReversedBy, PairedWith: r.PairedWith, Revision: revision,
	}
}

func (o *office) schema(t *testing.T, projection string) string {
	t.Helper()
	var generation int
	require.NoError(t, o.pool.QueryRow(t.Context(), `select generation from projection.generation where name = $1 and live`,
		projection).Scan(&generation))
	return projections.SchemaName(projection, generation)
}

func collect[T any](t *testing.T, o *office, sql string, args ...any) []T {
	t.Helper()
	rows, _ := o.pool.Query(t.Context(), sql, args...)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	require.NoError(t, err)
	return all
}

// entriesOf returns, for each ledger, the entries of each side for a number: metal and money, if the ledger has both.
var entriesOf = map[string]func(n int) (in, out book.SideInput){
	"bank": func(n int) (in, out book.SideInput) { return rupees(int64(n)), rupees(int64(n)) },
	"bullion": func(n int) (in, out book.SideInput) {
		return given[bullion.Entry](`{"weight":%d,"touch":99.5}`, n), given[bullion.Entry](`{"amount":%d}`, n)
	},
	"client": func(n int) (in, out book.SideInput) {
		return given[client.In](`{"weight":%d,"touch":91.6}`, n),
			given[client.Out](`{"weight":100,"touch":92,"wastage_percent":3,"making_charge":%d}`, n)
	},
	"karigar": func(n int) (in, out book.SideInput) {
		return given[karigar.In](`{"pure_weight":520,"fine_percent":92,"wastage_percent":2,"other":%d}`, n),
			given[karigar.Out](`{"weight":%d,"touch":99.5}`, n)
	},
	"polisher": func(n int) (in, out book.SideInput) {
		return given[polisher.In](`{"weight":98.5,"loss_weight":1.5,"amount":%d}`, n), given[polisher.Out](`{"weight":%d}`, n)
	},
}

func given[E book.Entry](form string, n int) book.SideInput {
	var e E
	if err := json.Unmarshal(fmt.Appendf(nil, form, n), &e); err != nil {
		panic(err)
	}
	return book.Entries([]E{e})
}

// opening opens an account, with a type if the ledger has types.
func (s *scene) opening() book.OpenAccount {
	c := book.OpenAccount{Name: "SBI"}
	if s.book.Types > 0 {
		c.Type = new(0)
	}
	return c
}

// scene is a workspace's books that several nodes change at once.
type scene struct {
	t              *testing.T
	rt             *rapid.T
	o              *office
	book           *book.Ledger
	spaces         []uuid.UUID
	accounts, rows []int64
	in             map[int64]int64 // account of a row
}

func (s *scene) day() unit.Date {
	return today - unit.Date(rapid.IntRange(-1, 5).Draw(s.rt, "days ago"))
}

// step runs one command on a node, even one that the domain refuses.
func (s *scene) step(n *node, meanwhile bool) error {
	space := s.spaces[0]
	if rapid.IntRange(0, 9).Draw(s.rt, "stranger") == 0 {
		space = s.spaces[1]
	}
	req := as(s.t, func(r *commands.Request) { r.Workspace = space })
	in, out := entriesOf[s.book.Name](rapid.IntRange(1, 99).Draw(s.rt, "amount"))
	account, row := int64(1), int64(1)
	if len(s.accounts) > 0 {
		account = rapid.SampledFrom(s.accounts).Draw(s.rt, "account")
	}
	change := func(c asked) error {
		_, err := ledgercmd.EditRow(s.t.Context(), req, n.Books, s.book, ledgercmd.RowAt{Account: s.in[row], Row: row}, c)
		return err
	}
	begun := func(first, account int64, count int) {
		for i := range count {
			s.rows = append(s.rows, first+int64(i))
			s.in[first+int64(i)] = account
		}
	}
	var err error
	steps := []string{"add", "bulk", "unlock", "rename", "open", "lock", "delete account"} // rapid prefers the first
	if len(s.rows) > 0 {
		row = rapid.SampledFrom(s.rows).Draw(s.rt, "row")
		steps = append([]string{"edit", "reverse", "move", "add", "void", "delete", "reverse many"}, steps...)
	}
	if meanwhile { // which disturbs the others
		steps = append([]string{"lock", "delete account"}, steps...)
	}
	switch rapid.SampledFrom(steps).Draw(s.rt, "step") {
	case "open":
		var out commands.Outcome[book.Account]
		if out, err = ledgercmd.OpenAccount(s.t.Context(), req, n.Books, s.book, s.opening()); err == nil {
			s.accounts = append(s.accounts, id(s.t, out.ID))
		}
	case "rename":
		name := rapid.StringMatching(`[A-Z]{1,3}`).Draw(s.rt, "name")
		_, err = ledgercmd.ChangeAccount(s.t.Context(), req, n.Books, s.book, account, book.ChangeAccount{Name: new(name)})
	case "delete account":
		_, err = ledgercmd.DeleteAccount(s.t.Context(), req, n.Books, s.book, account)
	case "lock":
		through := today - 1
		if !meanwhile {
			through = min(s.day(), through)
		}
		_, err = n.SetLock(s.t.Context(), req, bookslock.Set{Through: &through})
	case "unlock":
		_, err = n.SetLock(s.t.Context(), req, bookslock.Set{})
	case "add":
		var out commands.Outcome[book.Row]
		if out, err = ledgercmd.AddRow(s.t.Context(), req, n.Books, s.book, account, asked{Date: new(s.day()), In: in}); out.ID != "" {
			begun(id(s.t, out.ID), account, 1)
		}
	case "bulk":
		var rows []asked
		for range rapid.IntRange(1, 4).Draw(s.rt, "rows") {
			rows = append(rows, asked{Date: new(s.day()), In: in})
		}
		var out ledgercmd.Posted
		if out, err = ledgercmd.PostRows(s.t.Context(), req, n.Books, s.book, account, rows); err == nil {
			begun(out.First, account, len(rows))
		}
	case "edit":
		err = change(asked{Out: out})
	case "move":
		err = change(asked{Date: new(s.day())})
	case "delete":
		_, err = ledgercmd.DeleteRow(s.t.Context(), req, n.Books, s.book, s.in[row], row)
	case "void":
		_, err = ledgercmd.VoidRow(s.t.Context(), req, n.Books, s.book, s.in[row], row)
	case "reverse", "reverse many":
		c := ledgercmd.Reversal{Rows: []int64{row}}
		if rapid.Bool().Draw(s.rt, "dated") {
			c.Date = new(s.day())
		}
		for range rapid.IntRange(0, 3).Draw(s.rt, "more") {
			other := rapid.SampledFrom(s.rows).Draw(s.rt, "another row")
			if s.in[other] == s.in[row] && !slices.Contains(c.Rows, other) {
				c.Rows = append(c.Rows, other)
			}
		}
		var out ledgercmd.Posted
		if out, err = ledgercmd.ReverseRows(s.t.Context(), req, n.Books, s.book, s.in[row], c); err == nil {
			begun(out.First, s.in[row], len(c.Rows))
		}
	}
	if _, refused := errors.AsType[*fault.Error](err); refused || errors.Is(err, errCrash) {
		return nil
	}
	return err
}

// At any time another node may append first, or a process may die. In every case both sides agree.
func TestCommandsAndBooksAgreeWhateverHappens(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	hands := []*node{o.node(t), o.node(t), o.node(t)}
	judge := o.node(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := &scene{t: t, rt: rt, o: o, book: rapid.SampledFrom(ledger.All).Draw(rt, "ledger"), spaces: []uuid.UUID{uuid.New(), uuid.New()},
			in: map[int64]int64{}}
		rows := s.book.Rows.Category() + "-"
		since := o.head(t)
		out, err := ledgercmd.OpenAccount(t.Context(), as(t, func(r *commands.Request) { r.Workspace = s.spaces[0] }), hands[0].Books,
			s.book, s.opening())
		require.NoError(rt, err)
		s.accounts = append(s.accounts, id(t, out.ID))
		for range rapid.IntRange(3, 12).Draw(rt, "steps") {
			n := rapid.SampledFrom(hands).Draw(rt, "node")
			switch rapid.IntRange(0, 3).Draw(rt, "what happens meanwhile") {
			case 0:
				n.store.at(s.book.Name, func() error { return s.step(hands[rapid.IntRange(1, 2).Draw(rt, "who")], true) })
			case 1:
				n.store.at(rows, func() error {
					n.store.at(rows, func() error { return errCrash })
					return s.step(hands[2], true)
				})
			}
			require.NoError(rt, s.step(n, false))
			n.store.at("", nil)
		}
		o.agreeSince(t, rt, judge, since)
	})
	build := projections.Build{Store: o.store, Config: o.pool.Config().ConnConfig.Copy(), Projection: ledgerproj.Books, Log: judge.Log}
	for stops, size := range []int{1, 7, math.MaxInt} {
		build.How.Partitions = 3 - stops
		differences, err := build.Fold(context.WithoutCancel(t.Context()), size, stops)
		require.NoError(t, err)
		require.Empty(t, differences, "folded in batches of %d, and built in %d parts", size, build.How.Partitions)
	}
	found := map[string]int{}
	for e, err := range o.store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		name := e.Type
		for _, l := range ledger.All {
			name = strings.TrimPrefix(name, l.Title)
		}
		found[name]++
	}
	require.Positive(t, found["RowReversed"]+found["RowVoided"], "one kind alone may be missing by chance")
	t.Logf("%v", found)
}
