package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// moment is the format of an event's time in a line, in microseconds like the log's times.
const moment = "2006-01-02T15:04:05.000000Z"

// line is the JSON of an event. Payload and metadata are strings, so that any tool that reads JSON keeps their exact bytes.
type line struct {
	Position   event.Position `json:"position"`
	Stream     string         `json:"stream"`
	Revision   int64          `json:"revision"`
	ID         uuid.UUID      `json:"id"`
	Type       string         `json:"type"`
	RecordedAt string         `json:"recorded_at"`
	Data       string         `json:"data"`
	Meta       string         `json:"meta"`
}

// appendLine appends the line of an event, with the line break.
func appendLine(to []byte, e event.Stored) ([]byte, error) {
	if e.At.Year() < 0 || e.At.Year() > 9999 {
		return nil, fmt.Errorf("position %d: the year %d does not fit into a line", e.Position, e.At.Year())
	}
	for _, part := range []struct{ name, text string }{{"stream", e.Stream}, {"type", e.Type}, {"data", string(e.Data)},
		{"meta", string(e.Meta)}} {
		if !utf8.ValidString(part.text) {
			return nil, fmt.Errorf("position %d: %s is not valid UTF-8", e.Position, part.name)
		}
	}
	to = append(to, `{"position":`...)
	to = strconv.AppendUint(to, uint64(e.Position), 10)
	to = append(to, `,"stream":`...)
	to = appendText(to, e.Stream)
	to = append(to, `,"revision":`...)
	to = strconv.AppendInt(to, e.Revision, 10)
	to = append(to, `,"id":"`...)
	to = append(to, e.ID.String()...)
	to = append(to, `","type":`...)
	to = appendText(to, e.Type)
	to = append(to, `,"recorded_at":"`...)
	to = e.At.UTC().AppendFormat(to, moment)
	to = append(to, `","data":`...)
	to = appendText(to, string(e.Data))
	to = append(to, `,"meta":`...)
	to = appendText(to, string(e.Meta))
	return append(to, "}\n"...), nil
}

// appendText appends a JSON string as in RFC 8785, section 3.2.2.2: only what must be escaped is escaped. Go's encoder escapes more, and
// not the same in each version.
func appendText(to []byte, text string) []byte {
	const short, hex = `btn fr`, `0123456789abcdef`
	to = append(to, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, text[from:i]...)
		from = i + 1
		switch {
		case c == '"', c == '\\':
			to = append(to, '\\', c)
		case c >= '\b' && c <= '\r' && c != '\v':
			to = append(to, '\\', short[c-'\b'])
		default:
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	to = append(to, text[from:]...)
	return append(to, '"')
}

// parseLine parses a line without its line break. It accepts only the canonical form, so that two readers cannot understand a line
// differently.
func parseLine(text []byte) (e event.Stored, err error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return e, fmt.Errorf("it is not JSON of an event: %w", err)
	}
	at, err := time.Parse(moment, l.RecordedAt) // the layout's Z is literal, so the time is in UTC
	if err != nil {
		return e, fmt.Errorf("recorded_at %q is not of the form %s", l.RecordedAt, moment)
	}
	e = event.Stored{
		Position: l.Position, Stream: l.Stream, Revision: l.Revision, ID: l.ID, Type: l.Type,
		Data: []byte(l.Data), Meta: []byte(l.Meta), At: at,
	}
	again, err := appendLine(make([]byte, 0, len(text)+1), e)
	if err != nil {
		return e, err
	}
	if !bytes.Equal(again[:len(again)-1], text) {
		return e, errors.New("it is not in the canonical form")
	}
	switch {
	case e.Stream == "" || e.Type == "" || e.ID == uuid.Nil || e.Revision < 0:
		return e, errors.New("stream, type, id or revision is missing")
	case !json.Valid(e.Data) || !json.Valid(e.Meta):
		return e, errors.New("data or meta does not hold JSON")
	}
	return e, nil
}
