// Package follower notes which events projections and reactors pass over. Whoever follows the log stops at
// an event that it cannot apply; to go on without that event is an operator's decision, and is recorded as
// one.
package follower

import (
	"slices"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Kind names what a stream follower-<name> holds. The name is a projection's or a reactor's.
var Kind = event.NewKind("follower", event.Of[Skipped]("EventSkipped", 1))

// State is what a follower skips.
type State struct {
	Skipped []Skipped
}

// Skipped tells that an event has no effect on a follower of this version. A new version, which may know
// what to do with it, tries it again. The error that was in the way is not repeated here: it may quote
// what somebody has written.
type Skipped struct {
	Version  int            `json:"version"`
	Position event.Position `json:"position"`
	EventID  uuid.UUID      `json:"event_id"`
	Type     string         `json:"type"`
	Reason   string         `json:"reason"`
}

// Evolve adds to what is skipped.
func (e Skipped) Evolve(s State) State {
	s.Skipped = append(slices.Clip(s.Skipped), e)
	return s
}

// Has says whether the follower of this version skips the event at a position.
func (s State) Has(version int, at event.Position) bool {
	return slices.ContainsFunc(s.Skipped, func(e Skipped) bool { return e.Version == version && e.Position == at })
}

// Skip lets a follower pass over an event.
type Skip Skipped

// Decide wants a reason. What is skipped already changes nothing.
func (c Skip) Decide(s State) ([]event.Event[State], error) {
	if c.Reason == "" {
		return nil, fault.Fields(fault.Field{Field: "reason", Message: "is required"})
	}
	if s.Has(c.Version, c.Position) {
		return nil, nil
	}
	return []event.Event[State]{Skipped(c)}, nil
}
