package event

import (
	"bytes"
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
	More          int       `json:"more,omitempty"`           // number of events of the same transaction that follow
}

// mostMore is more than any transaction has.
const mostMore = 1 << 16

// More returns how many events of the same transaction follow the one with this metadata.
func More(meta []byte) int {
	if !bytes.Contains(meta, []byte(`"more"`)) {
		return 0
	}
	var m struct {
		More int `json:"more"`
	}
	if err := json.Unmarshal(meta, &m); err != nil || m.More < 0 || m.More > mostMore {
		return 0 // foreign metadata
	}
	return m.More
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
	if _, there := has["more"]; there {
		return fmt.Errorf("more is set, which only transactions of Bahi have")
	}
	if _, there := has["of"]; there && m.Of == 0 {
		return fmt.Errorf("of is 0, but no event is at position 0")
	}
	return nil
}
