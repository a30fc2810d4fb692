package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/number"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/internal/app"
)

// The shapes of a ledger's events.
type (
	accountOpened = book.AccountOpened
	rowAdded      = book.RowAdded
	rowEdited     = book.RowEdited
	rowDeleted    = book.RowDeleted
)

const (
	chunkEvents = 2048 // of one AppendEach
	writers     = 2    // one prepares a chunk while the other appends

	reservedAccounts = 20_000
	ledgerYears      = 10
)

// logMaker fills a log with the events of commands, without the commands.
type logMaker struct {
	sys    *app.System
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
		sys: sys, random: rand.New(rand.NewPCG(seed, 3)), //nolint:gosec // the same log in each run
		meta:  event.Meta{Workspace: sys.Home, Actor: "api_key:1f0c9f1f-3a67-4a0c-9a7e-6fd1f3b54a11", RequestID: "0190163d8694739b8a2f3f0c9f1f4a11"},
		chunk: min(chunkEvents, 1+rows/32), chunks: make(chan []eventstore.Transaction), failed: make(chan error, writers),
	}
	for range writers {
		m.running.Go(func() {
			for chunk := range m.chunks {
				for _, r := range m.sys.Store.AppendEach(ctx, chunk) {
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
	for _, of := range []struct {
		series string
		last   int64
	}{{number.Accounts, reservedAccounts}, {number.Rows, 4 * int64(rows)}} {
		if err := reserve(ctx, sys, of.series, of.last); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// reserve takes the first numbers of a series for the log that is made.
func reserve(ctx context.Context, sys *app.System, series string, last int64) error {
	e, err := number.Kind.Encode(uuid.Must(uuid.NewV7()), number.Reserved{First: 1, Last: last}, event.Meta{Workspace: sys.Home, OccurredAt: time.Now().UTC().Truncate(time.Microsecond)})
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
		opened := accountOpened{Name: l.Title + " account " + id}
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
	e := rowAdded{Account: account, Date: day}
	e.In, e.Out = sides(l, m.random)
	return queue(m, l.Rows, m.row, eventstore.NoStream, e)
}

// ago returns the date of the i-th of n things spread over the last years.
func ago(i, n int) unit.Date {
	const days = ledgerYears * 365
	return unit.DateOf(time.Now()) - days + unit.Date(i*days/n)
}

// mixed appends events of bankAccounts of each of the ledgers, from an account on, with increasing dates: most add rows, one in
// twenty edits one, one in a hundred deletes one.
func (m *logMaker) mixed(ctx context.Context, first int64, events int, show func(done, total int64), ledgers ...*book.Ledger) error {
	for i, l := range ledgers {
		if err := m.open(l, first+int64(i*bankAccounts), bankAccounts); err != nil {
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
			var e event.Event[book.Row] = rowDeleted{}
			if kind > 0 {
				in, out := sides(l, m.random)
				e = rowEdited{In: &in, Out: &out}
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
		account := m.random.IntN(bankAccounts * len(ledgers))
		of := account / bankAccounts
		if err := m.add(ledgers[of], first+int64(account), ago(i, events)); err != nil {
			return err
		}
		rows = append(rows, row{ledger: uint8(of), touched: i}) // there are five
	}
	return nil
}

// ledger appends an account with rows, spread over years or all on one day, and returns the id of its first row.
func (m *logMaker) ledger(ctx context.Context, l *book.Ledger, account int64, rows int, oneDay bool, show func(done, total int64)) (int64, error) {
	if err := m.open(l, account, 1); err != nil {
		return 0, err
	}
	first := m.row + 1
	for i := range rows {
		if i%1000 == 0 {
			show(int64(i), int64(rows))
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
		}
		day := ago(i, rows)
		if oneDay {
			day = ago(1, 2)
		}
		if err := m.add(l, account, day); err != nil {
			return 0, err
		}
	}
	return first, nil
}
