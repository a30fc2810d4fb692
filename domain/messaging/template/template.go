// Package template has the message templates of chat networks, with placeholders for values. A network owns its templates. Bahi stores the
// network's latest description of each under an id of Bahi.
package template

import (
	"cmp"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/network"
	"bahi/domain/person"
)

// Kind registers the events of streams messagetemplate-<number>. Stored names are permanent.
var Kind = event.NewKind("messagetemplate",
	event.Of[Listed]("MessageTemplateListed", 1),
	event.Of[StatusMoved]("MessageTemplateStatusChanged", 1),
)

// ErrNotFound reports an unknown template. Callers without access to the template receive it too.
var ErrNotFound = fault.New(fault.NotFound, "Template not found")

// Gone is the status of a template that its network no longer lists.
const Gone = "DELETED"

// Sendable are the statuses of templates that can be sent (CONTRACT.md N14).
var Sendable = []string{"APPROVED", "REINSTATED", "FLAGGED", "LOCKED", "UNARCHIVED"}

// longestValue is the length of the longest value of a placeholder, in bytes.
const longestValue = 4096

// State is the network's latest description.
type State struct {
	network.Template

	Channel int64 // 0: there is no template
}

// Listed records the network's description of the template, after each change of it.
type Listed struct {
	network.Template

	Channel int64 `json:"channel"`
}

// StatusMoved records that the network allows or forbids the template, or no longer lists it.
type StatusMoved struct {
	Status string `json:"status"`
}

// Evolve sets the description.
func (e Listed) Evolve(State) State { return State(e) }

// Evolve sets the status.
func (e StatusMoved) Evolve(s State) State {
	s.Status = e.Status
	return s
}

// List records the description of a template by a channel's network.
type List struct {
	network.Template

	Channel int64
}

// Decide returns an event only for a change: StatusMoved if only the status differs, else Listed.
func (c List) Decide(s State) ([]event.Event[State], error) {
	after := State(c)
	if reflect.DeepEqual(after, s) {
		return nil, nil
	}
	if s.Status = after.Status; reflect.DeepEqual(after, s) {
		return []event.Event[State]{StatusMoved{Status: after.Status}}, nil
	}
	return []event.Event[State]{Listed(c)}, nil
}

// MoveStatus records a status that the network reported without the rest of the description.
type MoveStatus struct{ Status string }

// Decide returns no event for an unknown template or an unchanged status.
func (c MoveStatus) Decide(s State) ([]event.Event[State], error) {
	if s.Channel == 0 || s.Status == c.Status {
		return nil, nil
	}
	return []event.Event[State]{StatusMoved(c)}, nil
}

// Sendable reports whether the network accepts messages of the template.
func (s State) Sendable() bool { return slices.Contains(Sendable, s.Status) }

// broken matches the white space that networks refuse in a value (CONTRACT.md R10), with all line breaks of Unicode.
var broken = regexp.MustCompile(`[\t\n\v\f\r\x{85}\x{2028}\x{2029}]|\pZ{4}`)

// insert matches the parts of a value that are replaced for each contact.
var insert = regexp.MustCompile(`\{\{\s*(.*?)\s*\}\}`)

// unknownInsert reports whether a value has an insert that no contact has.
func unknownInsert(value string) bool {
	return slices.ContainsFunc(insert.FindAllStringSubmatch(value, -1), func(m []string) bool { return m[1] != "name" && m[1] != "phone" })
}

// isAddress reports whether a value is the address of a file.
func isAddress(value string) bool {
	u, err := url.Parse(strings.TrimSpace(value))
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http")
}

// Values are a client's values for a template's placeholders. A value may contain the contact's {{name}} and {{phone}}.
type Values map[string]string

// Check returns the faults of the values. A value without a placeholder is a fault. The placeholders of the zero State are unknown. The
// result holds for every contact.
func (s State) Check(field string, given Values) error {
	var wrong []fault.Field
	refuse := func(name, message string) {
		wrong = append(wrong, fault.Field{Field: field + "." + name, Message: message})
	}
	places := s.Places()
	unread := slices.DeleteFunc(slices.Sorted(maps.Keys(given)), func(name string) bool { return slices.Contains(places, name) })
	for i, name := range append(places, unread...) {
		switch value := given[name]; {
		case i < len(places) && !strings.ContainsFunc(value, person.Visible):
			refuse(name, "must be filled")
		case len(value) > longestValue:
			refuse(name, "is too long")
		case broken.MatchString(value):
			refuse(name, "must have no line break, no tab and at most three blanks in a row")
		case i >= len(places) && s.Channel != 0:
			refuse(name, "the template has no such placeholder")
		case i < len(places) && unknownInsert(value):
			refuse(name, "may have {{name}} and {{phone}}, but no other braces")
		case i < len(places) && strings.HasPrefix(name, "header_") && !isAddress(value):
			refuse(name, "expected an address like https://cdn.example.org/a.jpg")
		}
	}
	return fault.Found(wrong)
}

// Filled returns the template with values for a contact, and the filled body as text. The name of a contact without a name is "you". Each
// group of blanks and line breaks in a name becomes one blank. more has pairs: a further text to replace in the values, and its
// replacement.
func (s State) Filled(given Values, name, phone string, more ...string) (network.Filled, string) {
	name = strings.Join(strings.Fields(name), " ")
	of := strings.NewReplacer(append([]string{"{{name}}", cmp.Or(name, "you"), "{{phone}}", phone}, more...)...)
	out := network.Filled{ProviderID: s.ProviderID, Name: s.Name, Language: s.Language, Named: s.Format == network.Named,
		Extras: map[string]string{}}
	fill := func(place string) string {
		return of.Replace(insert.ReplaceAllString(strings.TrimSpace(given[place]), "{{$1}}"))
	}
	var texts []string
	for _, place := range s.Parameters {
		value := fill(place)
		out.Body = append(out.Body, network.Value{Name: place, Text: value})
		texts = append(texts, "{{"+place+"}}", value)
	}
	for _, place := range s.Extras {
		out.Extras[place] = fill(place)
	}
	return out, strings.NewReplacer(texts...).Replace(s.Body)
}
