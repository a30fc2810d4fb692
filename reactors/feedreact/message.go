package feedreact

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"bahi/domain/event"
)

// sequenceDigits is the length of a sequence with its leading zeros. So sequences sort as text like positions.
const sequenceDigits = 20

// notExtensions are reserved names: CloudEvents' JSON uses them for the payload and for a URI that we do not set.
var notExtensions = map[string]bool{"data": true, "database64": true, "dataschema": true}

// extension matches the names of attributes (CloudEvents 1.0, naming conventions).
var extension = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// Message returns an event as a CloudEvent (1.0.2) in the form of a Watermill message. Its payload is the event's, byte by byte, and its
// metadata are the CloudEvent's attributes. The broker's adapter decides how its protocol carries attributes. The message's own id
// identifies repetitions to a broker. It combines the event's id and position, because other programs may append one id to several streams.
//
// The attribute sequence is the position in the log, with leading zeros. Scalar fields of the event's metadata become extension attributes.
// Their names lose underscores. A field with the name of a standard attribute is omitted.
func Message(log uuid.UUID, e event.Stored) *message.Message {
	sequence := strconv.FormatUint(uint64(e.Position), 10)
	m := message.NewMessage(e.ID.String()+"@"+sequence, e.Data)
	m.Metadata = message.Metadata{
		"specversion":     "1.0",
		"id":              e.ID.String(),
		"source":          "urn:uuid:" + log.String(),
		"type":            printable(e.Type),
		"subject":         printable(e.Stream),
		"time":            e.At.UTC().Format(time.RFC3339Nano),
		"datacontenttype": "application/json",
		"sequence":        strings.Repeat("0", sequenceDigits-len(sequence)) + sequence,
		"revision":        strconv.FormatInt(e.Revision, 10),
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Meta, &fields) != nil {
		return m // another program's metadata may be any JSON
	}
	for field, value := range fields {
		name := strings.ReplaceAll(field, "_", "")
		if _, taken := m.Metadata[name]; taken || notExtensions[name] || !extension.MatchString(name) {
			continue
		}
		if text := scalar(value); text != "" {
			m.Metadata[name] = printable(text)
		}
	}
	return m
}

// scalar returns the text of a JSON string, number or boolean, and "" for any other value.
func scalar(value json.RawMessage) (text string) {
	switch value[0] {
	case '"':
		_ = json.Unmarshal(value, &text) // value is valid JSON
		return text
	case '{', '[', 'n':
		return ""
	default:
		return string(value)
	}
}

// printable removes the characters that CloudEvents forbids in attributes. Bahi's own events have none.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
