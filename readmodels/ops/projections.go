package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// What is said of a projection or a build that is not as it would have to be.
var (
	ErrNoProjection = fault.New(fault.NotFound, "Projection not found")
	ErrNoBuild      = fault.New(fault.Conflict, "The projection is not being rebuilt")
	ErrBuildRuns    = fault.New(fault.Conflict, "The projection is being rebuilt already")
	ErrNotBuilt     = fault.New(fault.Conflict, "The projection is not built yet")
	ErrNotParked    = fault.New(fault.Conflict, "The projection is not parked")
	ErrNothingKept  = fault.New(fault.Conflict, "No earlier generation is kept to go back to")
	ErrNotPaused    = fault.New(fault.Conflict, "The projection is not paused")
	ErrNoDifference = fault.New(fault.Conflict, "The rebuild does not wait for its differences to be accepted")
)

// Projection is how a projection is, as this program's version of it is read.
type Projection struct {
	Name       string         `json:"name"`
	Version    int            `json:"version"`
	Generation int            `json:"generation" doc:"The one that is read; 0 before the first is built"`
	State      string         `json:"state" enum:"live,building,parked,paused"`
	Position   event.Position `json:"position" doc:"All events up to here are in the tables"`
	Head       event.Position `json:"head" doc:"Of the log"`
	LagEvents  *uint64        `json:"lag_events" doc:"Events that are not in the tables yet; null: some, and how many is not known, as the log is in EventStoreDB, where positions do not count events"`
	LagSeconds float64        `json:"lag_seconds" doc:"How long the oldest event that is not in the tables has been in the log"`
	Rate       float64        `json:"rate" doc:"Events a second that it last folded"`
	LastError  *string        `json:"last_error"`
	Skipped    int            `json:"skipped" doc:"Events that an operator let it pass over"`
	Build      *Build         `json:"build"`
	Kept       *Kept          `json:"kept" doc:"The generation that a rollback would read"`
}

// Build is how far the next generation is.
type Build struct {
	Generation  int            `json:"generation"`
	Phase       string         `json:"phase" enum:"requested,filling,indexing,catching up,comparing,differs" doc:"differs: it waits for its differences to be accepted, or for its end"`
	Done        event.Position `json:"done" doc:"Position up to which it is filled"`
	Total       event.Position `json:"total" doc:"Position up to which it is to be filled"`
	Percent     float64        `json:"percent"`
	Rate        float64        `json:"rate" doc:"Events a second"`
	ETASeconds  *float64       `json:"eta_seconds" doc:"Until it is read, by the rate of the fill and what the last build took behind it; null while nobody can tell"`
	Paused      bool           `json:"paused"`
	Throttle    *int           `json:"throttle" doc:"The most events a second; null: as many as it can"`
	Error       *string        `json:"error" doc:"Why it stands still"`
	Differences []Difference   `json:"differences"`
}

// Difference is what the new tables and the live ones do not agree on.
type Difference struct {
	Table  string         `json:"table"`
	Count  int64          `json:"count" doc:"Rows that are in one only"`
	OnlyIn string         `json:"only_in,omitempty" enum:"live tables,log" doc:"The one that has the table, when the other has none"`
	Rows   []DifferentRow `json:"rows" doc:"The first of them"`
}

// DifferentRow is a row that only one of the two has.
type DifferentRow struct {
	Where string          `json:"where" enum:"live tables,log" doc:"log: folding it anew gives this row"`
	Row   json.RawMessage `json:"row"`
}

// Kept is the generation that was read before, and follows on for a while.
type Kept struct {
	Generation int            `json:"generation"`
	Position   event.Position `json:"position"`
	Until      time.Time      `json:"until"`
}

// Parked is a follower of the log that has stopped at an event which it cannot apply.
type Parked struct {
	Name       string         `json:"name" doc:"Of the projection or reactor"`
	Kind       string         `json:"kind" enum:"projection,build,kept,reactor" doc:"kept: the generation that a rollback would read"`
	Version    int            `json:"version" doc:"0 for a reactor, which has none"`
	Generation int            `json:"generation" doc:"0 for a reactor"`
	Position   event.Position `json:"position" doc:"Of the event at fault; 0 where it is the log as a whole"`
	EventID    *string        `json:"event_id"`
	Stream     string         `json:"stream"`
	Type       string         `json:"type"`
	Error      string         `json:"error"`
	Program    string         `json:"program" doc:"Version of the program that met the error"`
	Since      time.Time      `json:"since"`
}

// Estimate is what a rebuild would do.
type Estimate struct {
	Events  event.Position `json:"events" doc:"To fold"`
	Rate    float64        `json:"rate" doc:"Events a second, as measured just now or by the last build"`
	Seconds float64        `json:"seconds" doc:"Until it is read, by what the last build took behind its fill"`
	Bytes   int64          `json:"bytes" doc:"That the live tables take, and so the new ones"`
}

// Projections reads the registry of projections.
type Projections struct {
	DB       *pgxpool.Pool
	Versions map[string]int // that this program reads, by projection
	Log      Log            // nil: it is in the same database
}

// All returns the projections that this program reads, by name. All of it is as of one moment.
func (p *Projections) All(ctx context.Context) ([]Projection, error) {
	names, versions := p.known()
	all, err := p.read(ctx, names, versions)
	if err != nil {
		return nil, fmt.Errorf("list projections: %w", err)
	}
	return all, nil
}

// One returns a projection, or [ErrNoProjection].
func (p *Projections) One(ctx context.Context, name string) (Projection, error) {
	version, known := p.Versions[name]
	if !known {
		return Projection{}, ErrNoProjection
	}
	found, err := p.read(ctx, []string{name}, []int{version})
	if err != nil {
		return Projection{}, fmt.Errorf("read projection %s: %w", name, err)
	}
	return found[0], nil
}

// known returns what this program reads: names, and the version of each.
func (p *Projections) known() (names []string, versions []int) {
	for name, version := range p.Versions {
		names, versions = append(names, name), append(versions, version)
	}
	return names, versions
}

// projectionsQuery is one statement, and so reads one snapshot. Positions have no gaps, so the event
// behind a projection's position is the oldest that is not in its tables.
const projectionsQuery = `
	select v.name, v.version, log.head(),
		coalesce(l.generation, 0), coalesce(l.position, 0), coalesce(l.rate, 0), coalesce(l.paused, false), l.error,
		coalesce((select greatest(0, extract(epoch from now() - e.recorded_at))::float8
			from log.event e where e.position = coalesce(l.position, 0) + 1), 0),
		(select count(*) from log.event e
			where e.stream = 'follower-' || v.name and e.type = 'EventSkipped' and (e.data ->> 'version')::int = v.version),
		b.generation, b.phase, b.done, b.total, b.rate, b.paused, b.throttle, b.error, b.differences,
		extract(epoch from now() - b.filled_at)::float8,
		(select extract(epoch from r.after_fill)::float8 / r.total from projection.generation r
			where r.name = v.name and r.after_fill is not null and r.total > 0 order by r.generation desc limit 1),
		k.generation, k.position, k.keep_until
	from unnest($1::text[], $2::int[]) v(name, version)
	left join projection.generation l on l.name = v.name and l.version = v.version and l.live
	left join lateral (
		select g.*, greatest(g.position, (
			select min(part.position) from projection.partition part
			where part.name = g.name and part.generation = g.generation)) as done
		from projection.generation g
		where g.name = v.name and g.version = v.version and not g.live and g.keep_until is null and not g.scratch
	) b on true
	left join lateral (
		select g.generation, g.position, g.keep_until
		from projection.generation g
		where g.name = v.name and g.version = v.version and not g.live and g.keep_until is not null and not g.scratch
		order by g.generation desc limit 1
	) k on true
	order by v.name`

func (p *Projections) read(ctx context.Context, names []string, versions []int) ([]Projection, error) {
	rows, _ := p.DB.Query(ctx, projectionsQuery, names, versions)
	all, err := pgx.CollectRows(rows, scanProjection)
	if err == nil && p.Log != nil {
		err = p.fromLog(ctx, all)
	}
	return all, err
}

func scanProjection(row pgx.CollectableRow) (p Projection, err error) {
	var (
		paused bool
		build  struct {
			generation  *int
			phase       *string
			done, total *event.Position
			rate        *float64
			paused      *bool
			throttle    *int
			err         *string
			differences []Difference
			filledFor   *float64 // seconds
			thenEach    *float64 // seconds that the last build took for each event behind its fill
		}
		kept struct {
			generation *int
			position   *event.Position
			until      *time.Time
		}
	)
	if err := row.Scan(
		&p.Name, &p.Version, &p.Head, &p.Generation, &p.Position, &p.Rate, &paused, &p.LastError, &p.LagSeconds, &p.Skipped,
		&build.generation, &build.phase, &build.done, &build.total, &build.rate, &build.paused, &build.throttle, &build.err, &build.differences, &build.filledFor, &build.thenEach,
		&kept.generation, &kept.position, &kept.until,
	); err != nil {
		return p, err
	}
	switch {
	case paused:
		p.State = "paused"
	case p.LastError != nil:
		p.State = "parked"
	case p.Generation == 0:
		p.State = "building"
	default:
		p.State = "live"
	}
	lag := uint64(0)
	if p.Head > p.Position {
		lag = uint64(p.Head - p.Position)
	}
	p.LagEvents = &lag
	if build.generation != nil {
		p.Build = &Build{
			Generation: *build.generation, Phase: requested, Done: *build.done, Total: *build.total, Rate: *build.rate,
			Paused: *build.paused, Throttle: build.throttle, Error: build.err, Differences: build.differences,
		}
		if p.Build.Differences == nil {
			p.Build.Differences = []Difference{}
		}
		if build.phase != nil {
			p.Build.Phase = *build.phase
		}
		p.Build.estimate(build.filledFor, build.thenEach)
	}
	if kept.generation != nil {
		p.Kept = &Kept{Generation: *kept.generation, Position: *kept.position, Until: *kept.until}
	}
	return p, nil
}

const (
	requested = "requested" // a build that nobody has begun
	filling   = "filling"
	differs   = "differs" // a build that waits for somebody
)

// estimate works out what follows from the other fields, from the seconds since the fill ended, and from those that the last build
// took for each event behind its fill. Without such a build, what is behind the fill counts for as long as the fill.
func (b *Build) estimate(filledFor, thenEach *float64) {
	left := float64(b.Total) - float64(b.Done)
	switch {
	case left > 0:
		b.Percent = 100 * float64(b.Done) / float64(b.Total)
	case b.Phase != requested: // which has no total yet
		b.Percent = 100
	}
	if b.Phase == requested || b.Phase == differs || b.Rate <= 0 || b.Paused || b.Error != nil {
		return
	}
	then := float64(b.Total) / b.Rate
	if thenEach != nil {
		then = float64(b.Total) * *thenEach
	}
	seconds := max(left, 0)/b.Rate + then
	if b.Phase != filling && filledFor != nil {
		seconds = max(0, then-*filledFor)
	}
	b.ETASeconds = &seconds
}

// Parked returns what has stopped because of an error, of this program's projections and of all reactors,
// by kind and name. All of it is as of one moment.
func (p *Projections) Parked(ctx context.Context) ([]Parked, error) {
	names, versions := p.known()
	rows, _ := p.DB.Query(ctx, `
		with parked as (
			select g.name, case when g.live then 'projection' when g.keep_until is null then 'build' else 'kept' end as kind,
				g.version, g.generation, g.error_position, g.error, g.error_program, coalesce(g.error_at, g.created_at) as since
			from projection.generation g
			join unnest($1::text[], $2::int[]) v(name, version) on g.name = v.name and g.version = v.version
			where g.error is not null and not g.scratch
			union all
			select name, 'reactor', 0, 0, error_position, error, error_program, coalesce(error_at, created_at)
			from reactor.checkpoint
			where error is not null
		)
		select p.name, p.kind, p.version, p.generation, coalesce(p.error_position, 0), e.id::text, coalesce(e.stream, ''), coalesce(e.type, ''),
			p.error, coalesce(p.error_program, ''), p.since
		from parked p
		left join log.event e on e.position = p.error_position
		order by p.kind, p.name, p.generation`, names, versions)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Parked])
	if err == nil && p.Log != nil {
		err = p.events(ctx, all)
	}
	if err != nil {
		return nil, fmt.Errorf("list what is parked: %w", err)
	}
	return all, nil
}
