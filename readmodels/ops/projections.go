package ops

import (
	"encoding/json"
	"time"

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
	LagEvents  uint64         `json:"lag_events"`
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
	Done        event.Position `json:"done"`
	Total       event.Position `json:"total"`
	Percent     float64        `json:"percent"`
	Rate        float64        `json:"rate" doc:"Events a second"`
	ETASeconds  *float64       `json:"eta_seconds" doc:"Of the fill; null while nobody can tell"`
	Paused      bool           `json:"paused"`
	Throttle    *int           `json:"throttle" doc:"The most events a second; null: as many as it can"`
	Error       *string        `json:"error" doc:"Why it stands still"`
	Differences []Difference   `json:"differences"`
}

// Difference is what the new tables and the live ones do not agree on.
type Difference struct {
	Table string         `json:"table"`
	Count int64          `json:"count" doc:"Rows that are in one only"`
	Rows  []DifferentRow `json:"rows" doc:"The first of them"`
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

// Parked is a follower of the log that stands still at an event which it cannot apply.
type Parked struct {
	Name       string         `json:"name" doc:"Of the projection or reactor"`
	Kind       string         `json:"kind" enum:"projection,build,reactor"`
	Version    int            `json:"version"`
	Generation int            `json:"generation"`
	Position   event.Position `json:"position"`
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
	Seconds float64        `json:"seconds"`
	Bytes   int64          `json:"bytes" doc:"That the live tables take, and so the new ones"`
}

// Projections reads the registry of projections.
type Projections struct {
	DB       *pgxpool.Pool
	Versions map[string]int // that this program reads, by projection
}
