package projections

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
)

// together opens an account for each name, in one transaction of the log. The projection does not decode a renamed event.
func (r *rig) together(t *testing.T, names ...string) {
	t.Helper()
	var x eventstore.Transaction
	for i, name := range names {
		var e event.Proposed
		var err error
		meta := event.Meta{More: len(names) - 1 - i}
		if name == "renamed" {
			e, err = bank.Ledger.Accounts.Encode(uuid.New(), book.AccountRenamed{To: name}, meta)
		} else {
			e, err = bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: name}, meta)
		}
		require.NoError(t, err)
		if name == "garbage" {
			e.Data = []byte(`{"name":7}`)
		}
		x.Writes = append(x.Writes, eventstore.Write{Stream: "bank-" + uuid.NewString(), Expected: eventstore.NoStream,
			Events: []event.Proposed{e}})
	}
	_, err := r.store.Append(t.Context(), x)
	require.NoError(t, err)
}

func TestNoPartOfATransactionIsFoldedAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"error", "panic", "garbage"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var never atomic.Bool
			p := seen("seen", poisoned(&never))
			serving := r.serve(t, p)
			serving.until("seen", func(s Status) bool { return s.Ready })
			r.together(t, "a", "b")
			serving.reached("seen", 2)
			r.together(t, "c", "d", name, "e")
			r.together(t, "f")
			parked := r.parked(t, "seen")
			require.Contains(t, parked.Error, "at position 5")
			require.EqualValues(t, 2, parked.Position, "the end of the transaction before")
			require.Equal(t, []string{"a", "b"}, r.names(t, "seen"))
			require.ErrorContains(t, r.build(p).Run(t.Context()), "at position 5", "a rebuild stops there too")

			r.skip(t, "seen", 1, 5)
			require.NoError(t, Retry(t.Context(), r.pool, p))
			serving.reached("seen", r.head(t))
			require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, r.names(t, "seen"))
		})
	}
}

func TestAReactorIsParkedBeforeATransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(t, `create table public.effect (position bigint not null)`)
	run := r.react(t, React("mail", []string{openedName}, func(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error {
		for _, e := range events {
			if opened, _ := e.Data.(book.AccountOpened); opened.Name == "error" {
				return errors.New("a mistake")
			}
			if _, err := tx.Exec(ctx, `insert into effect values ($1)`, int64(e.Position)); err != nil {
				return err
			}
		}
		return nil
	}))
	run.until("mail", func(s Status) bool { return s.Ready && s.Working })
	r.together(t, "a", "error", "b")
	status := run.until("mail", func(s Status) bool { return s.Error != "" })
	require.Contains(t, status.Error, "event BankAccountOpened at position 2: a mistake")
	var effects int
	require.NoError(t, r.pool.QueryRow(t.Context(), `select count(*) from effect`).Scan(&effects))
	require.Zero(t, effects)
}

// A fill's batches end between transactions, even if the store leaves out events of other projections.
func TestABatchOfAFillEndsBetweenTransactions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const transactions, size = 20, 30
	for n := range transactions {
		names := numberedNames(n*size, (n+1)*size)
		for i := range names {
			if i%7 == 3 || i == 0 || i == size-1 {
				names[i] = "renamed"
			}
		}
		r.together(t, names...)
	}
	p := seen("seen", nil)
	decoding, err := newDecoder(t.Context(), r.store, p, nil)
	require.NoError(t, err)
	c, throttle := &control{}, 2000
	c.obey(generation{buildState: buildState{Throttle: &throttle}})
	batches, end := 0, event.Position(0)
	for d, err := range r.build(p).ahead(t.Context(), decoding, 0, r.head(t), c) {
		require.NoError(t, err)
		batches++
		for i := range d.len() {
			at, whole := d.place(i)
			if i == 0 {
				require.Greater(t, at, end, "batch %d begins inside a transaction", batches)
			}
			end = max(end, whole)
		}
	}
	require.Greater(t, batches, 3)
	require.Equal(t, event.Position(transactions*size), end)
}
