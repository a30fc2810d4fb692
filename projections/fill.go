package projections

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

const (
	// fillBatch is the number of events in one transaction of a fill. It is large, so that a row with several changes is written once.
	fillBatch = 10_000

	// throttledBatches is the number of batches per second of a throttled fill. It spreads the work evenly.
	throttledBatches = 20

	// readAhead is the number of batches that are read and decoded while one is folded.
	readAhead = 1

	// progressInterval is the interval at which a fill records its progress and checks for orders.
	progressInterval = 200 * time.Millisecond
)

// fill folds the log up to a position, in parallel parts. Each part records its position in each batch's transaction, so a resumed fill
// continues at that position.
func (b Build) fill(ctx context.Context, s *session, c *control, limit event.Position) error {
	began := time.Time{}
	if b.Now != nil {
		began = b.Now()
	}
	decoding, err := newDecoder(ctx, b.Store, b.Projection, b.Reveal)
	if err != nil {
		return err
	}
	parts, err := b.openParts(ctx, s)
	defer func() {
		for _, p := range parts {
			_ = p.conn.Close(context.WithoutCancel(ctx)) // the connection is discarded
		}
	}()
	if err != nil {
		return err
	}
	start, resumed := least(parts), false
	for _, p := range parts {
		resumed, limit = resumed || p.begun > 0, max(limit, p.begun)
	}
	if _, err := s.conn.Exec(ctx, `update projection.generation set total = $3 where name = $1 and generation = $2`,
		s.g.Name, s.g.Generation, int64(limit)); err != nil {
		return err
	}
	s.g.Total = limit
	if resumed {
		err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
			return b.Projection.resume(ctx, &Batch{Tx: tx, Filling: true, Resumed: true})
		})
		if err != nil {
			return err
		}
	}
	reporting, stop := context.WithCancel(ctx)
	var reported sync.WaitGroup
	reported.Go(func() { b.reportFill(reporting, s, parts) })
	group, together := errgroup.WithContext(ctx)
	for _, p := range parts {
		p.resumed = resumed
		group.Go(func() error { return orUnreachable(p.conn, p.fold(together)) })
	}
	group.Go(func() error {
		for d, err := range b.ahead(together, decoding, start, limit, c) {
			if d.upTo > 0 {
				if err := guarded(func() error { return b.shareOut(together, d, parts) }); err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
		}
		for _, p := range parts {
			close(p.in)
		}
		return nil
	})
	err = group.Wait()
	stop()
	reported.Wait()
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.at == least(parts) {
			s.g.Position, s.g.EventID = p.at, p.id
		}
	}
	if b.Now != nil && limit > start {
		s.g.Rate = perSecond(int64(limit-start), b.Now().Sub(began))
		s.pace.rate = s.g.Rate // until the rate is measured again
	}
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, `update projection.generation set position = $4, event_id = $5, rate = $6, filled_at = now()
			where name = $1 and generation = $2 and owner = $3`, s.g.Name, s.g.Generation, s.owner, int64(s.g.Position), s.g.EventID, s.g.Rate)
		if err == nil && done.RowsAffected() == 0 {
			err = ErrFenced
		}
		if err != nil {
			return err
		}
		return b.enter(ctx, tx, s, indexing)
	})
}

// part folds its part of the log in its own goroutine and on its own connection.
type part struct {
	Part

	p       *Projection
	g       generation
	owner   uuid.UUID // owner of the build
	conn    *pgx.Conn
	in      chan decoded
	resumed bool
	kept    any

	begun  event.Position // position at which this process resumed it
	stored event.Position // position stored in the registry

	mu sync.Mutex
	at event.Position // position up to which all of the part's events are in the tables
	id *uuid.UUID     // id of the event at that position
}

// openParts connects the parts and returns them with their positions.
func (b Build) openParts(ctx context.Context, s *session) ([]*part, error) {
	rows, _ := s.conn.Query(ctx, `select position, event_id from projection.partition where name = $1 and generation = $2 order by ordinal`,
		s.g.Name, s.g.Generation)
	type place struct {
		Position event.Position
		EventID  *uuid.UUID
	}
	places, err := pgx.CollectRows(rows, pgx.RowToStructByPos[place])
	if err != nil {
		return nil, err
	}
	if len(places) == 0 { // only an operator's SQL can cause this
		return nil, fmt.Errorf("the build of %s has lost its parts: cancel it and start again", s.g.Name)
	}
	parts := make([]*part, 0, len(places))
	for nth, at := range places {
		if err := b.belongs(ctx, s.g, at.Position, at.EventID); err != nil {
			return parts, err
		}
		conn, err := connect(ctx, b.Config, b.Projection)
		if err != nil {
			return parts, err
		}
		parts = append(parts, &part{
			Part: Part{Ordinal: nth, Of: len(places)}, p: b.Projection, g: s.g, owner: s.owner, conn: conn,
			in: make(chan decoded), begun: at.Position, stored: at.Position, at: at.Position, id: at.EventID,
		})
		if err := useSchema(ctx, conn, s.g.schema()); err != nil {
			return parts, err
		}
	}
	return parts, nil
}

// least returns the smallest position of the parts.
func least(parts []*part) event.Position {
	at := parts[0].place()
	for _, p := range parts[1:] {
		at = min(at, p.place())
	}
	return at
}

func (p *part) place() event.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (p *part) reach(d decoded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.id = d.upTo, d.last
}

// fold folds its input, and then finishes the part.
func (p *part) fold(ctx context.Context) error {
	for {
		select {
		case d, more := <-p.in:
			if !more {
				return p.finish(ctx)
			}
			if err := p.apply(ctx, d); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *part) batch(tx pgx.Tx) *Batch {
	return &Batch{Tx: tx, Filling: true, Resumed: p.resumed, Part: p.Part, FoldState: p.kept}
}

// apply folds a piece and records the part's position in one transaction. It records the position even if it folded no event, so that a
// resumed fill does not read those events again. After an error, apply searches for the faulty event.
func (p *part) apply(ctx context.Context, d decoded) error {
	var b *Batch
	err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		b = p.batch(tx)
		if err := guarded(func() error { return p.p.fold(ctx, b, d) }); err != nil {
			return err
		}
		done, err := tx.Exec(ctx, `
			update projection.partition set position = $5, event_id = $6
			where name = $1 and generation = $2 and ordinal = $3 and position = $4
				and exists (select from projection.generation where name = $1 and generation = $2 and owner = $7)`,
			p.g.Name, p.g.Generation, p.Ordinal, int64(p.stored), int64(d.upTo), d.last, p.owner)
		if err == nil && done.RowsAffected() == 0 {
			err = ErrFenced
		}
		return err
	})
	switch {
	case err == nil:
		p.kept, p.stored = b.FoldState, d.upTo
		p.reach(d)
		return nil
	case isTransient(p.conn, err):
		return err
	default:
		return p.blame(ctx, d, err)
	}
}

// blame finds the first event of a piece that cannot be folded. It folds the piece event by event and rolls back. The fold's state in
// memory is lost, so the result is only for the error message.
func (p *part) blame(ctx context.Context, d decoded, err error) error {
	tx, beginErr := p.conn.Begin(ctx)
	if beginErr != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // rolled back on purpose
	p.kept, p.resumed, d.singly = nil, true, true
	if bad, found := errors.AsType[*poison](p.p.fold(ctx, p.batch(tx), d)); found {
		return bad
	}
	return err
}

func (p *part) finish(ctx context.Context) error {
	return pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		b := p.batch(tx)
		p.kept = nil
		if err := p.p.finish(ctx, b); err != nil {
			return err
		}
		// If another process has continued, the state in memory is outdated.
		mine, err := generations(ctx, tx, `name = $1 and generation = $2 and owner = $3`, p.g.Name, p.g.Generation, p.owner)
		if err == nil && len(mine) == 0 {
			err = ErrFenced
		}
		return err
	})
}

// shareOut gives each part its events of a piece, unless the part has already folded them.
func (b Build) shareOut(ctx context.Context, d decoded, parts []*part) error {
	all := make([]decoded, len(parts))
	for i, p := range parts {
		all[i] = decoded{upTo: d.upTo, last: d.last}
		if len(parts) == 1 && p.begun == 0 {
			all[i] = d
		}
	}
	if len(parts) > 1 || parts[0].begun > 0 {
		for i := range d.stored { // a raw fold has one part
			if d.stored[i].Position > parts[0].begun {
				all[0].stored = append(all[0].stored, d.stored[i])
			}
		}
		for i := range d.events {
			e := &d.events[i]
			key, every := int64(0), true
			if len(parts) > 1 {
				key, every = b.Projection.parted(e)
			}
			for n, p := range parts {
				if (every || p.Has(key)) && e.Position > p.begun {
					all[n].events, all[n].names = append(all[n].events, *e), append(all[n].names, d.names[i])
				}
			}
		}
	}
	for i, p := range parts {
		if d.upTo <= p.begun {
			continue
		}
		select {
		case p.in <- all[i]:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// reportFill records the progress of the parts until ctx ends.
func (b Build) reportFill(ctx context.Context, s *session, parts []*part) {
	measured := pace{now: b.Now, rate: s.g.Rate}
	for before := least(parts); signal.Sleep(ctx, progressInterval) == nil; {
		now := s.g
		now.Position = least(parts)
		now.Rate, before = measured.after(int(now.Position-before)), now.Position
		_, err := s.conn.Exec(context.WithoutCancel(ctx), `update projection.generation set position = $4, event_id = null, rate = $5
			where name = $1 and generation = $2 and owner = $3`, s.g.Name, s.g.Generation, s.owner, int64(now.Position), now.Rate)
		if err != nil {
			return // the parts get the same error
		}
		b.reportProgress(now)
	}
}

// maxPassed is the maximum number of skipped events before a fill records its position.
const maxPassed = 100_000

// read yields the events after a position, at least up to a limit. It yields the events that the projection folds, events of unknown types,
// and some others.
func (b Build) read(ctx context.Context, after, limit event.Position) iter.Seq2[event.Stored, error] {
	if sparing, is := b.Store.(eventstore.FilteredReader); is && b.Projection.raw == nil {
		return sparing.ReadExcluding(ctx, after, limit, b.Projection.foreign())
	}
	return b.Store.ReadAll(ctx, after, eventstore.Forwards)
}

// ahead yields decoded batches of the log after a position up to a limit. It reads and decodes the next ones in the background. control
// limits the rate; nil: unlimited.
func (b Build) ahead(ctx context.Context, decoding decoder, after, limit event.Position, c *control) iter.Seq2[decoded, error] {
	type item struct {
		d   decoded
		err error
	}
	return func(yield func(decoded, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		batches := make(chan item, readAhead)
		send := func(d decoded, err error) bool {
			select {
			case batches <- item{d, err}:
				return err == nil
			case <-ctx.Done():
				return false
			}
		}
		go func() {
			defer close(batches)
			batch, size, sent, end := eventstore.Batch{}, c.batch(), after, event.Position(0)
			full := func() bool { return len(batch.Events) >= size || batch.UpTo >= sent+maxPassed }
			hand := func() bool {
				if full() {
					if err := c.wait(ctx, len(batch.Events)); err != nil {
						return send(decoded{}, err)
					}
				}
				return len(batch.Events) == 0 || send(decoding.decode(ctx, batch))
			}
			for e, err := range b.read(ctx, after, limit) {
				if err != nil {
					send(decoded{}, &unreachable{err})
					return
				}
				if e.Position > limit {
					break
				}
				if e.Position > end && full() { // not inside a transaction
					if !hand() {
						return
					}
					batch.Events, size, sent = batch.Events[:0], c.batch(), batch.UpTo
				}
				batch.Events, batch.UpTo, end = append(batch.Events, e), e.Position, endOf(&e)
			}
			hand()
		}()
		for next := range batches {
			if !yield(next.d, next.err) {
				return
			}
		}
	}
}
