package esdb

import (
	"fmt"
	"strings"

	"bahi/eventstore"
)

// maxEvents is the most events of one append.
const maxEvents = 512

// check refuses events that the server would take and the log does not: the server ignores JSON, and reserves
// names with a $.
func check(r eventstore.Request) error {
	if strings.HasPrefix(r.Stream, "$") || r.Stream == IdentityStream {
		return fmt.Errorf("%w: stream %s is not for events of the log", eventstore.ErrBadEvent, r.Stream)
	}
	for _, e := range r.Events {
		if strings.HasPrefix(e.Type, "$") {
			return fmt.Errorf("%w: a type's name has no $ before it", eventstore.ErrBadEvent)
		}
	}
	return r.Check(maxEvents)
}
