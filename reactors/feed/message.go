package feed

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

// sequenceDigits are enough for any position, so that the order of sequences as texts is that of positions.
const sequenceDigits = 20

// notExtensions are names that metadata cannot take: those of the payload in CloudEvents' JSON, and of a URI that we do not give.
var notExtensions = map[string]bool{"data": true, "database64": true, "dataschema": true}

// extension is what an attribute may be called (CloudEvents 1.0, naming conventions).
var extension = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// Message is an event of a log as others get it: a CloudEvent (1.0.2), in the shape of a Watermill message whose
// payload is the event's, byte by byte, and whose metadata are the attributes by their names. How a broker's
// protocol carries attributes is for its adapter to know. The message's own id, by which a broker knows what it has
// already, is the event's with its position: other programs may append events to several streams under one id.
//
// The sequence (of the extension of that name) is the position in the log, with leading zeros. The metadata's
// fields are extension attributes, each under its own name without underscores, as far as they are text,
// numbers or truth values; those of other programs' events too, if no attribute of ours has the name.
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

// scalar is the text of a JSON value that has no parts, and nothing for null and all others.
func scalar(value json.RawMessage) (text string) {
	switch value[0] {
	case '"':
		_ = json.Unmarshal(value, &text) // it is part of what was valid
		return text
	case '{', '[', 'n':
		return ""
	default:
		return string(value)
	}
}

// printable has no characters that CloudEvents forbids in attributes. Those of Bahi's own events have none.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
