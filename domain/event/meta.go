package event

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Meta is an event's metadata, stored as JSON with these names.
type Meta struct {
	Schema        int       `json:"schema"`                   // version of the payload of this type, from 1
	Workspace     uuid.UUID `json:"workspace"`                // workspace of the event
	Actor         string    `json:"actor"`                    // actor: user:<id>, api_key:<id>, provider:<name>, system:<part>
	OccurredAt    time.Time `json:"occurred_at"`              // when the change was requested, by the clock of the deciding node
	RequestID     string    `json:"request_id,omitempty"`     // ID of the HTTP request
	CorrelationID string    `json:"correlation_id,omitempty"` // ID of the business process, from the caller
	CausationID   string    `json:"causation_id,omitempty"`   // id of the event that caused it
	Reason        string    `json:"reason,omitempty"`         // in the words of the actor
	FollowUpOf    Position  `json:"follow_up_of,omitempty"`   // position of an event with the same data
	More          int       `json:"more,omitempty"`           // number of later events of the same transaction
}

// maxMore is an upper bound of events per transaction.
const maxMore = 1 << 16

// More returns the number of later events in the transaction of the event with this metadata.
func More(meta []byte) int {
	if !bytes.Contains(meta, []byte(`"more"`)) {
		return 0
	}
	var m struct {
		More int `json:"more"`
	}
	if err := json.Unmarshal(meta, &m); err != nil || m.More < 0 || m.More > maxMore {
		return 0 // metadata of another program
	}
	return m.More
}
