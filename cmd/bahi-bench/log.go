package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/number"
	"bahi/domain/unit"
	"bahi/eventstore"
	"bahi/internal/app"
)

// The shapes of the bank ledger's events.
type (
	accountOpened = book.AccountOpened
	rowAdded      = book.RowAdded
	rowEdited     = book.RowEdited
	rowDeleted    = book.RowDeleted
)

const (
	chunkEvents = 2048 // of one AppendEach
	writers     = 2    // one prepares a chunk while the other appends

	reservedAccounts = 10_000
	ledgerYears      = 10
)

// logMaker fills a log with the events of commands, without the commands.
type logMaker struct {
	sys    *app.System
	meta   event.Meta
	random *rand.Rand
	row    int64 // id of the last row

	chunk   int
	waiting []eventstore.Request
	chunks  chan []eventstore.Request
	failed  chan error
	running sync.WaitGroup

	appending sync.WaitGroup // chunks in progress
}

func newLogMaker(ctx context.Context, sys *app.System, rows int) (*logMaker, error) {
	m := &logMaker{
		sys: sys, random: rand.New(rand.NewPCG(seed, 3)), //nolint:gosec // the same log in each run
		meta:  event.Meta{Workspace: sys.Home, Actor: "api_key:1f0c9f1f-3a67-4a0c-9a7e-6fd1f3b54a11", RequestID: "0190163d8694739b8a2f3f0c9f1f4a11"},
		chunk: min(chunkEvents, 1+rows/32), chunks: make(chan []eventstore.Request), failed: make(chan error, writers),
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
		e, err := number.Kind.Encode(uuid.Must(uuid.NewV7()), number.Reserved{First: 1, Last: of.last}, m.now())
		if err != nil {
			return nil, err
		}
		if _, err := sys.Store.Append(ctx, number.Kind.Stream(of.series), eventstore.NoStream, e); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *logMaker) now() event.Meta {
	meta := m.meta
	meta.OccurredAt = time.Now().UTC().Truncate(time.Microsecond)
	return meta
}

// open opens an account.
func (m *logMaker) open(ctx context.Context, account int64) error {
	id := strconv.FormatInt(account, 10)
	e, err := bank.Ledger.Accounts.Encode(uuid.Must(uuid.NewV7()), accountOpened{Name: "HDFC Current " + id}, m.now())
	if err != nil {
		return err
	}
	_, err = m.sys.Store.Append(ctx, bank.Ledger.Accounts.Stream(id), eventstore.NoStream, e)
	return err
}

// put queues an event for a row's stream.
func (m *logMaker) put(row int64, expected eventstore.Expected, e event.Event[book.Row]) error {
	encoded, err := bank.Ledger.Rows.Encode(uuid.Must(uuid.NewV7()), e, m.now())
	if err != nil {
		return err
	}
	return m.queue(bank.Ledger.Rows.Stream(strconv.FormatInt(row, 10)), expected, encoded)
}

// queue queues an event for any stream.
func (m *logMaker) queue(stream string, expected eventstore.Expected, e event.New) error {
	m.waiting = append(m.waiting, eventstore.Request{Stream: stream, Expected: expected, Events: []event.New{e}})
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
		m.waiting = make([]eventstore.Request, 0, m.chunk)
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
func (m *logMaker) add(account int64, day unit.Date) error {
	m.row++
	e := rowAdded{Account: account, Date: day}
	if m.random.IntN(3) == 0 {
		e.Out = m.entries()
	} else {
		e.In = m.entries()
	}
	return m.put(m.row, eventstore.NoStream, e)
}

func (m *logMaker) entries() book.Side {
	return book.SideOf([]bank.Entry{{
		Description: book.Text(fmt.Sprintf("%s %s, invoice %d", ways[m.random.IntN(len(ways))], parties[m.random.IntN(len(parties))], 1000+m.random.IntN(9000))),
		Amount:      unit.Money(10_000 + m.random.IntN(50_000_000)),
	}})
}

// ago returns the date of the i-th of n things spread over the last years.
func ago(i, n int) unit.Date {
	const days = ledgerYears * 365
	return unit.DateOf(time.Now()) - days + unit.Date(i*days/n)
}

// mixed appends events of bankAccounts with increasing dates: most add rows, one in twenty edits one, one in a hundred deletes one.
func (m *logMaker) mixed(ctx context.Context, events int, show func(done, total int64)) error {
	for a := range bankAccounts {
		if err := m.open(ctx, int64(a+1)); err != nil {
			return err
		}
	}
	var (
		revisions = make([]int64, 1, events+1) // by row; -1: deleted
		touched   = make([]int, 1, events+1)   // when the row last changed; events still in the queue are left alone
		lag       = (writers + 2) * m.chunk
	)
	for i := range events {
		if i%1000 == 0 {
			show(int64(i), int64(events))
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		kind := m.random.IntN(100)
		if row := int64(1 + m.random.IntN(max(1, len(revisions)-1))); kind < 6 && i > lag && revisions[row] >= 0 && touched[row] < i-lag {
			var e event.Event[book.Row] = rowDeleted{}
			if kind > 0 {
				in, out := m.entries(), book.Side{}
				e = rowEdited{In: &in, Out: &out}
			}
			if err := m.put(row, eventstore.Expected(revisions[row]), e); err != nil {
				return err
			}
			touched[row] = i
			if revisions[row]++; kind == 0 {
				revisions[row] = -1
			}
			continue
		}
		if err := m.add(int64(1+m.random.IntN(bankAccounts)), ago(i, events)); err != nil {
			return err
		}
		revisions, touched = append(revisions, 0), append(touched, i)
	}
	return nil
}

// ledger appends an account with rows, spread over years or all on one day, and returns the id of its first row.
func (m *logMaker) ledger(ctx context.Context, account int64, rows int, oneDay bool, show func(done, total int64)) (int64, error) {
	if err := m.open(ctx, account); err != nil {
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
		if err := m.add(account, day); err != nil {
			return 0, err
		}
	}
	return first, nil
}
