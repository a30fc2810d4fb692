package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/unit"
)

const schemaPrefix = "#/components/schemas/"

// These types replace the quantities of package unit in the document, because the domain does not import huma.
type (
	money   struct{}
	grams   struct{}
	percent struct{}
	sum     struct{}
	share   struct{}
	date    struct{}
)

func quantity(places, digits int, what string) *huma.Schema {
	smallest := 1.0
	for range places {
		smallest /= 10
	}
	return &huma.Schema{
		Type: huma.TypeNumber, MultipleOf: &smallest,
		Description: fmt.Sprintf("%s: at most %d digits before the point and %d places after it, no exponent", what, digits, places),
	}
}

func (money) Schema(huma.Registry) *huma.Schema   { return quantity(2, 13, "Rupees") }
func (grams) Schema(huma.Registry) *huma.Schema   { return quantity(3, 9, "Grams") }
func (percent) Schema(huma.Registry) *huma.Schema { return quantity(3, 9, "Percent") }
func (share) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Minimum: new(0.0), Maximum: new(1.0)}
}

func (sum) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }

func (date) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date", Examples: []any{"2025-03-31"}}
}

// marshal panics on an encoding error: huma would append the error's text to a partial response. It ignores errors of writing to a
// disconnected client.
func marshal(w io.Writer, v any) error {
	if l, ok := v.(interface{ send() }); ok {
		l.send()
		return nil
	}
	var b bytes.Buffer
	encode(encoderOf(&b), v)
	_, _ = w.Write(b.Bytes())
	return nil
}

func encoderOf(b *bytes.Buffer) *json.Encoder {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	return encoder
}

func encode(encoder *json.Encoder, v any) {
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Errorf("encode the response: %w", err))
	}
}

func humaConfig(config Config) huma.Config {
	format := huma.Format{Marshal: marshal, Unmarshal: json.Unmarshal}
	schemas := huma.NewMapRegistry(schemaPrefix, schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Money](), reflect.TypeFor[money]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Grams](), reflect.TypeFor[grams]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Percent](), reflect.TypeFor[percent]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Share](), reflect.TypeFor[share]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Sum](), reflect.TypeFor[sum]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Date](), reflect.TypeFor[date]())
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Bahi", Version: config.Version, Description: "The books of a workshop, kept as a log of events.",
			},
			Servers: []*huma.Server{{URL: "/"}},
			Components: &huma.Components{
				Schemas: schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer": {Type: "http", Scheme: "bearer", Description: "An access token, or an API key (bahi_…)"},
				},
			},
		},
		Formats:       map[string]huma.Format{jsonType: format, "json": format},
		DefaultFormat: jsonType,
	}
}

// Named is a type with its own name in the document. Huma panics if two types have one name.
type Named interface{ SchemaName() string }

// ShowAs documents values of one type like values of another type.
func (a *API) ShowAs(t, as reflect.Type) {
	a.huma.OpenAPI().Components.Schemas.RegisterTypeAlias(t, as)
}

// layer matches the suffix of a package's name that names its layer, such as in ledgercmd.
var layer = regexp.MustCompile(`(.)(cmd|http|view)$`)

// schemaName names a schema by package and type.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "" {
		return hint
	}
	if named, ok := reflect.TypeAssert[Named](reflect.Zero(t)); ok {
		return named.SchemaName()
	}
	name, arguments, _ := strings.Cut(t.Name(), "[")
	qualified := capital(name)
	if path := t.PkgPath(); path != "" && path != reflect.TypeFor[Problem]().PkgPath() {
		prefix := capital(layer.ReplaceAllString(path[strings.LastIndexByte(path, '/')+1:], "$1"))
		if !strings.HasPrefix(qualified, prefix) {
			qualified = prefix + qualified
		}
	}
	for argument := range strings.FieldsFuncSeq(arguments, func(r rune) bool { return strings.ContainsRune("[],*", r) }) {
		argument = argument[strings.LastIndexByte(argument, '/')+1:]
		pkg, name, _ := strings.Cut(argument, ".")
		qualified += capital(layer.ReplaceAllString(pkg, "$1")) + capital(name)
	}
	return qualified
}

// capital joins the parts of a word, each with a capital letter.
func capital(word string) (joined string) {
	for part := range strings.SplitSeq(word, "_") {
		if part != "" {
			joined += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return joined
}

// serveDocument serves the OpenAPI document.
func (a *API) serveDocument() {
	a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	a.Page("/openapi.json", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/openapi+json")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(a.OpenAPI())
	}))
}

// encodeDocument returns the configured document with the API's version, or huma's document of the operations.
func (a *API) encodeDocument() []byte {
	if a.config.Document == nil {
		text, _ := json.Marshal(a.Described()) //nolint:errchkjson // a test makes the committed document from it
		return text
	}
	var text bytes.Buffer
	_ = json.Compact(&text, a.config.Document) // it was encoded by a test
	return bytes.Replace(text.Bytes(), []byte(`"version":"development"`), fmt.Appendf(nil, `"version":%q`, a.config.Version), 1)
}

// Described returns huma's description of the operations. A test generates the committed document from it.
func (a *API) Described() *huma.OpenAPI { return a.huma.OpenAPI() }
