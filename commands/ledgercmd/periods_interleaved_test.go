package ledgercmd_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/closing"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/period"
	"bahi/domain/unit"
	"bahi/eventstore"
)

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
