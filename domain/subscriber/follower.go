// Package subscriber records the events that projections and reactors skip. A projection or reactor stops at an event that it cannot apply.
// An operator decides whether it continues without the event.
package subscriber

import (
	"slices"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Kind is the kind of the streams follower-<name>. The name is a projection's or a reactor's.
var Kind = event.NewKind("follower", event.Of[Skipped]("EventSkipped", 1))

// State has the events that a projection or reactor skips.
type State struct {
	Skipped []Skipped
}

// Skipped records that a version of a projection or reactor skips an event. A new version tries the event again, because it may be able to
// apply it. Skipped does not contain the error, which may quote a user's data.
type Skipped struct {
	Version  int            `json:"version"`
	Position event.Position `json:"position"`
	EventID  uuid.UUID      `json:"event_id"`
	Type     string         `json:"type"`
	Reason   string         `json:"reason"`
}

// Evolve implements [event.Event].
func (e Skipped) Evolve(s State) State {
	s.Skipped = append(slices.Clip(s.Skipped), e)
	return s
}

// Has reports whether a version skips the event at a position.
func (s State) Has(version int, at event.Position) bool {
	return slices.ContainsFunc(s.Skipped, func(e Skipped) bool { return e.Version == version && e.Position == at })
}

// Skip makes a projection or reactor skip an event.
type Skip Skipped

// Decide requires a reason. Skipping an event again changes nothing.
func (c Skip) Decide(s State) ([]event.Event[State], error) {
	if c.Reason == "" {
		return nil, fault.Wrong("reason", "is required")
	}
	if s.Has(c.Version, c.Position) {
		return nil, nil
	}
	return []event.Event[State]{Skipped(c)}, nil
}
