package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Question is a request to find a value in another author's data.
type Question struct {
	Rules  string // instructions to the model
	Data   string // passed as data, see [quoted]
	Images []Image
}

// format is a way to request the answer's form. The best one is first.
type format int

const (
	withSchema format = iota
	anyObject
	plainText
)

const (
	maxObjects = 32    // characters of a text that are searched
	maxQuoted  = 4_000 // bytes of a bad answer that are sent back
)

// Extract requests a value of type T. The fields of T define the schema: a pointer may be null or absent, other fields may not. check may
// refuse the value. Extract then requests another one, once, with the text of check's error. The error is [ErrNoModel], an [*Error], or
// the context's.
//
// A server may refuse a schema, and even a request for JSON. Extract uses the best form that the server accepts, and remembers it.
func Extract[T any](ctx context.Context, c *Client, q Question, check func(T) error) (value T, err error) {
	schema, err := schemaOf[T]()
	if err != nil {
		return value, err
	}
	p := completionRequest{}
	switch {
	case len(q.Images) > 0 && c.Sees():
		p.Model = c.config.VisionModel
	case len(q.Images) == 0 && c.Chats():
		p.Model = c.config.Model
	default:
		return value, ErrNoModel
	}
	data, rule := quoted(q.Data)
	asked := []Message{{Role: System, Text: q.Rules + "\n" + rule}, {Role: User, Text: data, Images: q.Images}}
	said, by, err := c.askInForm(ctx, p, asked, schema)
	if err != nil {
		return value, err
	}
	value, wrong := valueIn(said.Text, schema, check)
	if wrong == nil {
		return value, nil
	}
	asked = append(asked, Message{Role: Assistant, Text: cut(said.Text)},
		Message{Role: User, Text: "That answer cannot be used: " + cut(wrong.Error()) + "\nAnswer again, with the JSON object only."})
	if said, err = c.complete(ctx, inForm(p, asked, schema, by)); err != nil {
		return value, err
	}
	if value, wrong = valueIn(said.Text, schema, check); wrong != nil {
		return value, &Error{Reason: "sent a value that cannot be used"}
	}
	return value, nil
}

// askInForm tries one form after another until the server accepts one.
func (c *Client) askInForm(ctx context.Context, p completionRequest, asked []Message, schema *jsonschema.Resolved) (said Answer,
	by format, err error) {
	for by = c.habitsOf(p.Model).format; ; by++ {
		said, err = c.complete(ctx, inForm(p, asked, schema, by))
		if by < plainText && refusesForm(err) {
			continue
		}
		if err == nil {
			c.note(p.Model, func(h *habits) { h.format = by })
		}
		return said, by, err
	}
}

// refusesForm reports whether a server refused the form of the answer, or gave no reason.
func refusesForm(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Param == "" || strings.HasPrefix(e.Param, "response_format")) &&
		slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented}, e.Status)
}

// inForm returns the request for an answer in a form.
func inForm(p completionRequest, asked []Message, schema *jsonschema.Resolved, by format) completionRequest {
	asked = slices.Clone(asked)
	switch by {
	case withSchema:
		p.ResponseFormat = &responseFormat{"json_schema", &answerSchema{Name: "answer", Strict: true, Schema: schema.Schema()}}
	case anyObject:
		p.ResponseFormat = &responseFormat{Type: "json_object"}
	case plainText:
	}
	if by != withSchema {
		text, _ := json.Marshal(schema.Schema()) //nolint:errchkjson // it was made from a type
		asked[0].Text += "\nAnswer with one JSON object and nothing else. Its JSON schema: " + string(text)
	}
	p.Messages = nil
	for _, m := range asked {
		p.Messages = append(p.Messages, m.param())
	}
	return p
}

// valueIn returns the first value of a text that has the requested form. Models add thoughts, Markdown fences and apologies.
func valueIn[T any](text string, schema *jsonschema.Resolved, check func(T) error) (value T, err error) {
	err = errors.New("no JSON object")
	for range maxObjects {
		from := strings.IndexByte(text, '{')
		if from < 0 {
			return value, err
		}
		text = text[from:]
		object := json.NewDecoder(strings.NewReader(text))
		var raw json.RawMessage
		if broken := object.Decode(&raw); broken != nil {
			text, err = text[1:], fmt.Errorf("invalid JSON object: %w", broken)
			continue
		}
		text = text[object.InputOffset():]
		if value, err = valueOf(raw, schema, check); err == nil {
			return value, nil
		}
	}
	return value, err
}

func valueOf[T any](raw []byte, schema *jsonschema.Resolved, check func(T) error) (value T, err error) {
	var generic any
	if err := json.Unmarshal(raw, &generic); err != nil {
		return value, err
	}
	fillNulls(schema.Schema(), generic)
	if err := schema.Validate(generic); err != nil {
		return value, err
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, err
	}
	return value, check(value)
}

// fillNulls adds the absent properties that may be null: servers that ignore schemas omit them.
func fillNulls(s *jsonschema.Schema, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, p := range s.Properties {
			if _, has := v[name]; !has && slices.Contains(p.Types, "null") {
				v[name] = nil
			}
			fillNulls(p, v[name])
		}
	case []any:
		for _, one := range v {
			if s.Items != nil {
				fillNulls(s.Items, one)
			}
		}
	}
}

// schemaOf returns the schema of a type, as strictly as servers require.
func schemaOf[T any]() (*jsonschema.Resolved, error) {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.Number](): {Type: "number"}, // exact, unlike a float
	}})
	if err != nil {
		return nil, err
	}
	withoutNullLists(s)
	return s.Resolve(nil)
}

// withoutNullLists removes null from the types of lists. The library adds it for Go's nil slices.
func withoutNullLists(s *jsonschema.Schema) {
	if slices.Equal(s.Types, []string{"null", "array"}) {
		s.Type, s.Types = "array", nil
	}
	if s.Items != nil {
		withoutNullLists(s.Items)
	}
	for _, p := range s.Properties {
		withoutNullLists(p)
	}
}

func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxQuoted)], "") }
