package auditview

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
	"bahi/readmodels/opsview"
)

// Event is an event in the form for auditors.
type Event struct {
	Position event.Position  `json:"position" doc:"Position in the log"`
	Stream   string          `json:"stream" doc:"Stream of the event"`
	Revision int64           `json:"revision" doc:"Revision, 0 for the first"`
	ID       uuid.UUID       `json:"id" doc:"ID of the event"`
	Type     string          `json:"type" doc:"Stored name of the event"`
	At       time.Time       `json:"recorded_at" doc:"Time when the event was recorded"`
	Meta     json.RawMessage `json:"metadata" doc:"Stored metadata"`
	Data     json.RawMessage `json:"data"      doc:"Payload. Personal values of the caller's workspace are decrypted. Erased values are {\"erased\":true}. Values of other workspaces and secrets stay sealed"`
	Leaf     []byte          `json:"leaf_hash" doc:"Hash of the stored event: docs/audit-format.md"`
}

// Events reads the log for auditors.
type Events struct {
	Log    opsview.Log
	Search *opsview.Events
	// Reveal decrypts personal values, and leaves the others sealed.
	Reveal func(ctx context.Context, values []*event.Sealed) error
}

// Page is a part of the found events. A search covers a bounded part of the log, so the page may have few events or none
// and still set More.
type Page struct {
	Events []Event
	Next   event.Position // the next page begins here
	More   bool
	Upto   event.Position // end of the part that the search covered
}

// Page returns at most size events that match a filter, oldest first. It decrypts the personal values in events of workspace in.
func (v *Events) Page(ctx context.Context, in uuid.UUID, f opsview.Filter, size int) (Page, error) {
	found, err := v.Search.Onward(ctx, f, size)
	return Page{Events: v.matching(ctx, in, f, found.Events), Next: found.To + 1, More: found.More, Upto: found.To}, err
}

// PageBack is [Events.Page] with the newest events first.
func (v *Events) PageBack(ctx context.Context, in uuid.UUID, f opsview.Filter, size int) (Page, error) {
	found, err := v.Search.Search(ctx, f, size)
	return Page{Events: v.matching(ctx, in, f, found.Events), Next: max(found.From, 1) - 1, More: found.More, Upto: found.To}, err
}

// matching returns the found events that match the filter in Go, because SQL may read the metadata differently.
func (v *Events) matching(ctx context.Context, in uuid.UUID, f opsview.Filter, found []opsview.Event) []Event {
	events := make([]Event, 0, len(found))
	for _, e := range found {
		stored := event.Stored{
			Position: e.Position, Stream: e.Stream, Revision: e.Revision, ID: e.ID, Type: e.Type, At: e.At, Meta: e.MetaText, Data: e.Data,
		}
		if f.Matches(stored) {
			events = append(events, v.show(ctx, in, stored, e.Meta.Workspace))
		}
	}
	return events
}

// Show returns an event in the form for auditors of workspace in.
func (v *Events) Show(ctx context.Context, in uuid.UUID, e event.Stored) Event {
	return v.show(ctx, in, e, opsview.MetaOf(e.Meta).Workspace)
}

func (v *Events) show(ctx context.Context, in uuid.UUID, e event.Stored, of uuid.UUID) Event {
	out := Event{
		Position: e.Position, Stream: e.Stream, Revision: e.Revision, ID: e.ID, Type: e.Type, At: e.At, Meta: e.Meta, Data: e.Data,
	}
	leaf := tlog.LeafHash(e)
	if out.Leaf = leaf[:]; of == in && bytes.Contains(e.Data, []byte(`"sealed"`)) {
		out.Data = v.revealed(ctx, e.Data)
	}
	return out
}

// erased replaces values with a destroyed key.
var erased = json.RawMessage(`{"erased":true}`)

// revealed returns JSON with its personal values decrypted.
func (v *Events) revealed(ctx context.Context, part json.RawMessage) json.RawMessage {
	return replaced(part, func(object json.RawMessage) (json.RawMessage, bool) {
		var value event.Personal
		if json.Unmarshal(object, &value) != nil || value.IsZero() || v.Reveal(ctx, []*event.Sealed{&value.Sealed}) != nil {
			return nil, false
		}
		if value.Erased() {
			return erased, true
		}
		text, err := value.Text()
		if err != nil {
			return nil, false
		}
		out, err := json.Marshal(text)
		return out, err == nil
	})
}

// replaced returns JSON with some objects replaced and everything else unchanged.
func replaced(part json.RawMessage, with func(json.RawMessage) (json.RawMessage, bool)) json.RawMessage {
	part = bytes.TrimSpace(part)
	if len(part) == 0 || part[0] != '{' && part[0] != '[' {
		return part
	}
	if part[0] == '{' {
		if other, ok := with(part); ok {
			return other
		}
	}
	d := json.NewDecoder(bytes.NewReader(part))
	opening, err := d.Token()
	if err != nil {
		return part
	}
	out := append(make([]byte, 0, len(part)), part[0])
	for n := 0; d.More(); n++ {
		if n > 0 {
			out = append(out, ',')
		}
		if opening == json.Delim('{') {
			name, err := d.Token()
			if err != nil {
				return part
			}
			text, err := json.Marshal(name)
			if err != nil {
				return part
			}
			out = append(append(out, text...), ':')
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return part
		}
		out = append(out, replaced(value, with)...)
	}
	return append(out, part[len(part)-1])
}
