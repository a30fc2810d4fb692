package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Meta is an event's metadata, stored as JSON with these names.
type Meta struct {
	Schema        int       `json:"schema"`                   // version of the payload of this type, from 1
	Workspace     uuid.UUID `json:"workspace"`                // whose books or records the event belongs to
	Actor         string    `json:"actor"`                    // who caused it: user:<id>, api_key:<id>, provider:<name>, system:<part>
	OccurredAt    time.Time `json:"occurred_at"`              // when it was requested, by the clock of the deciding node
	RequestID     string    `json:"request_id,omitempty"`     // of the HTTP request
	CorrelationID string    `json:"correlation_id,omitempty"` // of the business process, from the caller or the request's own id
	CausationID   string    `json:"causation_id,omitempty"`   // id of the event that caused it
	Reason        string    `json:"reason,omitempty"`         // in the words of the actor
	Attempt       string    `json:"attempt,omitempty"`        // of a request with an Idempotency-Key: which try wrote the event
	Of            Position  `json:"of,omitempty"`             // position of the decisive event that this one carries out
}

// metaNames are the stored names of [Meta].
var metaNames = func() (names []string) {
	for field := range reflect.TypeFor[Meta]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// CheckMeta returns an error if other readers could understand foreign metadata differently than [Meta]: because a name has another case, which
// Go accepts and SQL does not, or a workspace or position is not in the form that searches use.
func CheckMeta(text []byte) error {
	var (
		m   Meta
		has map[string]json.RawMessage
	)
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &has); err != nil {
		return err
	}
	for name := range has {
		for _, ours := range metaNames {
			if name != ours && strings.EqualFold(name, ours) {
				return fmt.Errorf("%q is called %q", name, ours)
			}
		}
	}
	if raw, there := has["workspace"]; there && string(raw) != `"`+m.Workspace.String()+`"` {
		return fmt.Errorf("the workspace is written %q", m.Workspace)
	}
	if _, there := has["of"]; there && m.Of == 0 {
		return fmt.Errorf("of is 0, but no event is at position 0")
	}
	return nil
}
