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
	"bahi/domain/patch"
)

// Projection is a fold of the log into the tables of its own schema.
type Projection struct {
	Name    string // name of its schema, and in metrics and commands
	Version int    // increases with each change of the DDL or of a handler's meaning
	tables  string // DDL of the tables to fill
	after   string // DDL that is faster after the fill: indexes
	all     []Fold
	folds   map[string]Fold   // by type
	common  map[string]string // columns that the previous version also has, by table
	raw     *Fold             // folds all events as stored; nil: folds decides
	in      map[string]bool   // categories of streams that have folded events

	forwards bool // a reactor that forwards events to another program; an operator may skip some

	parted   func(*event.Recorded[any]) (key int64, all bool) // nil: the fold cannot be divided
	personal bool                                             // folds events with personal values
	idle     time.Duration                                    // maximum lag without folded events; default idleCheckpoint
	gather   time.Duration                                    // time that events wait for others in the same batch
}

// Fold folds events of some types.
type Fold struct {
	types []string
	on    func(*Batch, event.Recorded[any])
	apply func(context.Context, *Batch, []event.Recorded[any]) error
	raw   func(context.Context, *Batch, []event.Stored) error

	finish func(context.Context, *Batch) error // after a fill; may be nil
	resume func(context.Context, *Batch) error // before another process resumes a fill; may be nil
}

// Part is a part of a fold, by key.
type Part struct {
	Ordinal int // from 0
	Of      int // number of parts; 0 and 1: the only part
}

// Has reports whether a key belongs to the part.
func (p Part) Has(key int64) bool { return p.Of <= 1 || uint64(key)%uint64(p.Of) == uint64(p.Ordinal) }

// afterFill is the comment before the statements of a DDL that run after the fill.
const afterFill = "-- after fill"

// Define declares a projection. The DDL names no schema: the same text creates each generation.
func Define(name string, version int, ddl string, folds ...Fold) *Projection {
	p := &Projection{Name: name, Version: version, all: folds, folds: map[string]Fold{}, in: map[string]bool{}}
	p.tables, p.after, _ = strings.Cut(ddl, afterFill)
	for _, f := range folds {
		if f.raw != nil {
			if len(folds) > 1 {
				panic(fmt.Sprintf("projection %s folds every event as stored, and some of them twice", name))
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

// add sets the fold of a type.
func (p *Projection) add(eventType string, f Fold) {
	p.folds[eventType] = f
	if info, known := domain.Catalogue.Lookup(eventType); known {
		p.in[info.Category] = true
		p.personal = p.personal || event.HoldsSealed(info.Go)
	}
}

// Types lists the names of the event types that the projection folds, in their order.
func (p *Projection) Types() []string { return slices.Sorted(maps.Keys(p.folds)) }

// foreign lists the names of the known types that the projection does not fold.
func (p *Projection) foreign() (names []string) {
	for _, info := range domain.Catalogue.All() {
		if _, folded := p.folds[info.Name]; !folded {
			names = append(names, info.Name)
		}
	}
	return names
}

// Personal reports whether the tables may have personal values as plaintext.
func (p *Projection) Personal() bool { return p.personal }

// On folds events of one type, in each kind with the type. The handler gets no clock, context or connection. It can only queue statements,
// so a rebuild gives the same tables.
func On[E any](fold func(*Batch, event.Recorded[E])) Fold {
	return Fold{
		types: domain.Catalogue.NamesOf(reflect.TypeFor[E]()),
		on:    func(b *Batch, r event.Recorded[any]) { fold(b, event.As[E](r)) },
	}
}

// Apply folds whole batches of events of the named types. It may read only its own tables. Use it only if a benchmark justifies it.
func Apply(types []string, apply func(context.Context, *Batch, []event.Recorded[any]) error) Fold {
	return Fold{types: types, apply: apply}
}

// Raw folds every event as stored. It does not decode events, so it folds even unknown types. Otherwise it is like [Apply]. It must be a
// projection's only fold. apply must not change the events' bytes.
func Raw(apply func(context.Context, *Batch, []event.Stored) error) Fold { return Fold{raw: apply} }

// Finishing returns the fold with finish, which writes the fold's state in memory at the end of a fill.
func (f Fold) Finishing(finish func(context.Context, *Batch) error) Fold {
	f.finish = finish
	return f
}

// Resuming returns the fold with resume, which prepares the tables when another process resumes a fill without the fold's state in memory.
// Parts of the fill may be at different positions.
func (f Fold) Resuming(resume func(context.Context, *Batch) error) Fold {
	f.resume = resume
	return f
}

// PartitionedBy divides a fill into parallel parts, each with its own connection and transactions. key returns the key of an event, which
// determines its part, or all for every part. A part must not change another part's rows or depend on another part's progress.
func (p *Projection) PartitionedBy(key func(*event.Recorded[any]) (key int64, all bool)) *Projection {
	p.parted = key
	return p
}

// maxParts is the maximum number of parts of a fill, each with a connection.
const maxParts = 16

// parts returns the number of parts. For 0 it is the number of processors less those for reading and Postgres.
func (p *Projection) parts(asked int) int {
	if p.parted == nil {
		return 1
	}
	if asked <= 0 {
		asked = runtime.NumCPU() / 3
	}
	return min(max(asked, 1), maxParts)
}

// Comparable declares the columns that a new version has in common with the previous one. The new tables then become live only if these
// columns are equal.
func (p *Projection) Comparable(columns map[string]string) *Projection {
	p.common = columns
	return p
}

// WithBatchDelay makes events wait for later ones in the same batch, at most for the given time. It is for tables that no request waits for
// and that cost more per batch than per event.
func (p *Projection) WithBatchDelay(most time.Duration) *Projection {
	p.gather = most
	return p
}

// finish ends a fill.
func (p *Projection) finish(ctx context.Context, b *Batch) error {
	return p.each(ctx, b, "finish", func(f Fold) func(context.Context, *Batch) error { return f.finish })
}

// resume prepares a fill that another process resumes.
func (p *Projection) resume(ctx context.Context, b *Batch) error {
	return p.each(ctx, b, "resume", func(f Fold) func(context.Context, *Batch) error { return f.resume })
}

func (p *Projection) each(ctx context.Context, b *Batch, what string, of func(Fold) func(context.Context, *Batch) error) error {
	for _, f := range p.all {
		if of(f) == nil {
			continue
		}
		if err := guarded(func() error { return of(f)(ctx, b) }); err != nil {
			return fmt.Errorf("%s the fill: %w", what, err)
		}
	}
	return b.flush(ctx)
}

// indexes returns the statements after the fill that create indexes, made idempotent, and the others.
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

// Hash returns the SHA-256 of the DDL and of the folded event types. Programs of one version share a generation, so their hashes must be
// equal.
func (p *Projection) Hash() string {
	text := p.tables + afterFill + p.after
	if len(p.folds) > 0 {
		text += "\n-- folds " + strings.Join(p.Types(), " ")
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// takes reports whether the projection processes an event: it folds the type, or it folds the category and the type is unknown. It must not
// skip an unknown type, because a newer program wrote the event, and may share this projection's checkpoint.
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

// fold applies a piece of the log in order. It passes successive events of one Apply together.
func (p *Projection) fold(ctx context.Context, b *Batch, d decoded) error {
	if d.singly {
		return p.foldSingly(ctx, b, d)
	}
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

// foldSingly folds event by event. It returns a [poison] for the first event that cannot be folded.
func (p *Projection) foldSingly(ctx context.Context, b *Batch, d decoded) error {
	for i := range d.len() {
		err := guarded(func() error { return p.fold(ctx, b, d.some(i, i+1)) })
		switch {
		case err == nil:
		case isTransient(b.Tx.Conn(), err):
			return err
		default:
			return d.blame(i, err)
		}
	}
	return nil
}

// Batch is a transaction of a projection.
type Batch struct {
	// Tx is for Apply and Raw only. Its search path is the generation's schema.
	Tx pgx.Tx
	// Filling is true while the generation is being filled: the DDL after "after fill" has not run.
	Filling bool
	// Resumed is true if another process, or this one before a failure, has filled a part of the tables.
	Resumed bool
	// Part is this batch's part of the fold.
	Part Part
	// FoldState is for Apply and Raw only. It is the value that the fold has stored there in an earlier batch of the same runner, which is
	// the only writer of the tables. It is nil in the first batch and after a failed one.
	FoldState any

	queued pgx.Batch
}

// Exec queues a statement.
func (b *Batch) Exec(sql string, args ...any) { b.queued.Queue(sql, args...) }

// Set queues an update of the row with the id. columns has names and values in turn. An absent [patch.Field] leaves its column unchanged.
func (b *Batch) Set(table, id string, columns ...any) {
	args, sets := []any{id}, make([]string, 0, len(columns)/2)
	for i := 0; i+1 < len(columns); i += 2 {
		value, named := patch.Value(columns[i+1])
		if !named {
			continue
		}
		args = append(args, value)
		sets = append(sets, fmt.Sprintf("%s = $%d", columns[i], len(args)))
	}
	if len(sets) > 0 {
		b.Exec(`update `+table+` set `+strings.Join(sets, ", ")+` where id = $1`, args...)
	}
}

func (b *Batch) flush(ctx context.Context) error {
	if b.queued.Len() == 0 {
		return nil
	}
	err := b.Tx.SendBatch(ctx, &b.queued).Close()
	b.queued = pgx.Batch{}
	return err
}
