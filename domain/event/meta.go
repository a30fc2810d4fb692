package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
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

// metaNames are the names that [Meta] is stored with.
var metaNames = func() (names []string) {
	for field := range reflect.TypeFor[Meta]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// CheckMeta says why metadata that others wrote may be read as something else than [Meta] reads in it: by a name in other letters, which Go
// takes and SQL does not, or by a workspace or position in another form than the one that is searched for.
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
		return fmt.Errorf("no event stands at position 0, of which this one would be")
	}
	return nil
}
