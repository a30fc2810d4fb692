package event

import (
	"time"

	"github.com/google/uuid"
)

// Meta is what is known of an event beside its payload. It is stored as JSON with these names.
type Meta struct {
	Schema        int       `json:"schema"`                   // version of the payload under this type name, from 1
	Workspace     uuid.UUID `json:"workspace"`                // whose books or records it belongs to
	Actor         string    `json:"actor"`                    // who caused it: user:<id>, api_key:<id>, provider:<name>, system:<part>
	OccurredAt    time.Time `json:"occurred_at"`              // when it was asked for, by the clock of the node that decided
	RequestID     string    `json:"request_id,omitempty"`     // of the HTTP request
	CorrelationID string    `json:"correlation_id,omitempty"` // of the business process, given by the caller or the request's own id
	CausationID   string    `json:"causation_id,omitempty"`   // id of the event that it follows from
	Reason        string    `json:"reason,omitempty"`         // why, in the words of who asked
	Of            Position  `json:"of,omitempty"`             // position of the decisive event that this one only carries out
}
