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
)

// session is a runner's hold on one generation: a connection with its search path, and the ownership
// that fences off others. It is used by one goroutine.
type session struct {
	p     *Projection
	g     generation
	owner uuid.UUID
	conn  *pgx.Conn
	kept  any // see Batch.Kept
	pace  pace
}

// connect makes a connection for one generation's tables.
func connect(ctx context.Context, config *pgx.ConnConfig, p *Projection) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, configured(config, p))
	if err != nil {
		return nil, fmt.Errorf("connect projection %s: %w", p.Name, err)
	}
	return conn, nil
}

func configured(config *pgx.ConnConfig, p *Projection) *pgx.ConnConfig {
	config = config.Copy()
	config.RuntimeParams["synchronous_commit"] = "off" // the log is the truth
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	keyed(config.RuntimeParams)
	noticed(config.RuntimeParams)
	config.RuntimeParams["maintenance_work_mem"] = "512MB" // an index is sorted in memory
	config.RuntimeParams["application_name"] = "bahi projection " + p.Name
	return config
}

// noticed makes Postgres notice within seconds that the machine of a process is gone, and give up its locks, so that another process
// goes on with the work. A process that ends is noticed at once.
func noticed(parameters map[string]string) {
	parameters["tcp_keepalives_idle"] = "5"
	parameters["tcp_keepalives_interval"] = "2"
	parameters["tcp_keepalives_count"] = "3"
	parameters["tcp_user_timeout"] = "10000"
}

// keyed makes Postgres look rows up by their keys. Plans are made once, when the tables may be empty, and
// a plan that reads all of an empty table is kept while it fills.
func keyed(parameters map[string]string) {
	parameters["enable_seqscan"] = "off"
	parameters["enable_hashjoin"] = "off"
	parameters["enable_mergejoin"] = "off"
}

// keyedPlans are those for the rest of a transaction, freePlans others, which may read whole tables.
const (
	keyedPlans = `set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off`
	freePlans  = `set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on`
)

func useSchema(ctx context.Context, conn *pgx.Conn, schema string) error {
	_, err := conn.Exec(ctx, `select set_config('search_path', $1, false)`, schema)
	return err
}

func (s *session) place() place { return place{generation: s.g.Generation, position: s.g.Position} }

// own makes this session the one that may write the generation.
func (s *session) own(ctx context.Context) error {
	rows, _ := s.conn.Query(ctx, `
		update projection.generation set owner = $3 where name = $1 and generation = $2 and not scratch
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

// decoded is a piece of the log as far as a projection wants it: events with the names of their types, or
// for [Raw] what is stored.
type decoded struct {
	events []event.Recorded[any]
	names  []string
	stored []event.Stored
	upTo   event.Position
	last   *uuid.UUID // of the event at upTo, when the batch has it
}

// len is how many events there are to fold.
func (d *decoded) len() int { return len(d.events) + len(d.stored) }

// one is the nth event alone.
func (d *decoded) one(nth int) decoded {
	if d.stored != nil {
		e := &d.stored[nth]
		return decoded{stored: d.stored[nth : nth+1], upTo: e.Position, last: &e.ID}
	}
	e := &d.events[nth]
	return decoded{events: d.events[nth : nth+1], names: d.names[nth : nth+1], upTo: e.Position, last: &e.ID}
}

// blame says that the nth event cannot be folded.
func (d *decoded) blame(nth int, err error) error {
	if d.stored != nil {
		return &poison{at: d.stored[nth].Position, typ: d.stored[nth].Type, err: err}
	}
	return &poison{at: d.events[nth].Position, typ: d.names[nth], err: err}
}

// ErrUnknownType tells that a newer program wrote an event. Of all processes, one of that program goes on behind it.
var ErrUnknownType = errors.New("this program does not know events of this type; a newer program wrote the event, and folds it")

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

// decode reads the events that the projection folds. Of a batch with a bad event it answers what
// stands before it, with the error.
func (p *Projection) decode(batch eventstore.Batch, skipped map[event.Position]bool) (d decoded, err error) {
	if p.raw != nil {
		d.stored = slices.Clone(batch.Events) // the batch's memory may be used again, that of the payloads is not
		if p.forwards {
			d.stored = slices.DeleteFunc(d.stored, func(e event.Stored) bool { return skipped[e.Position] })
		}
		d.reach(batch.Events)
		d.upTo = max(d.upTo, batch.UpTo)
		return d, nil
	}
	d.events, d.names = make([]event.Recorded[any], 0, len(batch.Events)), make([]string, 0, len(batch.Events))
	for i := range batch.Events {
		e := &batch.Events[i]
		if p.takes(e) && !skipped[e.Position] {
			var r event.Recorded[any]
			err := ErrUnknownType
			if isKnown(e.Type) {
				err = guarded(func() (err error) { r, err = domain.Catalogue.Decode(*e); return err })
			}
			if err != nil {
				d.reach(batch.Events[:i])
				return d, &poison{at: e.Position, typ: e.Type, err: err}
			}
			d.events, d.names = append(d.events, r), append(d.names, e.Type)
		}
	}
	d.reach(batch.Events)
	d.upTo = max(d.upTo, batch.UpTo)
	return d, nil
}

// Reveal opens the personal values of events, for projections that have them in clear. A value that was
// erased stays closed. It is the vault's.
type Reveal func(ctx context.Context, values []*event.Sealed) error

// open opens the personal values in a piece, if the projection folds any. It answers the piece with an
// error, too, as [Projection.decode] does.
func (p *Projection) open(ctx context.Context, reveal Reveal, d decoded, decodeErr error) (decoded, error) {
	if !p.personal || len(d.events) == 0 {
		return d, decodeErr
	}
	if reveal == nil {
		return decoded{}, fmt.Errorf("projection %s has personal values and nobody to open them", p.Name)
	}
	events, err := event.MapSealedIn(d.events, func(values []*event.Sealed) error { return reveal(ctx, values) })
	if err != nil {
		return decoded{}, fmt.Errorf("open personal values: %w", err)
	}
	d.events = events
	return d, decodeErr
}

// reach says that the piece goes as far as these events.
func (d *decoded) reach(events []event.Stored) {
	if n := len(events); n > 0 {
		id := events[n-1].ID // the events' memory may be used again
		d.upTo, d.last = events[n-1].Position, &id
	}
}

// apply folds a batch and moves the checkpoint, in one transaction.
func (s *session) apply(ctx context.Context, d decoded) error {
	b := &Batch{Filling: s.g.Building, Kept: s.kept}
	s.kept = nil // if this fails, it tells of what did not happen
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		b.Tx = tx
		if err := guarded(func() error { return s.p.fold(ctx, b, d) }); err != nil {
			return err
		}
		s.g.Rate = s.pace.after(d.len())
		return checkpoint(ctx, tx, s.g, s.owner, d.upTo, d.last)
	})
	if err == nil {
		s.g.Position, s.g.EventID, s.kept = d.upTo, d.last, b.Kept
	}
	return err
}

// fenced answers [ErrFenced] when this session may not write any more.
func (s *session) fenced(ctx context.Context) error {
	found, err := generations(ctx, s.conn, `name = $1 and generation = $2 and position = $3 and owner = $4 and not (live and paused)`,
		s.g.Name, s.g.Generation, int64(s.g.Position), s.owner)
	if err == nil && len(found) == 0 {
		err = ErrFenced
	}
	return err
}

// applyFinding applies a batch; when that fails for a reason that is not the connection's, it goes
// event by event to find the one at fault, so that all before it take effect.
func (s *session) applyFinding(ctx context.Context, d decoded) error {
	return applyFinding(ctx, s, s.conn, d)
}

func applyFinding(ctx context.Context, h held, conn *pgx.Conn, d decoded) error {
	err := h.apply(ctx, d)
	if err == nil || isTransient(conn, err) || d.len() == 0 {
		return err
	}
	if err := h.fenced(ctx); err != nil { // the tables may be gone
		return err
	}
	for i := range d.len() {
		one := d.one(i)
		if i == d.len()-1 {
			one.upTo, one.last = d.upTo, d.last
		}
		if err := h.apply(ctx, one); err != nil {
			if isTransient(conn, err) {
				return err
			}
			if err := h.fenced(ctx); err != nil {
				return err
			}
			return d.blame(i, err)
		}
	}
	return nil
}
