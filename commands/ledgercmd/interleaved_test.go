package ledgercmd_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/laws"
	"bahi/domain/ledger"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/period"
	"bahi/domain/ledger/takada"
	"bahi/domain/number"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/internal/test/commandtest"
	"bahi/internal/test/interleavetest"
)

// openVault is a Vault that does not encrypt: the ciphertext is the text.
type openVault struct{}

func (openVault) ForgetNamed() {}

func (openVault) HMAC(_ context.Context, name string, parts ...[]byte) ([]byte, error) {
	return append([]byte(name+" "), bytes.Join(parts, []byte{0})...), nil
}

func (openVault) Seal(_ context.Context, values []*event.Sealed) error {
	for _, v := range values {
		text, _ := v.Plaintext()
		v.SetCiphertext(1, []byte(text))
	}
	return nil
}

func (openVault) OpenPersonal(_ context.Context, values []*event.Sealed) error {
	for _, v := range values {
		_, text, _ := v.Box()
		v.Open(string(text))
	}
	return nil
}

// logReads reads from the log the data that commands read from tables.
type logReads struct{ *interleavetest.Node }

func (r logReads) EarliestRow(ctx context.Context, _ uuid.UUID, account int64) (first *unit.Date, err error) {
	rows := map[string]book.Row{}
	for stored, err := range r.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return nil, err
		}
		if category, id := event.SplitStream(stored.Stream); category == bank.Ledger.Rows.Category() {
			e, err := bank.Ledger.Rows.Decode(stored)
			if err != nil {
				return nil, err
			}
			rows[id] = bank.Ledger.Rows.Evolve(rows[id], e)
		}
	}
	for _, row := range rows {
		if row.Account == account && row.Exists() && (first == nil || row.Date < *first) {
			first = new(row.Date)
		}
	}
	return first, nil
}

func (logReads) OrderWithSlip(context.Context, uuid.UUID, string, int64, unit.Date, int) (int64, error) {
	return 0, nil
}

func (logReads) Clients(context.Context, uuid.UUID) ([]orderdraft.Client, error) { return nil, nil }

func (logReads) HighestSlip(context.Context, uuid.UUID, int64) (int64, error) { return 0, nil }

// initialRecords has the records that exist before the commands.
type initialRecords struct {
	sbi, hdfc               int64 // accounts
	row, older              int64 // of sbi: five days old, and a month old
	meena, asha, imran      int64 // two clients, a karigar
	plain, other, delivered int64 // meena's orders; the last one has the takada
	takada                  int64
	draft, upload           int64
}

// startBooks starts a process.
func startBooks(ctx context.Context, n *interleavetest.Node) (*ledgercmd.Books, *commands.Handler, error) {
	clock := func() time.Time { return today.Time() }
	h := commands.New(n, openVault{}, clock)
	for _, series := range []string{number.Rows, number.OrderItems, order.Kind.Category(), takada.Kind.Category()} {
		if _, err := h.Numbers(ctx, series, 1); err != nil {
			return nil, nil, err
		}
	}
	return &ledgercmd.Books{Commands: h, Reads: logReads{n}, Today: func() unit.Date { return today }, Log: slog.New(slog.DiscardHandler)},
		h, nil
}

// settle creates the records.
func settle(t *testing.T, log *interleavetest.Log) (w initialRecords) {
	t.Helper()
	b, _, err := startBooks(t.Context(), interleavetest.NewNode(log))
	require.NoError(t, err)
	req := as(t)
	opens := func(l *book.Ledger, name string) int64 {
		out, err := ledgercmd.OpenAccount(t.Context(), req, b, l, book.OpenAccount{Name: name})
		require.NoError(t, err)
		return id(t, out.ID)
	}
	posts := func(date unit.Date) int64 {
		out, err := ledgercmd.AddRow(t.Context(), req, b, bank.Ledger, w.sbi, asked{Date: &date, In: rupees(1)})
		require.NoError(t, err)
		return id(t, out.ID)
	}
	orders := func() int64 {
		out, err := ledgercmd.AddOrder(t.Context(), req, b, orderOf(w.meena))
		require.NoError(t, err)
		return id(t, out.ID)
	}
	w.sbi, w.hdfc = opens(bank.Ledger, "SBI"), opens(bank.Ledger, "HDFC")
	w.row, w.older = posts(today-5), posts(today-30)
	w.meena, w.asha, w.imran = opens(client.Ledger, "Meena"), opens(client.Ledger, "Asha"), opens(karigar.Ledger, "Imran")
	w.plain, w.other, w.delivered = orders(), orders(), orders()
	out, err := ledgercmd.AddTakada(t.Context(), req, b, takadaOf(w.delivered, nil))
	require.NoError(t, err)
	w.takada = id(t, out.ID)
	n := node{Books: b}
	w.draft, w.upload = n.drafts(t, "slip 7\npayal 250 gm", w.meena), n.uploads(t)
	return w
}

type bookCommand = commandtest.Command[*ledgercmd.Books]

// command returns a command of a suite.
func command[S any](
	t *testing.T, name string, do func(context.Context, commands.Request, *ledgercmd.Books) (commands.Outcome[S], error),
	change ...func(*commands.Request),
) bookCommand {
	return bookCommand{Name: name, Do: func(ctx context.Context, b *ledgercmd.Books, dryRun bool) (any, error) {
		req := as(t, change...)
		req.DryRun = req.DryRun || dryRun
		return commandtest.Outcome(do(ctx, req, b))
	}}
}

// posting is command for rows that are posted in one request.
func posting(
	t *testing.T, name string, do func(context.Context, commands.Request, *ledgercmd.Books) (ledgercmd.Posted, error),
	change ...func(*commands.Request),
) bookCommand {
	return bookCommand{Name: name, Do: func(ctx context.Context, b *ledgercmd.Books, dryRun bool) (any, error) {
		req := as(t, change...)
		req.DryRun = req.DryRun || dryRun
		out, err := do(ctx, req, b)
		out.Position = 0
		return out, err
	}}
}

func (w initialRecords) commands(t *testing.T) []bookCommand {
	t.Helper()
	type (
		ctx   = context.Context
		req   = commands.Request
		books = *ledgercmd.Books
		row   = commands.Outcome[book.Row]
	)
	post := func(date unit.Date) func(ctx, req, books) (row, error) {
		return func(c ctx, r req, b books) (row, error) {
			return ledgercmd.AddRow(c, r, b, bank.Ledger, w.sbi, asked{Date: &date, In: rupees(2)})
		}
	}
	edit := func(a asked) func(ctx, req, books) (row, error) {
		return func(c ctx, r req, b books) (row, error) {
			return ledgercmd.ChangeRow(c, r, b, bank.Ledger, w.row,
				book.EditRow{Ledger: bank.Ledger, Account: w.sbi, Today: b.Today(), RowInput: a})
		}
	}
	reverse := func(rows ...int64) func(ctx, req, books) (ledgercmd.Posted, error) {
		return func(c ctx, r req, b books) (ledgercmd.Posted, error) {
			return ledgercmd.ReverseRows(c, r, b, bank.Ledger, w.sbi, ledgercmd.Reversal{Rows: rows})
		}
	}
	bulk := func(c ctx, r req, b books) (ledgercmd.Posted, error) {
		return ledgercmd.PostRows(c, r, b, bank.Ledger, w.sbi, []asked{{Date: new(today), In: rupees(3)}, {Date: new(today - 5), In: rupees(4)}})
	}
	submit := func(upload int64) func(ctx, req, books) (commands.Outcome[khata.State], error) {
		return func(c ctx, r req, b books) (commands.Outcome[khata.State], error) {
			out, _, err := ledgercmd.SubmitKhata(c, r, b, upload, page(t, w.sbi, w.hdfc, w.sbi, today-5))
			return out, err
		}
	}
	lock := func(through *unit.Date) func(ctx, req, books) (commands.Outcome[bookslock.State], error) {
		return func(c ctx, r req, b books) (commands.Outcome[bookslock.State], error) {
			return b.SetLock(c, r, bookslock.Set{Through: through})
		}
	}
	ends := func(l *book.Ledger, account int64) func(ctx, req, books) (commands.Outcome[book.Account], error) {
		return func(c ctx, r req, b books) (commands.Outcome[book.Account], error) {
			return ledgercmd.DeleteAccount(c, r, b, l, account)
		}
	}
	editOrder := func(number int64, e order.Edit) func(ctx, req, books) (commands.Outcome[order.State], error) {
		return func(c ctx, r req, b books) (commands.Outcome[order.State], error) {
			return ledgercmd.EditOrder(c, r, b, number, e)
		}
	}
	endOrder := func(number int64) func(ctx, req, books) (commands.Outcome[order.State], error) {
		return func(c ctx, r req, b books) (commands.Outcome[order.State], error) {
			return ledgercmd.DeleteOrder(c, r, b, number)
		}
	}
	deliver := func(number int64, maker *int64) func(ctx, req, books) (commands.Outcome[takada.State], error) {
		return func(c ctx, r req, b books) (commands.Outcome[takada.State], error) {
			return ledgercmd.AddTakada(c, r, b, takadaOf(number, maker))
		}
	}
	seen := func(r *commands.Request) { r.IfMatch = new(int64(0)) }
	all := []bookCommand{
		command(t, "post", post(today-5)),
		command(t, "post with a key", post(today-5), keyed),
		command(t, "try to post", post(today-5), dryRun),
		command(t, "edit", edit(asked{In: rupees(7)})),
		command(t, "edit what was seen", edit(asked{Out: rupees(8)}), seen),
		command(t, "edit nothing", edit(asked{Date: new(today - 5)})),
		command(t, "move", edit(asked{Date: new(today)})),
		command(t, "void", func(c ctx, r req, b books) (row, error) { return ledgercmd.VoidRow(c, r, b, bank.Ledger, w.sbi, w.row) }),
		command(t, "delete", func(c ctx, r req, b books) (row, error) {
			return ledgercmd.ChangeRow(c, r, b, bank.Ledger, w.row, book.DeleteRow{Ledger: bank.Ledger, Account: w.sbi})
		}),
		posting(t, "reverse", reverse(w.row), keyed),
		posting(t, "reverse both", reverse(w.older, w.row)),
		posting(t, "bulk", bulk),
		posting(t, "bulk with a key", bulk, keyed, func(r *commands.Request) { r.Operation = "bulk" }),
		command(t, "submit", submit(w.upload)),
		command(t, "submit without upload", submit(0)),
		command(t, "lock", lock(new(today-5))),
		command(t, "lock less", lock(new(today-30))),
		command(t, "rename account", func(c ctx, r req, b books) (commands.Outcome[book.Account], error) {
			return ledgercmd.ChangeAccount(c, r, b, bank.Ledger, w.sbi, book.ChangeAccount{Name: new("SBI 2")})
		}),
		command(t, "delete account", ends(bank.Ledger, w.sbi)),
		command(t, "delete client", ends(client.Ledger, w.meena)),
		command(t, "delete karigar", ends(karigar.Ledger, w.imran)),
		command(t, "order", func(c ctx, r req, b books) (commands.Outcome[order.State], error) {
			return ledgercmd.AddOrder(c, r, b, orderOf(w.meena))
		}),
		command(t, "edit order", editOrder(w.plain, order.Edit{Date: patch.Set(today - 1)})),
		command(t, "order to asha", editOrder(w.plain, order.Edit{Client: patch.Set(w.asha)})),
		command(t, "delivered order to asha", editOrder(w.delivered, order.Edit{Client: patch.Set(w.asha)})),
		command(t, "delete order", endOrder(w.plain)),
		command(t, "delete delivered order", endOrder(w.delivered)),
		command(t, "deliver", deliver(w.plain, nil)),
		command(t, "deliver of a karigar", deliver(w.delivered, &w.imran)),
		command(t, "move takada", func(c ctx, r req, b books) (commands.Outcome[takada.State], error) {
			return ledgercmd.EditTakada(c, r, b, w.takada, takada.Edit{Order: patch.Set(w.plain)})
		}),
		command(t, "edit takada", func(c ctx, r req, b books) (commands.Outcome[takada.State], error) {
			return ledgercmd.EditTakada(c, r, b, w.takada, takada.Edit{Date: patch.Set(today - 1)})
		}),
		command(t, "delete takada", func(c ctx, r req, b books) (commands.Outcome[takada.State], error) {
			return ledgercmd.DeleteTakada(c, r, b, w.takada)
		}),
		command(t, "convert", func(c ctx, r req, b books) (commands.Outcome[orderdraft.State], error) {
			return ledgercmd.ConvertDraft(c, r, b, w.draft, orderdraft.Convert{})
		}),
		command(t, "edit draft", func(c ctx, r req, b books) (commands.Outcome[orderdraft.State], error) {
			return ledgercmd.EditDraft(c, r, b, w.draft, orderdraft.Edit{Date: patch.Set(today - 1)})
		}),
	}
	for i, c := range all {
		all[i].Once = !slices.Contains([]string{"post", "bulk", "submit without upload", "order", "deliver", "deliver of a karigar"}, c.Name)
	}
	return all
}

// broken returns a function that returns the rules between records that a log breaks. It decodes the events of base once.
func broken(base *interleavetest.Log) func([]event.Stored) ([]string, error) {
	known := map[uuid.UUID]event.Recorded[any]{}
	for _, stored := range base.After(0) {
		known[stored.ID], _ = domain.Catalogue.Decode(stored)
	}
	return func(events []event.Stored) (found []string, err error) {
		checker := laws.New()
		for _, stored := range events {
			e, decoded := known[stored.ID]
			if !decoded {
				if e, err = domain.Catalogue.Decode(stored); err != nil {
					return nil, err
				}
			}
			breaches := checker.Next(e)
			if event.More(stored.Meta) == 0 {
				breaches = append(breaches, checker.Commit()...)
			}
			for _, b := range breaches {
				found = append(found, fmt.Sprintf("%s at %s, position %d", b.Law, b.Stream, b.Position))
			}
		}
		return found, nil
	}
}

// newSuite returns the ledger's commands, with records for them.
func newSuite(t *testing.T) *commandtest.Suite[*ledgercmd.Books] {
	t.Helper()
	s := &commandtest.Suite[*ledgercmd.Books]{Log: interleavetest.NewLog(), Start: startBooks}
	s.Commands = settle(t, s.Log).commands(t)
	s.Broken = broken(s.Log)
	s.Same = func(e event.Stored) string { // its EarliestRow may be that of a later row, which has no effect
		if e.Type == "BankAccountDeleted" {
			return ""
		}
		return string(e.Data)
	}
	return s
}

// For each order of the steps of two commands, the result equals running them one after the other.
func TestTwoCommandsAreAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	newSuite(t).Pairs(t)
}

// For each order of the steps of five commands, the log keeps the rules between records, and no command gives up.
func TestFiveCommandsKeepTheRules(t *testing.T) {
	t.Parallel()
	newSuite(t).Some(t, 5)
}

// Closing reads the balances by folding the log.
func (r logReads) Closing(ctx context.Context, _ uuid.UUID, day unit.Date) (all []closing.Balance, at event.Position, err error) {
	accounts, rows := map[string]closing.Balance{}, map[string]book.Row{}
	for stored, err := range r.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return nil, 0, err
		}
		at = stored.Position
		category, id := event.SplitStream(stored.Stream)
		l := ledger.Of(category)
		switch {
		case l == nil:
		case category == l.Rows.Category():
			e, err := l.Rows.Decode(stored)
			if err != nil {
				return nil, 0, err
			}
			rows[stored.Stream] = l.Rows.Evolve(rows[stored.Stream], e)
		default:
			e, err := l.Accounts.Decode(stored)
			if err != nil {
				return nil, 0, err
			}
			if _, deleted := e.Data.(book.AccountDeleted); deleted {
				delete(accounts, id)
			} else {
				number, err := strconv.ParseInt(id, 10, 64)
				if err != nil {
					return nil, 0, fmt.Errorf("account %s: %w", id, err)
				}
				accounts[id] = closing.Balance{Ledger: l.Name, Account: number}
			}
		}
	}
	for _, row := range rows {
		if b, open := accounts[idText(row.Account)]; open && row.Exists() && row.Date <= day {
			in, out := row.Counts()
			net := in.Minus(out)
			b.Rows, b.Cash, b.Fine = b.Rows+1, b.Cash+net.Cash, b.Fine+net.Fine
			accounts[idText(row.Account)] = b
		}
	}
	for _, b := range accounts {
		all = append(all, b)
	}
	return all, at, nil
}

func (logReads) WaitingDrafts(context.Context, uuid.UUID, unit.Date, time.Time, int) ([]int64, error) {
	return nil, nil
}

func (logReads) WaitingKhatas(context.Context, uuid.UUID) ([]khata.Waiting, error) { return nil, nil }

func periodsOf(t *testing.T, b *ledgercmd.Books) *ledgercmd.Periods {
	t.Helper()
	reads, ok := b.Reads.(logReads)
	require.True(t, ok)
	return &ledgercmd.Periods{
		Books: b, Reads: reads, Zone: time.UTC, Parked: func(context.Context) ([]string, error) { return nil, nil },
		Root: func(_ context.Context, at event.Position) (uint64, string, error) { return uint64(at), "root", nil },
	}
}

// ofPeriods are the commands that close and reopen a period with rows.
func ofPeriods(t *testing.T) []bookCommand {
	t.Helper()
	type outcome = commands.Outcome[period.State]
	closes := func(c context.Context, r commands.Request, b *ledgercmd.Books) (outcome, error) {
		return periodsOf(t, b).Close(c, r, today-5)
	}
	return []bookCommand{
		command(t, "close", closes),
		command(t, "close with a key", closes, keyed, func(r *commands.Request) { r.Operation = "close" }),
		command(t, "try to close", closes, dryRun),
		command(t, "reopen", func(c context.Context, r commands.Request, b *ledgercmd.Books) (outcome, error) {
			return periodsOf(t, b).Reopen(c, r, today-5)
		}, func(r *commands.Request) { r.Reason = "a late bill" }),
	}
}

// For each order of the steps of five commands, a seal has the digest of its balances. A closing is two transactions, so other commands may
// run in between.
func TestClosingsKeepTheRules(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	s.Commands = append(slices.DeleteFunc(s.Commands, func(c bookCommand) bool {
		return !slices.Contains([]string{"post", "edit", "move", "void", "delete", "reverse", "bulk", "lock", "lock less", "delete account"},
			c.Name)
	}), ofPeriods(t)...)
	s.Some(t, 5)
}
