package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// Entry is an event of the log, as stored in the journal.
type Entry struct {
	event.Stored

	OpenEnded bool // appended without an exact revision
}

// header is the beginning of an entry's metadata. The event's own metadata follow as "meta", byte for byte, because proofs cover them.
type header struct {
	Bahi       int       `json:"bahi"` // version of this form
	ID         uuid.UUID `json:"id"`
	Stream     string    `json:"stream"`
	Revision   int64     `json:"revision"`
	RecordedAt time.Time `json:"recorded_at"`
	OpenEnded  bool      `json:"open_ended,omitempty"`
}

const (
	headerVersion = 1

	// typePrefix precedes the types of entries, so a Bahi whose own log holds another log's journal never folds its events.
	typePrefix = "bahi:"

	// headerBytes is an upper bound of a header without the stream's name.
	headerBytes = 256
)

// id returns an id computed from the whole entry. The server treats an append with known ids as a repetition. Ids of whole entries
// distinguish groups that have the same events at different times.
func (e Entry) id(h *tlog.Hasher) uuid.UUID {
	leaf := h.Leaf(e.Stored)
	id := uuid.UUID(leaf[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8 of RFC 9562: an application's own
	return id
}

// begin returns the metadata that precede the event's own.
func (h header) begin() ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return append(text[:len(text)-1], `,"meta":`...), nil
}

// encode returns entries as events of the journal's stream.
func encode(entries []Entry) ([]event.Proposed, error) {
	var hasher tlog.Hasher
	events := make([]event.Proposed, len(entries))
	for i, e := range entries {
		meta, err := header{headerVersion, e.ID, e.Stream, e.Revision, e.At, e.OpenEnded}.begin()
		if err != nil {
			return nil, fmt.Errorf("position %d cannot be written to the journal: %w", e.Position, err)
		}
		meta = append(append(meta, e.Meta...), '}')
		events[i] = event.Proposed{ID: e.id(&hasher), Type: typePrefix + e.Type, Data: e.Data, Meta: meta}
	}
	return events, nil
}

var errForeign = errors.New("it was not written by Bahi, or it was changed")

// decode returns an event of the journal's stream as an entry.
func decode(raw event.Stored) (e Entry, err error) {
	var h header
	begin := []byte(nil)
	if err = json.Unmarshal(raw.Meta, &h); err == nil {
		begin, err = h.begin()
	}
	kind, ours := strings.CutPrefix(raw.Type, typePrefix)
	if err == nil && (!ours || h.Bahi != headerVersion || !bytes.HasPrefix(raw.Meta, begin) || raw.Meta[len(raw.Meta)-1] != '}') {
		err = errForeign
	}
	if err != nil {
		return e, fmt.Errorf("read revision %d of the journal %s: %w", raw.Revision, raw.Stream, err)
	}
	e = Entry{event.Stored{
		Position: event.Position(raw.Revision + 1), Stream: h.Stream, Revision: h.Revision, ID: h.ID, Type: kind,
		Data: raw.Data, Meta: raw.Meta[len(begin) : len(raw.Meta)-1], At: h.RecordedAt.UTC(),
	}, h.OpenEnded}
	if e.id(new(tlog.Hasher)) != raw.ID {
		return e, fmt.Errorf("read revision %d of the journal %s: %w", raw.Revision, raw.Stream, errForeign)
	}
	return e, nil
}

// Size returns the maximum number of bytes of an event in an append to a journal.
func Size(stream string, e event.Proposed) int {
	return len(stream) + len(e.Type) + len(e.Data) + len(e.Meta) + headerBytes
}
