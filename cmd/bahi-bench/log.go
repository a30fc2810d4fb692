package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/polisher"
	"bahi/domain/number"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/internal/app"
)

const (
	chunkEvents = 2048 // of one AppendEach
	writers     = 2    // one prepares a chunk while the other appends

	ledgerAccounts = 100 // of each ledger
	ledgerYears    = 10
)

// logMaker fills a log with the events of commands, without the commands.
type logMaker struct {
	meta   event.Meta
	random *rand.Rand
	row    int64 // id of the last row

	chunk   int
	waiting []eventstore.Transaction
	chunks  chan []eventstore.Transaction
	failed  chan error
	running sync.WaitGroup

	appending sync.WaitGroup // chunks in progress
}

func newLogMaker(ctx context.Context, sys *app.System, rows int) (*logMaker, error) {
	m := &logMaker{
		random: rand.New(rand.NewPCG(seed, 3)), //nolint:gosec // the same log in each run
		meta:   event.Meta{Workspace: sys.Home, Actor: "api_key:1f0c9f1f-3a67-4a0c-9a7e-6fd1f3b54a11", RequestID: "1"},
		chunk:  min(chunkEvents, 1+rows/32), chunks: make(chan []eventstore.Transaction), failed: make(chan error, writers),
	}
	for range writers {
		m.running.Go(func() {
			for chunk := range m.chunks {
				for _, r := range sys.Store.AppendEach(ctx, chunk) {
					if r.Err != nil {
						select {
						case m.failed <- r.Err:
						default:
						}
					}
				}
				m.appending.Done()
			}
		})
	}
	// A server on this log must give out other numbers.
	return m, errors.Join(reserve(ctx, sys, number.Accounts, 10_000), reserve(ctx, sys, number.Rows, 4*int64(rows)))
}

// reserve takes the first numbers of a series for the log that is made.
func reserve(ctx context.Context, sys *app.System, series string, last int64) error {
	meta := event.Meta{Workspace: sys.Home, OccurredAt: time.Now().UTC().Truncate(time.Microsecond)}
	e, err := number.Kind.Encode(uuid.Must(uuid.NewV7()), number.Reserved{First: 1, Last: last}, meta)
	if err == nil {
		_, err = sys.Store.Append(ctx, eventstore.To(number.Kind.Stream(series), eventstore.NoStream, e))
	}
	return err
}

func (m *logMaker) now() event.Meta {
	meta := m.meta
	meta.OccurredAt = time.Now().UTC().Truncate(time.Microsecond)
	return meta
}

// open queues the opening of accounts of a ledger, from an id on.
func (m *logMaker) open(l *book.Ledger, first int64, count int) error {
	for account := first; account < first+int64(count); account++ {
		id := strconv.FormatInt(account, 10)
		opened := book.AccountOpened{Name: l.Title + " account " + id}
		if l.Types > 0 {
			opened.Type = new(int(account) % l.Types)
		}
		if err := queue(m, l.Accounts, account, eventstore.NoStream, opened); err != nil {
			return err
		}
	}
	return m.pause() // rows follow their account
}

// queue queues an event for a stream.
func queue[S any](m *logMaker, kind *event.Kind[S], id int64, expected eventstore.Expected, e event.Event[S]) error {
	encoded, err := kind.Encode(uuid.Must(uuid.NewV7()), e, m.now())
	if err != nil {
		return err
	}
	return m.queue(kind.Stream(strconv.FormatInt(id, 10)), expected, encoded)
}

// queue queues an event for any stream.
func (m *logMaker) queue(stream string, expected eventstore.Expected, e event.New) error {
	m.waiting = append(m.waiting, eventstore.To(stream, expected, e))
	if len(m.waiting) >= m.chunk {
		return m.flush()
	}
	return nil
}

func (m *logMaker) flush() error {
	m.appending.Add(1)
	select {
	case err := <-m.failed:
		m.appending.Done()
		return fmt.Errorf("append an event of the log: %w", err)
	case m.chunks <- m.waiting:
		m.waiting = make([]eventstore.Transaction, 0, m.chunk)
		return nil
	}
}

// end waits until everything is appended.
func (m *logMaker) end() error {
	err := m.flush()
	close(m.chunks)
	m.running.Wait()
	select {
	case late := <-m.failed:
		return fmt.Errorf("append an event of the log: %w", late)
	default:
		return err
	}
}

// pause appends everything so far.
func (m *logMaker) pause() error {
	if err := m.flush(); err != nil {
		return err
	}
	m.appending.Wait()
	return nil
}

// add posts a row with the next id.
func (m *logMaker) add(l *book.Ledger, account int64, day unit.Date) error {
	m.row++
	e := book.RowAdded{Account: account, Date: day}
	e.In, e.Out = sides(l, m.random)
	return queue(m, l.Rows, m.row, eventstore.NoStream, e)
}

// ago returns the date of the i-th of n things spread over the last years.
func ago(i, n int) unit.Date {
	const days = ledgerYears * 365
	return unit.DateOf(time.Now()) - days + unit.Date(i*days/n)
}

// mixed appends events of ledgerAccounts of each of the ledgers, from an account on, with increasing dates: most add rows, one in
// twenty edits one, one in a hundred deletes one.
func (m *logMaker) mixed(ctx context.Context, first int64, events int, show func(done, total int64), ledgers ...*book.Ledger) error {
	for i, l := range ledgers {
		if err := m.open(l, first+int64(i*ledgerAccounts), ledgerAccounts); err != nil {
			return err
		}
	}
	type row struct {
		ledger   uint8
		revision int8 // -1: deleted
		touched  int  // when the row last changed; events still in the queue are left alone
	}
	var (
		rows   = make([]row, 1, events+1)
		before = m.row
		lag    = (writers + 2) * m.chunk
	)
	for i := range events {
		if i%1000 == 0 {
			show(int64(i), int64(events))
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		kind := m.random.IntN(100)
		nth := 1 + m.random.IntN(max(1, len(rows)-1))
		if r := &rows[min(nth, len(rows)-1)]; kind < 6 && i > lag && r.revision >= 0 && r.revision < math.MaxInt8 && r.touched < i-lag {
			l := ledgers[r.ledger]
			var e event.Event[book.Row] = book.RowDeleted{}
			if kind > 0 {
				in, out := sides(l, m.random)
				e = book.RowEdited{In: &in, Out: &out}
			}
			if err := queue(m, l.Rows, before+int64(nth), eventstore.Expected(r.revision), e); err != nil {
				return err
			}
			r.touched = i
			if r.revision++; kind == 0 {
				r.revision = -1
			}
			continue
		}
		account := m.random.IntN(ledgerAccounts * len(ledgers))
		of := account / ledgerAccounts
		if err := m.add(ledgers[of], first+int64(account), ago(i, events)); err != nil {
			return err
		}
		rows = append(rows, row{ledger: uint8(of), touched: i}) // there are five
	}
	return nil
}

// lines makes the entries of one side of a row, as commands store them.
var lines = map[*book.Ledger]func(random *rand.Rand) (in, out book.Side){
	bank.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, bankEntry, bankEntry)
	},
	bullion.Ledger: func(random *rand.Rand) (in, out book.Side) {
		entry := func(random *rand.Rand) bullion.Entry {
			return bullion.Entry{ItemName: party(random), Weight: grams(random), Touch: touch(random)}.Complete(&book.Computer{})
		}
		return either(random, entry, entry)
	},
	client.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, func(random *rand.Rand) client.In {
			return client.In{Description: party(random), Amount: money(random)}
		}, func(random *rand.Rand) client.Out {
			return client.Out{
				ItemName: "payal", Weight: grams(random), Touch: touch(random), WastagePercent: new(unit.Percent(3000)), MakingCharge: money(random),
			}.Complete(&book.Computer{})
		})
	},
	karigar.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, func(random *rand.Rand) karigar.In {
			return karigar.In{
				ItemName: "payal", PureWeight: grams(random), FinePercent: touch(random), WastagePercent: new(unit.Percent(2000)), Other: money(random),
			}.Complete(&book.Computer{})
		}, func(random *rand.Rand) karigar.Out {
			return karigar.Out{ItemName: "fine silver", Weight: grams(random), Touch: touch(random)}.Complete(&book.Computer{})
		})
	},
	polisher.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, func(random *rand.Rand) polisher.In {
			return polisher.In{ItemName: "payal", Weight: grams(random), LossWeight: new(unit.Grams(500)), Amount: money(random)}
		}, func(random *rand.Rand) polisher.Out {
			return polisher.Out{ItemName: "payal", Weight: grams(random), Pieces: new(1 + random.Int64N(50))}
		})
	},
}

// sides returns the sides of a row with one entry.
func sides(l *book.Ledger, random *rand.Rand) (in, out book.Side) { return lines[l](random) }

// either makes an entry of one of the sides, more often of IN.
func either[In, Out book.Entry](random *rand.Rand, in func(*rand.Rand) In, out func(*rand.Rand) Out) (inSide, outSide book.Side) {
	if random.IntN(3) == 0 {
		return book.Side{}, book.SideOf([]Out{out(random)})
	}
	return book.SideOf([]In{in(random)}), book.Side{}
}

func bankEntry(random *rand.Rand) bank.Entry {
	text := fmt.Sprintf("%s %s, invoice %d", ways[random.IntN(len(ways))], party(random), 1000+random.IntN(9000))
	return bank.Entry{Description: book.Text(text), Amount: *money(random)}
}

func party(random *rand.Rand) book.Text { return book.Text(parties[random.IntN(len(parties))]) }

func money(random *rand.Rand) *unit.Money { return new(unit.Money(10_000 + random.IntN(50_000_000))) }

func grams(random *rand.Rand) *unit.Grams { return new(unit.Grams(1 + random.IntN(1_000_000))) }

func touch(random *rand.Rand) *unit.Percent { return new(unit.Percent(90_000 + random.IntN(9_900))) }
