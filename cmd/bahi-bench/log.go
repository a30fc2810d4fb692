package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/polisher"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/internal/app"
)

const (
	chunkEvents    = 2048 // events in one AppendEach
	ledgerAccounts = 100  // accounts in each ledger
	ledgerYears    = 10
)

// logMaker fills a log with the events that commands would append.
type logMaker struct {
	store   eventstore.Store
	meta    event.Meta
	random  *rand.Rand
	waiting []eventstore.Transaction
}

// queue queues an event for a stream.
func queue[S any](ctx context.Context, m *logMaker, kind *event.Kind[S], id int64, expected eventstore.Expected, e event.Event[S]) error {
	m.meta.OccurredAt = time.Now().UTC().Truncate(time.Microsecond)
	encoded, err := kind.Encode(uuid.Must(uuid.NewV7()), e, m.meta)
	if err != nil {
		return err
	}
	m.waiting = append(m.waiting, eventstore.To(kind.Stream(strconv.FormatInt(id, 10)), expected, encoded))
	if len(m.waiting) < chunkEvents {
		return nil
	}
	return m.flush(ctx)
}

// flush appends the queued events.
func (m *logMaker) flush(ctx context.Context) error {
	for _, r := range m.store.AppendEach(ctx, m.waiting) {
		if r.Err != nil {
			return fmt.Errorf("append an event of the log: %w", r.Err)
		}
	}
	m.waiting = m.waiting[:0]
	return ctx.Err()
}

// fillLog appends events of accounts of each of the ledgers, with increasing dates: most add rows, one in twenty edits one, one in a
// hundred deletes one. No server may write to that log, because it would reserve the same numbers.
func fillLog(ctx context.Context, sys *app.System, events int, show func(done, total int64), ledgers ...*book.Ledger) error {
	m := &logMaker{
		store: sys.Store, random: rand.New(rand.NewPCG(seed, 3)), //nolint:gosec // G404: the same log in each run
		meta: event.Meta{Workspace: sys.Home, Actor: "api_key:" + uuid.NewString(), RequestID: uuid.NewString()},
	}
	for i := range ledgerAccounts * len(ledgers) {
		l, id := ledgers[i/ledgerAccounts], int64(1+i)
		opened := book.AccountOpened{Name: fmt.Sprintf("%s account %d", l.Title, id)}
		if l.Types > 0 {
			opened.Type = new(i % l.Types)
		}
		if err := queue(ctx, m, l.Accounts, id, eventstore.NoStream, opened); err != nil {
			return err
		}
	}
	type row struct {
		ledger   *book.Ledger
		revision int // -1: deleted
		changed  int // the last event of the row, which may still be queued
	}
	var rows []row
	for i := range events {
		if i%1000 == 0 {
			show(int64(i), int64(events))
		}
		of, change := m.random.IntN(ledgerAccounts*len(ledgers)), m.random.IntN(100)
		nth := m.random.IntN(max(1, len(rows)))
		if change < 6 && nth < len(rows) && rows[nth].revision >= 0 && rows[nth].changed < i-chunkEvents {
			r := &rows[nth]
			var e event.Event[book.Row] = book.RowDeleted{}
			if change > 0 {
				in, out := lines[r.ledger](m.random)
				e = book.RowEdited{In: &in, Out: &out}
			}
			if err := queue(ctx, m, r.ledger.Rows, int64(1+nth), eventstore.Expected(r.revision), e); err != nil {
				return err
			}
			if r.revision, r.changed = r.revision+1, i; change == 0 {
				r.revision = -1
			}
			continue
		}
		l := ledgers[of/ledgerAccounts]
		const days = ledgerYears * 365
		added := book.RowAdded{Account: int64(1 + of), Date: unit.DateOf(time.Now()) - days + unit.Date(i*days/events)}
		added.In, added.Out = lines[l](m.random)
		rows = append(rows, row{ledger: l, changed: i})
		if err := queue(ctx, m, l.Rows, int64(len(rows)), eventstore.NoStream, added); err != nil {
			return err
		}
	}
	return m.flush(ctx)
}

// lines returns the entries of one side of a row, as commands store them.
var lines = map[*book.Ledger]func(random *rand.Rand) (in, out book.Side){
	bank.Ledger: func(random *rand.Rand) (in, out book.Side) {
		text := fmt.Sprintf("%s %s, invoice %d", ways[random.IntN(len(ways))], party(random), 1000+random.IntN(9000))
		return either(random, bank.Entry{Description: book.Text(text), Amount: *money(random)})
	},
	bullion.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, bullion.Entry{ItemName: party(random), Weight: grams(random), Touch: touch(random)}.Complete(&book.Computer{}))
	},
	client.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return in, book.SideOf([]client.Out{client.Out{
			ItemName: "payal", Weight: grams(random), Touch: touch(random), WastagePercent: new(unit.Percent(3000)), MakingCharge: money(random),
		}.Complete(&book.Computer{})})
	},
	karigar.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return book.SideOf([]karigar.In{karigar.In{
			ItemName: "payal", PureWeight: grams(random), FinePercent: touch(random), WastagePercent: new(unit.Percent(2000)), Other: money(random),
		}.Complete(&book.Computer{})}), out
	},
	polisher.Ledger: func(random *rand.Rand) (in, out book.Side) {
		entry := polisher.In{ItemName: "payal", Weight: grams(random), LossWeight: new(unit.Grams(500)), Amount: money(random)}
		return book.SideOf([]polisher.In{entry}), out
	},
}

// either returns an entry on one of the sides, more often on IN.
func either[E book.Entry](random *rand.Rand, entry E) (in, out book.Side) {
	if random.IntN(3) == 0 {
		return in, book.SideOf([]E{entry})
	}
	return book.SideOf([]E{entry}), out
}

func party(random *rand.Rand) book.Text { return book.Text(parties[random.IntN(len(parties))]) }

func money(random *rand.Rand) *unit.Money { return new(unit.Money(10_000 + random.IntN(50_000_000))) }

func grams(random *rand.Rand) *unit.Grams { return new(unit.Grams(1 + random.IntN(1_000_000))) }

func touch(random *rand.Rand) *unit.Percent { return new(unit.Percent(90_000 + random.IntN(9_900))) }
