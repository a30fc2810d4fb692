package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// document has the operations of the OpenAPI document by their ids.
type document map[string]*operation

// operation has the parts of an API operation that pages use.
type operation struct {
	specOperation

	Method, Path string
	Public       bool // it needs no credential
	DryRun       bool // it documents the header Bahi-Dry-Run
	Match        bool // … If-Match
	Key          bool // … Idempotency-Key
	Params       []parameter
	Headers      []parameter
	Body         *schema // nil: no body, or one that no form can produce
	Example      any     // of the body
	Files        bool    // the body is a multipart form
	Raw          bool    // the body is neither JSON nor a form
	Answers      []answer
	Refusals     []answer
	Answer       *schema // of a success; nil: none in JSON
}

// answer is a response of an operation.
type answer struct {
	Status, Description string
	Kinds               []string // media types
	Headers             []parameter
	Schema              *schema // nil: not JSON
	Example             any
}

// Codes returns the codes in the description of an error, such as "Conflict. `code`: conflict, email_taken".
func (a answer) Codes() []string {
	_, codes, _ := strings.Cut(a.Description, "`code`: ")
	return strings.Split(codes, ", ")
}

// parameter is a parameter in the path, in the query or in a header.
type parameter struct {
	In string
	property
}

// schema describes a value. Its kind is the kind of the input in a form: see [field].
type schema struct {
	Kind, Description  string
	Format             string // of a text, such as date-time
	Unit               string // ₹, g, %, or none
	Required           bool   // in the object that has it
	ReadOnly, Nullable bool
	Secret             bool // in no response
	Paise              bool // the value is in paise, the input in rupees
	Fixed              bool // it is given once and cannot change
	On                 bool // ticked by default
	Options            []string
	MaxLength          int
	Ends               func(day string) string // of an input for a date in place of a time: the end of the day
	List               string                  // id of the datalist of a text that names a record
	Properties         []property              // in the order in which they are drawn
	Items              *schema                 // of an array or a map
	Example            any
}

// property is a named value of an object.
type property struct {
	Name string
	*schema
}

// of returns the schema of a property, nil for none.
func (s *schema) of(name string) *schema {
	for _, p := range s.Properties {
		if p.Name == name {
			return p.schema
		}
	}
	return nil
}

// without returns the schema of an object without some properties.
func (s *schema) without(names ...string) *schema {
	rest := *s
	rest.Properties = slices.DeleteFunc(slices.Clone(s.Properties), func(p property) bool { return slices.Contains(names, p.Name) })
	return &rest
}

// The document as written.
type (
	specification struct {
		Paths      map[string]map[string]specOperation
		Components struct {
			Schemas   specSchemas
			Responses map[string]specResponse
		}
	}
	specOperation struct {
		ID                   string `json:"operationId"`
		Summary, Description string
		Tags                 []string
		Security             []map[string]any
		Permission           string `json:"x-permission"` // such as "ledger:write", or "operator"; empty: everybody
		Parameters           []specParameter
		Body                 struct {
			Content map[string]struct {
				Schema  specSchema
				Example any
			}
		} `json:"requestBody"`
		Responses map[string]specResponse
	}
	specParameter struct {
		In, Name, Description string
		Required              bool
		Schema                specSchema
	}
	specResponse struct {
		Ref         string `json:"$ref"`
		Description string
		Headers     map[string]specParameter
		Content     map[string]struct {
			Schema  specSchema
			Example any
		}
	}
	specSchema struct {
		Ref         string `json:"$ref"`
		Type        any    // a name, or an array of names of which one may be null
		Format      string
		Description string
		Enum        []any
		AnyOf       []specSchema
		MultipleOf  json.Number
		MaxLength   int
		ReadOnly    bool
		Properties  specSchemas
		Required    []string
		Items       *specSchema
		Additional  json.RawMessage `json:"additionalProperties"` // a boolean, or the schema of a map's values
		Examples    []any
	}
	specSchemas map[string]specSchema
)

// readDocument reads an OpenAPI document.
func readDocument(spec []byte) (document, error) {
	var s specification
	if err := decode(spec, &s); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	d := document{}
	for path, methods := range s.Paths {
		for method, from := range methods {
			d[from.ID] = s.operation(strings.ToUpper(method), path, from)
		}
	}
	return d, nil
}

func (s *specification) operation(method, path string, from specOperation) *operation {
	all := s.Components.Schemas
	o := &operation{
		specOperation: from, Method: method, Path: path,
		Public: len(from.Security) == 0 || slices.ContainsFunc(from.Security, func(one map[string]any) bool { return len(one) == 0 }),
	}
	headers := map[string]*bool{"Bahi-Dry-Run": &o.DryRun, "If-Match": &o.Match, "Idempotency-Key": &o.Key}
	for _, p := range from.Parameters {
		if p.In != "header" {
			o.Params = append(o.Params, parameter{p.In, all.property(p)})
			continue
		}
		o.Headers = append(o.Headers, parameter{p.In, all.property(p)})
		if documented := headers[p.Name]; documented != nil {
			*documented = true
		}
	}
	for _, media := range []string{"multipart/form-data", "application/json"} {
		if body, has := from.Body.Content[media]; has {
			o.Body, o.Example, o.Files = all.read("", body.Schema, 0), withFirstIDs(body.Example), media != "application/json"
		}
	}
	_, o.Raw = from.Body.Content["application/octet-stream"]
	for _, status := range slices.Sorted(maps.Keys(from.Responses)) {
		response := from.Responses[status]
		if response.Ref != "" {
			response = s.Components.Responses[lastOf(response.Ref)]
		}
		a := answer{Status: status, Description: response.Description, Kinds: slices.Sorted(maps.Keys(response.Content))}
		if status >= "400" {
			o.Refusals = append(o.Refusals, a)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(response.Headers)) {
			of := response.Headers[name]
			of.Name = name
			a.Headers = append(a.Headers, parameter{"", all.property(of)})
		}
		if content, has := response.Content["application/json"]; has {
			a.Schema, a.Example = all.read("", content.Schema, 0), content.Example
			o.Answer = cmp.Or(o.Answer, a.Schema)
		}
		o.Answers = append(o.Answers, a)
	}
	return o
}

// lastOf returns the name in a reference.
func lastOf(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

const maxDepth = 8 // of objects in objects; deeper values are any JSON

// property returns a parameter or a header.
func (all specSchemas) property(p specParameter) property {
	of := all.read(p.Name, p.Schema, 0)
	of.Required, of.Description = p.Required, cmp.Or(p.Description, of.Description)
	return property{p.Name, of}
}

// read returns the schema of a value with a name.
func (all specSchemas) read(name string, outer specSchema, depth int) *schema {
	from, nullable := all.resolve(outer)
	s := &schema{Nullable: nullable, ReadOnly: outer.ReadOnly || from.ReadOnly, MaxLength: from.MaxLength, Format: from.Format}
	s.Description = cmp.Or(outer.Description, from.Description)
	s.Fixed = s.Description == "Cannot change"
	s.Secret = secret.MatchString(name) || strings.Contains(s.Description, "ever shown again")
	if len(from.Examples) > 0 {
		s.Example = from.Examples[0]
	}
	if depth < maxDepth {
		for key, of := range from.Properties {
			p := property{key, all.read(key, of, depth+1)}
			p.Required = slices.Contains(from.Required, key)
			s.Properties = append(s.Properties, p)
		}
		slices.SortFunc(s.Properties, func(a, b property) int { return cmp.Or(rank(a.Name)-rank(b.Name), strings.Compare(a.Name, b.Name)) })
		var values specSchema
		if from.Items != nil {
			s.Items = all.read("", *from.Items, depth+1)
		} else if strings.HasPrefix(string(from.Additional), "{") && json.Unmarshal(from.Additional, &values) == nil {
			s.Items = all.read("", values, depth+1)
		}
	}
	switch s.Kind = kindOf(name, from, s); s.Kind {
	case "select":
		for _, option := range from.Enum {
			if option != nil {
				s.Options = append(s.Options, fmt.Sprint(option))
			}
		}
	case "number":
		s.Unit = unitOf(name, s.Description, from.MultipleOf.String())
	case "tick":
		s.On = strings.Contains(s.Description, "true by default")
	case "whole":
		if s.Paise = name == "price_amount"; s.Paise {
			s.Unit, s.Description = "₹", ""
		}
	}
	return s
}

// resolve follows references. If one of two schemas is null, it returns the other.
func (all specSchemas) resolve(s specSchema) (_ specSchema, nullable bool) {
	for range maxDepth {
		nullable = nullable || s.is("null")
		null := slices.IndexFunc(s.AnyOf, func(one specSchema) bool { return one.is("null") })
		switch {
		case s.Ref != "":
			s = all[lastOf(s.Ref)]
		case null >= 0 && len(s.AnyOf) == 2:
			s, nullable = s.AnyOf[1-null], true
		default:
			return s, nullable
		}
	}
	return specSchema{}, nullable
}

func (s specSchema) is(name string) bool {
	several, _ := s.Type.([]any)
	return s.Type == name || slices.Contains(several, any(name))
}

func kindOf(name string, from specSchema, s *schema) string {
	switch {
	case from.Format == "binary":
		return "file"
	case from.is("string") && len(from.Enum) > 0:
		return "select"
	case from.is("string") && from.Format == "date":
		return "date"
	case name == "scheduledAt" && from.Format == "":
		return "moment"
	case from.is("string") && s.Secret:
		return "secret"
	case from.is("string") && s.MaxLength > 200 && !oneLine.MatchString(name):
		return "area"
	case from.is("string"):
		return "text"
	case from.is("number"):
		return "number"
	case from.is("integer"):
		return "whole"
	case from.is("boolean"):
		return "tick"
	case from.is("array") && s.Items != nil && s.Items.Kind == "group":
		return "lines"
	case from.is("array") && s.Items != nil && !slices.Contains([]string{"lines", "list", "map", "file"}, s.Items.Kind):
		return "list"
	case from.is("object") && len(s.Properties) > 0:
		return "group"
	case from.is("object") && s.Items != nil:
		return "map"
	default:
		return "json"
	}
}

var (
	secret  = regexp.MustCompile(`(?i)(password|secret|apikey|accesstoken)$`)
	oneLine = regexp.MustCompile(`(?i)(name|url|email|domain|website|line1|apiKey|designation)$`)
)

func unitOf(name, description, multipleOf string) string {
	switch {
	case multipleOf == "0.01":
		return "₹"
	case strings.HasSuffix(name, "weight") || strings.HasPrefix(description, "Grams") || strings.HasPrefix(description, "In grams"):
		return "g"
	case strings.HasSuffix(name, "percent") || name == "touch" || strings.HasPrefix(description, "Percent"):
		return "%"
	default:
		return ""
	}
}

// rank sorts the properties of an object: first dates and sides, then texts, then figures in the order of a bill.
func rank(name string) int {
	texts := []string{
		"client_id", "date", "in_entries", "out_entries", "name", "first_name", "last_name", "title", "item_name", "slip_number", "kind",
	}
	if i := slices.Index(texts, name); i >= 0 {
		return i
	}
	return len(texts) + 1 + slices.Index(append(figures, "description", "metal"), name) // others are between texts and figures
}
