package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/vault"
)

// session is a runner's access to one generation: a connection with its search path, and the ownership that excludes other runners. Only
// one goroutine may use it.
type session struct {
	p     *Projection
	g     generation
	owner uuid.UUID
	check bool // the generation stays scratch, and only g.Status has the phase
	conn  *pgx.Conn
	kept  any // see Batch.FoldState
	pace  pace
}

// connect opens a connection for one generation's tables.
func connect(ctx context.Context, config *pgx.ConnConfig, p *Projection) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, configured(config, p))
	if err != nil {
		return nil, fmt.Errorf("connect projection %s: %w", p.Name, err)
	}
	return conn, nil
}

func configured(config *pgx.ConnConfig, p *Projection) *pgx.ConnConfig {
	config = config.Copy()
	config.RuntimeParams["synchronous_commit"] = "off" // the log is the source of truth
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	keyed(config.RuntimeParams)
	noticed(config.RuntimeParams)
	config.RuntimeParams["maintenance_work_mem"] = "512MB" // to sort an index in memory
	config.RuntimeParams["application_name"] = "bahi projection " + p.Name
	return config
}

// noticed makes Postgres detect the loss of a client's machine in seconds, and release its locks, so that another process continues.
// Postgres detects the end of a process at once.
func noticed(parameters map[string]string) {
	parameters["tcp_keepalives_idle"] = "5"
	parameters["tcp_keepalives_interval"] = "2"
	parameters["tcp_keepalives_count"] = "3"
	parameters["tcp_user_timeout"] = "10000"
}

// keyed makes Postgres look up rows by key. Plans are made once, maybe for empty tables. The best plan for an empty table, a sequential
// scan, would remain while the table fills.
func keyed(parameters map[string]string) {
	parameters["enable_seqscan"] = "off"
	parameters["enable_hashjoin"] = "off"
	parameters["enable_mergejoin"] = "off"
}

// keyedPlans sets such plans for the rest of a transaction; freePlans allows sequential scans.
const (
	keyedPlans = `set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off`
	freePlans  = `set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on`
)

func useSchema(ctx context.Context, conn *pgx.Conn, schema string) error {
	_, err := conn.Exec(ctx, `select set_config('search_path', $1, false)`, schema)
	return err
}

func (s *session) place() place { return place{generation: s.g.Generation, position: s.g.Position} }

// own makes this session the owner of the generation.
func (s *session) own(ctx context.Context) error {
	rows, _ := s.conn.Query(ctx, `
		update projection.generation set owner = $3 where name = $1 and generation = $2 and status <> 'scratch'
		returning `+generationColumns, s.g.Name, s.g.Generation, s.owner)
	g, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[generation])
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrFenced
	}
	if err != nil {
		return fmt.Errorf("take over projection %s: %w", s.p.Name, err)
	}
	s.g = g
	s.pace.rate = g.Rate
	return useSchema(ctx, s.conn, g.schema())
}

// decoded is a piece of the log for a projection: events with the names of their types, or for [Raw] the stored events.
type decoded struct {
	events []event.Recorded[any]
	names  []string
	stored []event.Stored
	upTo   event.Position
	last   *uuid.UUID // id of the event at upTo; nil: not in the batch
	singly bool       // fold each event by itself to find the faulty one
}

// len returns the number of events to fold.
func (d *decoded) len() int { return len(d.events) + len(d.stored) }

// some returns the piece with some of the events.
func (d *decoded) some(from, to int) decoded {
	if d.stored != nil {
		e := &d.stored[to-1]
		return decoded{stored: d.stored[from:to], upTo: e.Position, last: &e.ID}
	}
	e := &d.events[to-1]
	return decoded{events: d.events[from:to], names: d.names[from:to], upTo: e.Position, last: &e.ID}
}

// transaction returns the part of the piece from the nth event to the end of its transaction.
func (d *decoded) transaction(from int) decoded {
	_, end := d.place(from)
	to := from + 1
	for ; to < d.len(); to++ {
		if at, _ := d.place(to); at > end {
			break
		}
	}
	return d.some(from, to)
}

// place returns the position of an event, and the end of its transaction.
func (d *decoded) place(nth int) (at, end event.Position) {
	if d.stored != nil {
		e := &d.stored[nth]
		return e.Position, endOf(e)
	}
	e := &d.events[nth]
	return e.Position, e.Position + event.Position(max(e.Meta.More, 0))
}

// endOf returns the end of an event's transaction.
func endOf(e *event.Stored) event.Position { return e.Position + event.Position(event.More(e.Meta)) }

// blame returns the error of the nth event, which cannot be folded.
func (d *decoded) blame(nth int, err error) error {
	if d.stored != nil {
		return &poison{at: d.stored[nth].Position, typ: d.stored[nth].Type, err: err}
	}
	return &poison{at: d.events[nth].Position, typ: d.names[nth], err: err}
}

// ErrUnknownType reports an event of a newer program. A process of that program continues after it.
var ErrUnknownType = errors.New("this program does not know events of this type; only the newer program that wrote the event folds it")

// poison is an event that a projection cannot apply.
type poison struct {
	at  event.Position
	typ string
	err error
}

func (p *poison) Error() string {
	return fmt.Sprintf("event %s at position %d: %v", p.typ, p.at, p.err)
}

func (p *poison) Unwrap() error { return p.err }

// decode decodes the events that the projection folds. At a bad event, it returns those before its transaction, with the error.
func (p *Projection) decode(batch eventstore.Batch, skipped map[event.Position]bool) (d decoded, err error) {
	if p.raw != nil {
		d.stored = slices.Clone(batch.Events) // the batch's memory is reused, except the payloads'
		if p.forwards {
			d.stored = slices.DeleteFunc(d.stored, func(e event.Stored) bool { return skipped[e.Position] })
		}
		d.reach(batch.Events)
		d.upTo = max(d.upTo, batch.UpTo)
		return d, nil
	}
	d.events, d.names = make([]event.Recorded[any], 0, len(batch.Events)), make([]string, 0, len(batch.Events))
	first, before, end := 0, 0, event.Position(0) // the transaction's first event, number of events decoded before it, its end
	for i := range batch.Events {
		e := &batch.Events[i]
		if e.Position > end {
			first, before, end = i, len(d.events), endOf(e)
		}
		if p.takes(e) && !skipped[e.Position] {
			var r event.Recorded[any]
			err := ErrUnknownType
			if isKnown(e.Type) {
				err = guarded(func() (err error) { r, err = domain.Catalogue.Decode(*e); return err })
			}
			if err != nil {
				d.events, d.names = d.events[:before], d.names[:before]
				d.reach(batch.Events[:first])
				return d, &poison{at: e.Position, typ: e.Type, err: err}
			}
			d.events, d.names = append(d.events, r), append(d.names, e.Type)
		}
	}
	d.reach(batch.Events)
	d.upTo = max(d.upTo, batch.UpTo)
	return d, nil
}

// Reveal opens the personal values of events, for projections that store them as plaintext. An erased value stays sealed. The vault
// implements it.
type Reveal func(ctx context.Context, values []*event.Sealed) error

// open opens the personal values in a piece if the projection folds any. Like [Projection.decode], it returns a piece even with an error:
// if the key of a value is missing, the events before the value's transaction.
func (p *Projection) open(ctx context.Context, reveal Reveal, d decoded, decodeErr error) (decoded, error) {
	if !p.personal || len(d.events) == 0 {
		return d, decodeErr
	}
	if reveal == nil {
		return decoded{}, fmt.Errorf("projection %s has personal values but no Reveal", p.Name)
	}
	opened := func(events []event.Recorded[any]) ([]event.Recorded[any], error) {
		events, err := event.MapSealedIn(events, func(values []*event.Sealed) error { return reveal(ctx, values) })
		if err != nil {
			err = fmt.Errorf("open personal values: %w", err)
		}
		return events, err
	}
	events, err := opened(d.events)
	if isSealedForGood(err) {
		if d, err = d.openUpTo(opened); err != nil {
			return d, err
		}
		return d, decodeErr
	}
	if err != nil {
		return decoded{}, err
	}
	d.events = events
	return d, decodeErr
}

// isSealedForGood reports whether a retry cannot open a value.
func isSealedForGood(err error) bool {
	return errors.Is(err, vault.ErrNoKey) || errors.Is(err, vault.ErrChanged)
}

// openUpTo opens one event after another. At one that cannot be opened, it returns those before its transaction, with the error.
func (d decoded) openUpTo(open func([]event.Recorded[any]) ([]event.Recorded[any], error)) (decoded, error) {
	for from := 0; from < len(d.events); {
		one := d.transaction(from)
		for nth := range one.events {
			opened, err := open(one.events[nth : nth+1])
			switch {
			case isSealedForGood(err) && from == 0:
				return decoded{}, one.blame(nth, err)
			case isSealedForGood(err):
				return d.some(0, from), one.blame(nth, err)
			case err != nil:
				return decoded{}, err
			}
			one.events[nth] = opened[0]
		}
		from += len(one.events)
	}
	return d, nil
}

// reach sets the end of d to the last of the events.
func (d *decoded) reach(events []event.Stored) {
	if n := len(events); n > 0 {
		id := events[n-1].ID // the events' memory is reused
		d.upTo, d.last = events[n-1].Position, &id
	}
}

// apply folds a batch and moves the checkpoint in one transaction.
func (s *session) apply(ctx context.Context, d decoded) error {
	if d.len() == 0 && !s.g.incomplete() { // most events belong to other projections
		s.g.Rate = s.pace.after(0)
		err := s.checkpoint(ctx, s.conn, d.upTo, d.last)
		if err == nil {
			s.g.Position, s.g.EventID = d.upTo, d.last
		}
		return err
	}
	b := &Batch{Filling: s.g.incomplete(), FoldState: s.kept}
	s.kept = nil // outdated after a failure
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		b.Tx = tx
		if err := guarded(func() error { return s.p.fold(ctx, b, d) }); err != nil {
			return err
		}
		s.g.Rate = s.pace.after(d.len())
		return s.checkpoint(ctx, tx, d.upTo, d.last)
	})
	if err == nil {
		s.g.Position, s.g.EventID, s.kept = d.upTo, d.last, b.FoldState
	}
	return err
}

// fenced returns [ErrFenced] if this session may no longer write.
func (s *session) fenced(ctx context.Context) error {
	found, err := generations(ctx, s.conn, `name = $1 and generation = $2 and position = $3 and owner = $4
		and not (status = 'live' and paused)`,
		s.g.Name, s.g.Generation, int64(s.g.Position), s.owner)
	if err == nil && len(found) == 0 {
		err = ErrFenced
	}
	return err
}

// applyIsolating applies a batch. If that fails for a reason other than the connection, it applies each of the log's transactions
// separately. So all transactions before the faulty event take effect, each as a whole.
func applyIsolating(ctx context.Context, h held, conn *pgx.Conn, d decoded) error {
	err := h.apply(ctx, d)
	if err == nil || isTransient(conn, err) || d.len() == 0 {
		return err
	}
	if err := h.fenced(ctx); err != nil { // the tables may have been dropped
		return err
	}
	for from := 0; from < d.len(); {
		one := d.transaction(from)
		if from += one.len(); from == d.len() {
			one.upTo, one.last = d.upTo, d.last
		}
		one.singly = true
		if err := h.apply(ctx, one); err != nil {
			if isTransient(conn, err) {
				return err
			}
			if err := h.fenced(ctx); err != nil {
				return err
			}
			if bad, found := errors.AsType[*poison](err); found {
				return bad
			}
			return one.blame(0, err) // at the commit
		}
	}
	return nil
}
