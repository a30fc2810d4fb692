package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is an input of a form, or a group of inputs. Its kind is one of text, area (a long text), secret, number, whole, date, select,
// tick, file, group (an object), lines (an array of objects), list (an array of plain values, one a line of the text), map (lines
// name = value) and json (any value).
type field struct {
	Name               string // JSON path, as problems name it: in_entries[0].fine_percent
	Key                string // last part of the name
	Label, Kind        string
	Unit, Hint         string
	Value, Error       string
	Required, Computed bool // Computed: the server computed the value
	Passed             bool // usually computed by the server or without effect, so the Enter key skips it
	Focus              bool // the first input with a fault
	Options            []string
	List               string    // id of a datalist
	Choices            []choice  // of the kinds choice and choices: records by their names
	Scope              string    // distinguishes its id from another form's field
	Fields             []field   // of a group
	Lines              [][]field // the fields of each object
}

const (
	maxLines = 500 // of an array in a form
	maxName  = 200 // bytes of an input's name
)

// fields returns the inputs of the properties of an object. Their names start with the prefix. The value is the current one as decoded
// JSON, or nil. The faults are messages by JSON path. Each array of lines ends with a number of blank lines.
func (s *schema) fields(prefix string, value any, faults map[string]string, blank int) []field {
	drawn := drawing{faults, blank}.object(s, prefix, value, true)
	focus(drawn)
	return drawn
}

type drawing struct {
	faults map[string]string
	blank  int
}

// object draws the inputs of an object. An object that may be absent has no required inputs.
func (d drawing) object(s *schema, prefix string, value any, required bool) (drawn []field) {
	values, _ := value.(map[string]any)
	computed, _ := values["computed"].([]any)
	for _, p := range s.Properties {
		outOnly := strings.HasPrefix(prefix, "in_entries[") && strings.HasSuffix(p.Description, "; OUT only")
		if p.ReadOnly || outOnly && values[p.Name] == nil {
			continue
		}
		hint := languages[0].said(hintOf(p.Description)) // users see labels, not JSON names
		f := field{Key: p.Name, Kind: p.Kind, Unit: p.Unit, Hint: hint, Options: p.Options, List: p.List}
		f.Name, f.Label = below(prefix, p.Name), labelOf(p.Name)
		f.Required, f.Computed = required && p.Required && !p.Nullable, slices.Contains(computed, any(p.Name))
		f.Passed = p.Name == "metal" || strings.Contains(p.Description, "for information only") ||
			strings.HasSuffix(p.Name, "_weight") && strings.Contains(p.Description, "unless it is given")
		if head, _, _ := strings.Cut(f.Hint, ":"); head == "Grams" || head == "Rupees" || head == "Percent" {
			f.Hint = "" // the unit suffices
		}
		if strings.HasSuffix(f.Label, f.Unit) {
			f.Unit = ""
		}
		d.fill(&f, p.schema, values[p.Name])
		drawn = append(drawn, f)
	}
	return drawn
}

func (d drawing) fill(f *field, s *schema, value any) {
	var messages []string
	for path, message := range d.faults {
		if f.concerns(path) {
			name, is := strings.CutPrefix(path, f.Name+".")
			messages = append(messages, map[bool]string{true: name + ": "}[is]+message)
		}
	}
	slices.Sort(messages)
	f.Error = strings.Join(messages, "; ")
	switch f.Kind {
	case "group":
		f.Fields = d.object(s, f.Name, value, f.Required)
	case "lines":
		lines, _ := value.([]any)
		for i := range len(lines) + d.blank {
			var line any
			if i < len(lines) {
				line = lines[i]
			}
			inputs := d.object(s.Items, fmt.Sprintf("%s[%d]", f.Name, i), line, false)
			for j := range inputs {
				if inputs[j].Kind == "area" {
					inputs[j].Kind = "text" // Enter submits it
				}
			}
			f.Lines = append(f.Lines, inputs)
		}
	case "secret", "file":
	default:
		if f.Value = s.text(value); value == nil && s.On {
			f.Value = "true"
		}
	}
}

// concerns reports whether the fault at a path belongs to the field itself, not to a field inside it.
func (f field) concerns(path string) bool {
	rest, found := strings.CutPrefix(path, f.Name)
	whole := f.Kind == "list" || f.Kind == "map" || f.Kind == "json"
	return found && (rest == "" || whole && strings.ContainsAny(rest[:1], "[."))
}

// misplaced returns the faults that no field shows, with the places of their fields in words.
func (l language) misplaced(drawn []field, faults map[string]string) (texts []string) {
	rest := maps.Clone(faults)
	each(drawn, func(f *field) { maps.DeleteFunc(rest, func(path, _ string) bool { return f.concerns(path) }) })
	for path, message := range rest {
		texts = append(texts, strings.TrimPrefix(l.pathWords(path)+": "+l.said(message), ": "))
	}
	slices.Sort(texts)
	return texts
}

// each calls a function for the fields and those inside them, in the order of the page.
func each(fields []field, do func(*field)) {
	for i := range fields {
		do(&fields[i])
		each(fields[i].Fields, do)
		for _, line := range fields[i].Lines {
			each(line, do)
		}
	}
}

// focus marks the first input with a fault, its own or that of the group around it.
func focus(drawn []field) {
	faulty, done := false, false
	each(drawn, func(f *field) {
		if faulty = faulty || f.Error != ""; faulty && !done && f.Kind != "group" && f.Kind != "lines" {
			f.Focus, done = true, true
		}
	})
}

// text returns a value as its input shows it.
func (s *schema) text(value any) string {
	var lines []string
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		if s.Ends != nil {
			return v[:min(len(v), len(time.DateOnly))]
		} else if s.Kind != "json" || s.value(v) == value {
			return v
		}
	case json.Number:
		if amount, is := toDecimal(v); s.Paise && is {
			return amount.Shift(-2).StringFixed(2)
		}
	case bool:
		if s.Kind == "tick" && !v {
			return ""
		}
	case []any:
		for i := 0; i < len(v) && s.Kind == "list"; i++ {
			lines = append(lines, s.Items.text(v[i]))
		}
	case map[string]any:
		if s.Kind == "map" {
			for name, item := range v {
				lines = append(lines, name+" = "+s.Items.text(item))
			}
			slices.Sort(lines)
		}
	}
	if text := strings.Join(lines, "\n"); (s.Kind == "list" || s.Kind == "map") && reflect.DeepEqual(s.value(text), value) {
		return text // otherwise parsing a line would change it
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

// read returns the JSON body of a posted form. It omits empty inputs and empty lines, so the caller must redraw the form from the
// returned body. An edit keeps empty inputs as empty values: null where the schema allows it, otherwise an empty text, array or map.
func (s *schema) read(form url.Values, edit bool) map[string]any {
	body, _ := reader(form).object(s, "", edit)
	return body
}

// reader reads a posted form.
type reader url.Values

// lines returns the numbers of the lines of an array in order.
func (r reader) lines(array string) (numbers []int) {
	for name := range r {
		rest, inside := strings.CutPrefix(name, array+"[")
		digits, _, _ := strings.Cut(rest, "]")
		n, err := strconv.Atoi(digits)
		if inside && len(name) <= maxName && err == nil && n >= 0 && n < maxLines && strconv.Itoa(n) == digits {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// object reads an object. It reports whether an input has a value.
func (r reader) object(s *schema, prefix string, edit bool) (object map[string]any, given bool) {
	object = map[string]any{}
	for _, p := range s.Properties {
		if p.ReadOnly {
			continue
		}
		value, filled, kept := r.value(p.schema, below(prefix, p.Name), edit)
		if kept {
			object[p.Name] = value
		}
		given = given || filled
	}
	return object, given
}

// value reads a value. It reports whether an input has a value, and whether the body contains it.
func (r reader) value(s *schema, name string, edit bool) (value any, given, kept bool) {
	inputs := r[name]
	named := len(inputs) > 0
	switch s.Kind {
	case "file":
		return nil, false, false
	case "group":
		object, given := r.object(s, name, edit)
		return object, given, given
	case "lines":
		lines, numbers := []any{}, r.lines(name)
		for _, i := range numbers {
			if line, given := r.object(s.Items, fmt.Sprintf("%s[%d]", name, i), false); given {
				lines = append(lines, line)
			}
		}
		return lines, len(lines) > 0, len(lines) > 0 || edit && len(numbers) > 0
	case "tick":
		ticked := slices.ContainsFunc(inputs, func(input string) bool { return input != "" })
		return ticked, ticked, ticked || s.Required || (edit || s.On) && named
	}
	if named && strings.TrimSpace(inputs[0]) != "" {
		return s.value(inputs[0]), true, true
	}
	value, may := s.empty()
	return value, false, edit && named && may
}

// empty returns the value of an empty input. It reports false if there is none.
func (s *schema) empty() (any, bool) {
	switch {
	case s.Secret:
		return nil, false // the form did not show it, so it stays unchanged
	case s.Kind == "list" || s.Kind == "map":
		return s.value(""), true
	case s.Nullable:
		return nil, true
	default:
		return "", s.Kind == "text" || s.Kind == "area" || s.Required // the API reports the missing field
	}
}

// value returns the value of an input's text.
func (s *schema) value(text string) any {
	switch s.Kind {
	case "number", "whole":
		n := number(text, s.Unit)
		if amount, is := toDecimal(n); s.Paise && is {
			return json.Number(amount.Shift(2).String())
		}
		return n
	case "json", "tick":
		return jsonOr(text)
	case "secret":
		return text
	case "area":
		return strings.ReplaceAll(text, "\r\n", "\n")
	case "list":
		if list, is := jsonOr(text).([]any); is {
			return list
		}
		list := []any{}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && len(list) < maxLines {
				list = append(list, s.Items.value(line))
			}
		}
		return list
	case "map":
		if pairs, is := jsonOr(text).(map[string]any); is {
			return pairs
		}
		pairs := map[string]any{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(line, "=")
			if name = strings.TrimSpace(name); name != "" && len(pairs) < maxLines {
				pairs[name] = s.Items.value(strings.TrimSpace(value))
			}
		}
		return pairs
	case "date":
		if s.Ends != nil {
			return s.Ends(strings.TrimSpace(text))
		}
	}
	return strings.TrimSpace(text)
}

// jsonOr returns the decoded value of JSON. It returns any other text unchanged.
func jsonOr(text string) any {
	var value any
	if json.Valid([]byte(text)) && decode([]byte(text), &value) == nil {
		return value
	}
	return strings.TrimSpace(text)
}

// figure matches a number with optional grouping: 1500, 1,20,000.50 or 120,000.50.
var figure = regexp.MustCompile(`^(\d*|[1-9]\d?(?:,\d\d)*,\d{3}|[1-9]\d{0,2}(?:,\d{3})+)(\.\d*)?$`)

// number returns the JSON number of a text, without loss. It returns any other text unchanged, so that the API refuses it.
func number(text, unit string) any {
	rest, minus := strings.CutPrefix(strings.TrimSpace(strings.Map(ascii, text)), "-")
	switch unit {
	case "₹":
		rest = strings.TrimPrefix(rest, "₹")
	case "%", "g":
		rest = strings.TrimSuffix(rest, unit)
	}
	parts := figure.FindStringSubmatch(strings.TrimSpace(rest))
	if parts == nil || !strings.ContainsAny(rest, "0123456789") {
		return strings.TrimSpace(text)
	}
	n := cmp.Or(strings.TrimLeft(strings.ReplaceAll(parts[1], ",", ""), "0"), "0") + strings.TrimSuffix(parts[2], ".")
	if minus {
		n = "-" + n
	}
	return json.Number(n)
}

// ascii returns the ASCII digit of a Devanagari or Gujarati one, and the hyphen of a minus sign.
func ascii(r rune) rune {
	for _, zero := range "०૦" {
		if r >= zero && r <= zero+9 {
			return r - zero + '0'
		}
	}
	if r == '−' {
		return '-'
	}
	return r
}

func below(prefix, name string) string { return strings.TrimPrefix(prefix+"."+name, ".") }

var idParts = strings.NewReplacer("[", "-", ".", "-", "]", "", " ", "_")

// fieldID returns the id of the input with a name.
func fieldID(name string) string { return "f-" + idParts.Replace(name) }

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// labelOf returns the English words of the name of a field or an option.
func labelOf(name string) string {
	if label, known := english["fields"][name]; known {
		return label
	}
	if strings.ToUpper(name) == name {
		return name // such as GET
	}
	words := strings.ToLower(strings.ReplaceAll(capital.ReplaceAllString(name, "$1 $2"), "_", " "))
	return strings.ToUpper(words[:1]) + strings.TrimSuffix(words[1:], " id")
}

// wordOf returns the English words of one of several options, such as a status. Goods and rights have other words than messages.
func wordOf(option any, all ...string) string {
	name, use := textOf(option), "options"
	switch {
	case slices.Contains(all, "sent"):
		use = "delivery"
	case slices.Contains(all, "unconfirmed"): // a channel's calls
		use = "incoming"
	}
	return cmp.Or(english[use][name], labelOf(name))
}

// purposes are the values of autocomplete for what visitors enter about themselves (WCAG 1.3.5), by name.
var purposes = map[string]string{
	"first_name": "given-name", "last_name": "family-name", "current_password": "current-password",
	"user_name": "name", "user_email": "email", "user_phone": "tel",
}

// Purpose returns the value of autocomplete, or "". Only a visitor's own page asks for an email in a field without a scope. Browsers enter
// no stored password into a field for a new one.
func (f field) Purpose() string {
	switch {
	case f.Name == "email" && f.Scope == "":
		return "email"
	case f.Kind == "secret":
		return cmp.Or(purposes[f.Name], "new-password")
	}
	return purposes[f.Name]
}

// Keyboard returns the value of inputmode of a text, or "".
func (f field) Keyboard() string {
	for _, kind := range []string{"email", "url", "tel"} {
		if strings.HasSuffix(strings.ToLower(strings.ReplaceAll(f.Key, "phone", "tel")), kind) {
			return kind
		}
	}
	return ""
}

// ID returns the id of the input.
func (f field) ID() string { return fieldID(f.Name) + f.Scope }
