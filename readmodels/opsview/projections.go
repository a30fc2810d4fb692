package opsview

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

// The refusals about projections and builds.
var (
	ErrNoProjection = fault.New(fault.NotFound, "Projection not found")
	ErrOtherEvent   = fault.New(fault.Conflict, "The projection is not parked at that event")
)

// Projection is the state of a projection in this program's version.
type Projection struct {
	Name       string         `json:"name" doc:"Name of the projection"`
	Version    int            `json:"version" doc:"Version of the projection"`
	Generation int            `json:"generation" doc:"The live generation; 0 before the first is built"`
	State      string         `json:"state" enum:"live,building,parked,paused" doc:"State: live, building, parked or paused"`
	Position   event.Position `json:"position" doc:"Position up to which the tables have all events"`
	Head       event.Position `json:"head" doc:"The log's newest position"`
	LagEvents  uint64         `json:"lag_events" doc:"Number of events that are not in the tables yet"`
	LagSeconds float64        `json:"lag_seconds" doc:"Age in seconds of the oldest event that is not in the tables yet"`
	Rate       float64        `json:"rate" doc:"Recent rate, in events a second"`
	LastError  *string        `json:"last_error" doc:"Error that stopped the projection; null: none"`
	Skipped    int            `json:"skipped" doc:"Number of events that an operator skipped"`
	Build      *Build         `json:"build" doc:"The running rebuild; null: none"`
	Kept       *Kept          `json:"kept" doc:"The generation that a rollback would make live"`
}

// Build is the progress of the next generation.
type Build struct {
	Generation  int            `json:"generation" doc:"Number of the generation"`
	Phase       string         `json:"phase" enum:"requested,filling,indexing,catching up,comparing,differs" doc:"Phase; differs: an operator must accept the differences or cancel"`
	Done        event.Position `json:"done" doc:"Position up to which it is filled"`
	Total       event.Position `json:"total" doc:"Position at which the fill will end"`
	Percent     float64        `json:"percent" doc:"Progress in percent"`
	Rate        float64        `json:"rate" doc:"Rate in events a second"`
	ETASeconds  *float64       `json:"eta_seconds" doc:"Estimated seconds until the build is live, by the rate of its fill and the last build's time after its fill; null: unknown"`
	Paused      bool           `json:"paused" doc:"true: an operator paused it"`
	Throttle    *int           `json:"throttle" doc:"Maximum rate in events a second; null: unlimited"`
	Error       *string        `json:"error" doc:"Reason why the build stopped"`
	Differences []Difference   `json:"differences" doc:"Differences from the live tables"`
}

// Difference is a difference between the new tables and the live ones.
type Difference struct {
	Table  string         `json:"table" doc:"Name of the table"`
	Count  int64          `json:"count" doc:"Number of rows that only one of the two tables has"`
	OnlyIn string         `json:"only_in,omitempty" enum:"live tables,log" doc:"Side that has the table; absent: both have it"`
	Rows   []DifferentRow `json:"rows" doc:"First differing rows"`
}

// DifferentRow is a row that only one of two tables has.
type DifferentRow struct {
	Where string          `json:"where" enum:"live tables,log" doc:"log: folding the log gives this row"`
	Row   json.RawMessage `json:"row" doc:"The row"`
}

// Kept is the previous generation, which Bahi still updates for a while.
type Kept struct {
	Generation int            `json:"generation" doc:"Number of the generation"`
	Position   event.Position `json:"position" doc:"Position of the kept tables"`
	Until      time.Time      `json:"until" doc:"Time until which Bahi keeps the tables"`
}

// Parked is a projection or reactor that stopped at an event that it cannot apply.
type Parked struct {
	Name       string         `json:"name" doc:"Name of the projection or reactor"`
	Kind       string         `json:"kind" enum:"projection,build,kept,reactor" doc:"kept: the generation that a rollback would make live"`
	Version    int            `json:"version" doc:"0 for a reactor"`
	Generation int            `json:"generation" doc:"0 for a reactor"`
	Position   event.Position `json:"position" doc:"Position of the faulty event; 0: the whole log is faulty"`
	EventID    *string        `json:"event_id" doc:"ID of the event; null: none"`
	Stream     string         `json:"stream" doc:"Stream of the event"`
	Type       string         `json:"type" doc:"Stored name of the event"`
	Error      string         `json:"error" doc:"Error that stopped the projection or reactor"`
	Program    string         `json:"program" doc:"Version of the program that met the error"`
	Since      time.Time      `json:"since" doc:"Time when the projection or reactor stopped"`
}

// Estimate is the estimated cost of a rebuild.
type Estimate struct {
	Events  event.Position `json:"events" doc:"Number of events to fold"`
	Rate    float64        `json:"rate" doc:"Rate in events a second, measured now or by the last build"`
	Seconds float64        `json:"seconds" doc:"Estimated seconds until the build is live, including the last build's time after its fill"`
	Bytes   int64          `json:"bytes" doc:"Size in bytes of the live tables; the new tables have about the same size"`
}

// Projections reads the registry of projections.
type Projections struct {
	DB       *pgxpool.Pool
	Versions map[string]int // versions that this program reads, by projection
}

// All returns the projections of this program by name, in one snapshot.
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

// known returns the names and versions that this program reads.
func (p *Projections) known() (names []string, versions []int) {
	for name, version := range p.Versions {
		names, versions = append(names, name), append(versions, version)
	}
	return names, versions
}

// projectionsQuery is one statement, so it reads one snapshot. Positions have no gaps, so the event after a projection's position is the
// oldest one that is not in its tables.
const projectionsQuery = `
	select v.name, v.version, log.head(),
		coalesce(l.generation, 0), coalesce(l.position, 0), coalesce(l.rate, 0), coalesce(l.paused, false), l.error,
		coalesce((select greatest(0, extract(epoch from now() - e.recorded_at))::float8
			from log.event e where e.position = coalesce(l.position, 0) + 1), 0),
		(select count(*) from log.event e
			where e.stream = 'follower-' || v.name and e.type = 'EventSkipped' and (e.data ->> 'version')::int = v.version),
		b.generation, b.status, b.done, b.total, b.rate, b.paused, b.throttle, b.error, b.differences,
		extract(epoch from now() - b.filled_at)::float8,
		(select extract(epoch from r.after_fill)::float8 / r.total from projection.generation r
			where r.name = v.name and r.after_fill is not null and r.total > 0 order by r.generation desc limit 1),
		k.generation, k.position, k.keep_until
	from unnest($1::text[], $2::int[]) v(name, version)
	left join projection.generation l on l.name = v.name and l.version = v.version and l.status = 'live'
	left join lateral (
		select g.*, greatest(g.position, (
			select min(part.position) from projection.partition part
			where part.name = g.name and part.generation = g.generation)) as done
		from projection.generation g
		where g.name = v.name and g.version = v.version and g.status not in ('live', 'kept', 'scratch')
	) b on true
	left join lateral (
		select g.generation, g.position, g.keep_until
		from projection.generation g
		where g.name = v.name and g.version = v.version and g.status = 'kept'
		order by g.generation desc limit 1
	) k on true
	order by v.name`

func (p *Projections) read(ctx context.Context, names []string, versions []int) ([]Projection, error) {
	rows, _ := p.DB.Query(ctx, projectionsQuery, names, versions)
	return pgx.CollectRows(rows, scanProjection)
}

func scanProjection(row pgx.CollectableRow) (p Projection, err error) {
	var (
		paused bool
		build  struct {
			generation  *int
			status      *string
			done, total *event.Position
			rate        *float64
			paused      *bool
			throttle    *int
			err         *string
			differences []Difference
			filledFor   *float64 // seconds
			thenEach    *float64 // seconds per event that the phases after the fill took in the last build
		}
		kept struct {
			generation *int
			position   *event.Position
			until      *time.Time
		}
	)
	if err := row.Scan(
		&p.Name, &p.Version, &p.Head, &p.Generation, &p.Position, &p.Rate, &paused, &p.LastError, &p.LagSeconds, &p.Skipped,
		&build.generation, &build.status, &build.done, &build.total, &build.rate, &build.paused, &build.throttle, &build.err, &build.differences,
		&build.filledFor, &build.thenEach,
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
	if p.Head > p.Position {
		p.LagEvents = uint64(p.Head - p.Position)
	}
	if build.generation != nil {
		p.Build = &Build{
			Generation: *build.generation, Phase: *build.status, Done: *build.done, Total: *build.total, Rate: *build.rate,
			Paused: *build.paused, Throttle: build.throttle, Error: build.err, Differences: build.differences,
		}
		if p.Build.Differences == nil {
			p.Build.Differences = []Difference{}
		}
		p.Build.estimate(build.filledFor, build.thenEach)
	}
	if kept.generation != nil {
		p.Kept = &Kept{Generation: *kept.generation, Position: *kept.position, Until: *kept.until}
	}
	return p, nil
}

const (
	requested = "requested" // not started
	filling   = "filling"
	differs   = "differs" // waits for an operator
)

// estimate computes derived fields from the seconds since the fill ended and the last build's seconds per event after its fill. Without a
// last build, it assumes that the phases after the fill take as long as the fill.
func (b *Build) estimate(filledFor, thenEach *float64) {
	left := float64(b.Total) - float64(b.Done)
	switch {
	case left > 0:
		b.Percent = 100 * float64(b.Done) / float64(b.Total)
	case b.Phase != requested: // a requested build has no total yet
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

// Parked returns this program's parked projections and all parked reactors, by kind and name, in one snapshot.
func (p *Projections) Parked(ctx context.Context) ([]Parked, error) {
	names, versions := p.known()
	rows, _ := p.DB.Query(ctx, `
		with parked as (
			select g.name, case g.status when 'live' then 'projection' when 'kept' then 'kept' else 'build' end as kind,
				g.version, g.generation, g.error_position, g.error, g.error_program, g.error_at as since
			from projection.generation g
			join unnest($1::text[], $2::int[]) v(name, version) on g.name = v.name and g.version = v.version
			where g.error is not null and g.status <> 'scratch'
			union all
			select name, 'reactor', 0, 0, error_position, error, error_program, error_at
			from reactor.checkpoint
			where error is not null
		)
		select p.name, p.kind, p.version, p.generation, coalesce(p.error_position, 0), e.id::text, coalesce(e.stream, ''), coalesce(e.type, ''),
			p.error, coalesce(p.error_program, ''), p.since
		from parked p
		left join log.event e on e.position = p.error_position
		order by p.kind, p.name, p.generation`, names, versions)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Parked])
	if err != nil {
		return nil, fmt.Errorf("list parked events: %w", err)
	}
	return all, nil
}
