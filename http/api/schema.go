package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
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
	schemas := huma.NewMapRegistry(schemaPrefix, namer())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Money](), reflect.TypeFor[money]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Grams](), reflect.TypeFor[grams]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Percent](), reflect.TypeFor[percent]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Share](), reflect.TypeFor[share]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Sum](), reflect.TypeFor[sum]())
	schemas.RegisterTypeAlias(reflect.TypeFor[unit.Date](), reflect.TypeFor[date]())
	title := config.Title
	if title == "" {
		title = "Bahi"
	}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: title, Version: config.Version, Description: config.Description},
			Servers: []*huma.Server{{URL: "/"}},
			Components: &huma.Components{
				Schemas: schemas, Responses: documentRefusals(),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer": {Type: "http", Scheme: "bearer", Description: "An access token, or an API key (bahi_…)"},
				},
			},
		},
		Formats:       map[string]huma.Format{jsonType: format, "json": format},
		DefaultFormat: jsonType,
	}
}

// namer returns a function that names schemas by package and type. If another type has the name, for which huma would panic, the function
// adds one more folder to the name.
func namer() func(reflect.Type, string) string {
	given := map[string]reflect.Type{}
	return func(t reflect.Type, hint string) string {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		for folders := 1; ; folders++ {
			name := schemaName(t, hint, folders)
			if other := given[name]; t.Kind() != reflect.Struct || t.Name() == "" || other == nil || other == t ||
				folders > strings.Count(t.PkgPath(), "/")+1 {
				given[name] = t
				return name
			}
		}
	}
}

// Named is a type with its own name in the document, such as one with type parameters.
type Named interface{ SchemaName() string }

// ShowAs documents values of one type as those of another.
func (a *API) ShowAs(t, as reflect.Type) {
	a.huma.OpenAPI().Components.Schemas.RegisterTypeAlias(t, as)
}

// layer matches the suffix of a package's name that names its layer, such as in ledgercmd.
var layer = regexp.MustCompile(`(.)(cmd|http|view)$`)

func schemaName(t reflect.Type, hint string, folders int) string {
	if t.Name() == "" {
		return hint
	}
	if named, ok := reflect.TypeAssert[Named](reflect.Zero(t)); ok {
		return named.SchemaName()
	}
	name, arguments, _ := strings.Cut(t.Name(), "[")
	qualified := capital(name)
	if path := t.PkgPath(); path != "" && path != reflect.TypeFor[Problem]().PkgPath() {
		parts := strings.Split(path, "/")
		parts = parts[max(0, len(parts)-folders):]
		for i, part := range parts {
			parts[i] = capital(layer.ReplaceAllString(part, "$1"))
		}
		prefix := strings.Join(parts, "")
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

// document adds the consequences of the Op to an operation's description.
func (o *operation) document(h *huma.Operation) {
	h.Parameters = o.called(h.Parameters)
	if !o.Public {
		h.Security = []map[string][]string{{"bearer": {}}}
	}
	if !o.Public || o.OptionalAuth {
		h.Parameters = append(h.Parameters, header("Bahi-Workspace", "Workspace of the request, if not the caller's default", "string", "uuid"))
	}
	if len(o.Reads) > 0 && !o.write() {
		h.Parameters = append(h.Parameters,
			header("Bahi-Min-Position", "Wait (at most 5 s) until the answer is complete up to this position of the log", "integer", "int64"))
	}
	if o.write() {
		if !o.NoKey {
			h.Parameters = append(h.Parameters,
				header("Idempotency-Key", "1 to 255 characters: the same key and request have one effect, for ever", "string", ""))
		}
		h.Parameters = append(h.Parameters,
			header("If-Match", "The ETag that the caller has seen; 412 when it is not the newest", "string", ""),
			header("Bahi-Reason", "Why, in at most 500 characters of percent-encoded UTF-8; kept for the audit trail", "string", ""),
			header("Prefer", "return=representation: return the whole resource, balances included", "string", ""))
		if o.DryRun {
			h.Parameters = append(h.Parameters, header("Bahi-Dry-Run", "true: decide and validate, write nothing, answer 200", "boolean", ""))
		}
	}
	h.Extensions = map[string]any{}
	switch {
	case o.OptionalAuth: // a credential or none
		h.Extensions["security"] = []any{map[string]any{}, map[string]any{"bearer": []string{}}}
	case o.Public: // huma leaves an empty list out
		h.Extensions["security"] = []any{}
	}
	if o.Limit != "" {
		h.Extensions["x-rate-limit"] = o.Limit
	}
	switch {
	case o.Operator:
		h.Extensions["x-permission"] = "operator"
	case o.Area != "":
		h.Extensions["x-permission"] = string(o.Area) + ":" + string(o.Level)
	case o.Permission != "":
		h.Extensions["x-permission"] = o.Permission
	}
	o.documentAnswers(h)
}

func header(name, description, kind, format string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: description, Schema: &huma.Schema{Type: kind, Format: format}}
}

func (o *operation) documentAnswers(h *huma.Operation) {
	success := h.Responses[strconv.Itoa(o.Status)]
	if success.Headers == nil {
		success.Headers = map[string]*huma.Param{}
	}
	answer := func(name, description, kind string) {
		success.Headers[name] = &huma.Param{Description: description, Schema: &huma.Schema{Type: kind}}
	}
	answer("X-Request-Id", "Names the request in logs, events and errors", "string")
	if len(o.Reads) > 0 || o.write() {
		answer("Bahi-Position", "Log position of the write, or up to which the response is complete", "integer")
	}
	if len(o.Reads) > 0 {
		answer("Warning", `110 - "Response is Stale": the answer lacks what the log had`, "string")
		answer("Bahi-Stale", "true: the response lacks the newest events", "boolean")
	}
	if o.write() && !o.NoKey {
		answer("Idempotency-Replayed", "true: an earlier request with this key did it", "boolean")
	}
	statuses := append([]int{http.StatusInternalServerError, http.StatusServiceUnavailable}, o.Errors...)
	switch {
	case !o.Public:
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound)
	case o.OptionalAuth: // the credential, or the workspace, is wrong
		statuses = append(statuses, http.StatusUnauthorized, http.StatusNotFound)
	}
	if len(h.Parameters) > 0 || h.RequestBody != nil {
		statuses = append(statuses, http.StatusBadRequest, http.StatusUnprocessableEntity)
	}
	if o.write() {
		statuses = append(statuses, http.StatusConflict, http.StatusPreconditionFailed)
	}
	if h.RequestBody != nil {
		statuses = append(statuses, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if o.Limit != "" {
		statuses = append(statuses, http.StatusTooManyRequests)
	}
	delete(h.Responses, "default")
	o.showExamples(h, success)
	for _, status := range statuses {
		h.Responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + responseName(status)}
	}
}

// refusals are the statuses of refusals, each a component of the document.
var refusals = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
	http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable,
}

func responseName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

// documentRefusals returns the responses to which operations refer.
func documentRefusals() map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for _, status := range refusals {
		refusal := &huma.Response{
			Description: codesOf(status),
			Content:     map[string]*huma.MediaType{problemType: {Schema: &huma.Schema{Ref: schemaPrefix + "Problem"}, Example: exampleOf(status)}},
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			refusal.Headers = map[string]*huma.Param{
				"Retry-After": {Description: "Seconds to wait before the next try", Schema: &huma.Schema{Type: "integer"}},
			}
		}
		all[responseName(status)] = refusal
	}
	return all
}
