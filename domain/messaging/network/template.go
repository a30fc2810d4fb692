package network

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The formats of placeholders.
const (
	Positional = "positional"
	Named      = "named"
)

// Template is a network's description of a template. Events contain it.
type Template struct {
	ProviderID string   `json:"provider_id"`
	Name       string   `json:"name"`
	Language   string   `json:"language"`
	Category   string   `json:"category"`
	Status     string   `json:"status"`
	Format     string   `json:"format"`
	Parameters []string `json:"parameters,omitempty"` // parameters of the body, in their order
	Extras     []string `json:"extras,omitempty"`     // values outside the body: header, header_image, header_document, button_0
	Body       string   `json:"body"`
}

// Places returns the names of all values that the template requires.
func (t Template) Places() []string { return append(slices.Clone(t.Parameters), t.Extras...) }

var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_]{1,64})\s*\}\}`)

// Read sets the body, with normalised placeholders, and lists them in Parameters.
func (t *Template) Read(body string) {
	t.Body, t.Parameters = placeholder.ReplaceAllString(body, "{{$1}}"), nil
	for _, found := range placeholder.FindAllStringSubmatch(body, -1) {
		if !slices.Contains(t.Parameters, found[1]) {
			t.Parameters = append(t.Parameters, found[1])
		}
	}
	if t.Format == Positional { // the network requires the order of their numbers
		slices.SortFunc(t.Parameters, func(a, b string) int {
			x, _ := strconv.Atoi(a)
			y, _ := strconv.Atoi(b)
			return x - y
		})
	}
}

// HasPlace reports whether a text has a placeholder.
func HasPlace(text string) bool { return placeholder.MatchString(text) }

// Button returns the index of a button's place, false for another place.
func Button(place string) (index string, is bool) { return strings.CutPrefix(place, "button_") }

// Filled is a template with its values.
type Filled struct {
	ProviderID, Name, Language string
	Named                      bool
	Body                       []Value
	Extras                     map[string]string // by place
}

// Value is the value of a placeholder of a body.
type Value struct{ Name, Text string }
