package projections

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain"
	"bahi/domain/event"
)

// Projection is a fold of the log into the tables of its own schema.
type Projection struct {
	Name    string // also its schema's, metric's and argument's
	Version int    // rises with the DDL, or with what a handler means
	tables  string // DDL of what is needed to fill the tables
	after   string // DDL of what is quicker made afterwards: indexes
	folds   map[string]Fold
	common  map[string]string // columns that the version before has too, by table
	raw     *Fold             // of every event, whatever its type; nil: folds says what is folded
	in      map[string]bool   // categories of streams that have events of the folded types

	forwards bool // it is a reactor that hands events to another program, and an operator may let it pass over some

	parted   func(*event.Recorded[any]) (key int64, all bool) // nil: the fold cannot be shared out
	personal bool                                             // it folds events that hold personal values
	idle     time.Duration                                    // see idleCheckpoint, which it is when this is 0
	gather   time.Duration                                    // how long events wait for others to be folded with
}

// Fold is how events of some types are folded.
type Fold struct {
	types []string
	on    func(*Batch, event.Recorded[any])
	apply func(context.Context, *Batch, []event.Recorded[any]) error
	raw   func(context.Context, *Batch, []event.Stored) error

	finish func(context.Context, *Batch) error // after a fill; may be nil
	resume func(context.Context, *Batch) error // before a fill goes on that another process began; may be nil
}

// Part is a share of a fold: the keys that fall to it.
type Part struct {
	Nth int // from 0
	Of  int // how many parts there are; 0 and 1: this is all
}

// Has says whether a key falls to the part.
func (p Part) Has(key int64) bool { return p.Of <= 1 || uint64(key)%uint64(p.Of) == uint64(p.Nth) }

// First says whether the part does what must be done once.
func (p Part) First() bool { return p.Nth == 0 }

// afterFill is the line of a DDL behind which statements run once the tables are filled.
const afterFill = "-- after fill"

// Define declares a projection. The DDL names no schema, so that the same text makes a generation and
// its successor beside it.
func Define(name string, version int, ddl string, folds ...Fold) *Projection {
	p := &Projection{Name: name, Version: version, folds: map[string]Fold{}, in: map[string]bool{}}
	p.tables, p.after, _ = strings.Cut(ddl, afterFill)
	for _, f := range folds {
		if f.raw != nil {
			if len(folds) > 1 {
				panic(fmt.Sprintf("projection %s folds every event as it is stored, and some once more", name))
			}
			p.raw = &f
		}
		for _, t := range f.types {
			if _, twice := p.folds[t]; twice {
				panic(fmt.Sprintf("projection %s folds %s twice", name, t))
			}
			p.add(t, f)
		}
	}
	return p
}

// add lets f fold the events of a type.
func (p *Projection) add(eventType string, f Fold) {
	p.folds[eventType] = f
	if info, known := domain.Catalogue.Lookup(eventType); known {
		p.in[info.Category] = true
		p.personal = p.personal || event.HoldsSealed(info.Go)
	}
}

// Personal says whether the tables may hold personal values in clear: it folds events that have some.
func (p *Projection) Personal() bool { return p.personal }

// On folds events of one type, in each kind that has it. It gets no clock, context or connection: it can only queue statements,
// so that a rebuild gives the same tables.
func On[E any](fold func(*Batch, event.Recorded[E])) Fold {
	return Fold{
		types: domain.Catalogue.NamesOf(reflect.TypeFor[E]()),
		on: func(b *Batch, r event.Recorded[any]) {
			data, _ := r.Data.(E) // the catalogue decodes this name into E
			fold(b, event.Recorded[E]{
				Position: r.Position, Stream: r.Stream, Revision: r.Revision, ID: r.ID, At: r.At, Meta: r.Meta, Data: data,
			})
		},
	}
}

// Apply folds a whole batch of events of the named types at once. It may read its own tables, and
// nothing else. It is for a projection whose benchmark asks for it.
func Apply(types []string, apply func(context.Context, *Batch, []event.Recorded[any]) error) Fold {
	return Fold{types: types, apply: apply}
}

// Raw folds every event as it is stored, whatever its type: nothing is decoded, so an event that this program
// does not know is folded like any other, and none can be skipped. Otherwise it is as [Apply], and a
// projection's only fold. The events' bytes are not to be changed.
func Raw(apply func(context.Context, *Batch, []event.Stored) error) Fold { return Fold{raw: apply} }

// Finishing ends a fill with what the fold has kept for its end.
func (f Fold) Finishing(finish func(context.Context, *Batch) error) Fold {
	f.finish = finish
	return f
}

// Resuming prepares the tables for a fill that goes on in another process, without what the fold has
// kept in memory. Of several parts of a fill, each may have come to another place.
func (f Fold) Resuming(resume func(context.Context, *Batch) error) Fold {
	f.resume = resume
	return f
}

// Parted lets a fill be shared out to parts, each of which has its own connection and transactions. Key
// says which part an event falls to; all that it concerns every one. A part must leave alone what is not
// its own, and must not lean on how far the others are.
func (p *Projection) Parted(key func(*event.Recorded[any]) (key int64, all bool)) *Projection {
	p.parted = key
	return p
}

// mostParts bounds the connections that a fill takes.
const mostParts = 16

// parts answers how many parts fill the tables when so many are asked for; 0: as many as the machine has
// use for, since reading and Postgres need processors too.
func (p *Projection) parts(asked int) int {
	if p.parted == nil {
		return 1
	}
	if asked <= 0 {
		asked = runtime.NumCPU() / 3
	}
	return min(max(asked, 1), mostParts)
}

// Comparable declares which columns of which tables a new version has in common with the one before.
// Its tables then take over only when those are the same.
func (p *Projection) Comparable(columns map[string]string) *Projection {
	p.common = columns
	return p
}

// Gathering lets events wait for those that come after them, for so long at most, and be folded with them. It is
// for tables that no answer waits for, and whose fold costs more by the batch than by the event.
func (p *Projection) Gathering(most time.Duration) *Projection {
	p.gather = most
	return p
}

// finish ends a fill.
func (p *Projection) finish(ctx context.Context, b *Batch) error {
	return p.each(ctx, b, "finish", func(f Fold) func(context.Context, *Batch) error { return f.finish })
}

// resume prepares a fill that goes on.
func (p *Projection) resume(ctx context.Context, b *Batch) error {
	return p.each(ctx, b, "resume", func(f Fold) func(context.Context, *Batch) error { return f.resume })
}

func (p *Projection) each(ctx context.Context, b *Batch, what string, of func(Fold) func(context.Context, *Batch) error) error {
	if p.raw != nil && of(*p.raw) != nil {
		if err := guarded(func() error { return of(*p.raw)(ctx, b) }); err != nil {
			return fmt.Errorf("%s the fill: %w", what, err)
		}
	}
	done := map[string]bool{}
	for name, f := range p.folds {
		if of(f) == nil || done[f.types[0]] {
			continue
		}
		done[f.types[0]] = true
		if err := guarded(func() error { return of(f)(ctx, b) }); err != nil {
			return fmt.Errorf("%s the fill of %s: %w", what, name, err)
		}
	}
	return b.flush(ctx)
}

// indexes answers the statements after the fill that make an index, as far as it is not there yet, and the
// others.
func (p *Projection) indexes() (indexes []string, rest string) {
	for statement := range strings.SplitSeq(p.after, ";\n") {
		text := strings.TrimSpace(statement)
		if head, index, isIndex := strings.Cut(text, " index "); isIndex && (head == "create" || head == "create unique") {
			indexes = append(indexes, head+" index if not exists "+index)
		} else if text != "" {
			rest += text + ";\n"
		}
	}
	return indexes, rest
}

// Hash returns the SHA-256 of the DDL and of the names of the folded event types. Programs of one version share a generation, so
// they must agree on both.
func (p *Projection) Hash() string {
	text := p.tables + afterFill + p.after
	if len(p.folds) > 0 {
		text += "\n-- folds " + strings.Join(slices.Sorted(maps.Keys(p.folds)), " ")
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// takes reports whether the projection deals with an event: it folds the type, or it does not know the type of an event in a category
// that it folds. It must not pass over the latter: a newer program wrote the event, and may share this projection's checkpoint.
func (p *Projection) takes(e *event.Stored) bool {
	if _, folded := p.folds[e.Type]; folded || p.raw != nil {
		return true
	}
	category, _, _ := strings.Cut(e.Stream, "-")
	return p.in[category] && !isKnown(e.Type)
}

// isKnown reports whether the program knows a type of events.
func isKnown(eventType string) bool {
	_, known := domain.Catalogue.Lookup(eventType)
	return known
}

// fold applies a piece of the log in order. Runs of events that one Apply takes go to it together.
func (p *Projection) fold(ctx context.Context, b *Batch, d decoded) error {
	if len(d.stored) > 0 {
		if err := p.raw.raw(ctx, b, d.stored); err != nil {
			return err
		}
	}
	events, names := d.events, d.names
	for start := 0; start < len(events); {
		f := p.folds[names[start]]
		end := start + 1
		if f.apply == nil {
			f.on(b, events[start])
			start = end
			continue
		}
		for end < len(events) && p.folds[names[end]].apply != nil {
			end++
		}
		if err := b.flush(ctx); err != nil {
			return err
		}
		if err := f.apply(ctx, b, events[start:end]); err != nil {
			return err
		}
		start = end
	}
	return b.flush(ctx)
}

// Batch is what a projection does to its tables in one transaction.
type Batch struct {
	// Tx is for Apply and Raw alone. Its search path is the generation's schema.
	Tx pgx.Tx
	// Filling says that a generation is being filled: what stands behind "after fill" in the DDL is not
	// there yet.
	Filling bool
	// Resumed says that an earlier process has filled a part of the tables, or this one after a failure.
	Resumed bool
	// Part is the share of the fold that the batch is of.
	Part Part
	// Kept is for them, too: what the fold put there in an earlier batch of the same runner, which is the
	// only one that writes the tables. It is nil at first, and after a batch that failed.
	Kept any

	queued pgx.Batch
}

// Exec queues a statement.
func (b *Batch) Exec(sql string, args ...any) { b.queued.Queue(sql, args...) }

func (b *Batch) flush(ctx context.Context) error {
	if b.queued.Len() == 0 {
		return nil
	}
	err := b.Tx.SendBatch(ctx, &b.queued).Close()
	b.queued = pgx.Batch{}
	return err
}
