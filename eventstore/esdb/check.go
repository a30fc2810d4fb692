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
func check(r eventstore.Request) error {
	if strings.HasPrefix(r.Stream, "$") || r.Stream == IdentityStream {
		return fmt.Errorf("%w: stream %s is reserved", eventstore.ErrBadEvent, r.Stream)
	}
	for _, e := range r.Events {
		if strings.HasPrefix(e.Type, "$") {
			return fmt.Errorf("%w: the name of a type may not begin with $", eventstore.ErrBadEvent)
		}
	}
	return r.Check(maxEvents)
}
