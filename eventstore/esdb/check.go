package esdb

import (
	"fmt"
	"strings"

	"bahi/eventstore"
)

// maxEvents limits one append.
const maxEvents = 512

// check rejects events that the server would accept and the log does not: the server does not check JSON, and it reserves names that
// begin with $.
func check(r eventstore.Write) error {
	if strings.HasPrefix(r.Stream, "$") || r.Stream == IdentityStream {
		return fmt.Errorf("%w: stream %s is reserved", eventstore.ErrBadEvent, r.Stream)
	}
	for _, e := range r.Events {
		if strings.HasPrefix(e.Type, "$") {
			return fmt.Errorf("%w: the name of a type may not begin with $", eventstore.ErrBadEvent)
		}
	}
	if len(r.Events) > maxEvents {
		return fmt.Errorf("%w: an append has at most %d events", eventstore.ErrBadEvent, maxEvents)
	}
	return eventstore.To(r.Stream, r.Expected, r.Events...).Check()
}
