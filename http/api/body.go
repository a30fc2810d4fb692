package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"bahi/domain/fault"
)

var (
	errNoBody    = fault.New(fault.Malformed, "A request body is required")
	errBroken    = fault.New(fault.Malformed, "The request body broke off")
	errBodyLarge = fault.New(fault.TooLarge, "The request body is too large")
)

// read reads the body, up to the operation's limit. Huma gets a raw one.
func (c *call) read() (err error) {
	if c.r.ContentLength > c.op.MaxBody {
		return errBodyLarge
	}
	if c.r.ContentLength != 0 && !c.op.raw && !isJSON(c.r.Header) {
		return ProblemOf(http.StatusUnsupportedMediaType)
	}
	c.body, err = io.ReadAll(io.LimitReader(c.r.Body, c.op.MaxBody+1))
	switch {
	case int64(len(c.body)) > c.op.MaxBody:
		return errBodyLarge
	case err != nil:
		return broken(err)
	}
	c.r.Body = http.NoBody
	if c.op.raw {
		c.r.Body = io.NopCloser(bytes.NewReader(c.body))
	}
	c.print.part(c.body)
	return nil
}

// broken returns the refusal of an interrupted body.
func broken(err error) error {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return ProblemOf(http.StatusRequestTimeout)
	}
	return errBroken
}

// isJSON reports whether the body is unencoded JSON, or has no type.
func isJSON(h http.Header) bool {
	if encoding := h["Content-Encoding"]; len(encoding) > 0 && !strings.EqualFold(encoding[0], "identity") {
		return false
	}
	given := h["Content-Type"]
	if len(given) == 0 {
		return true
	}
	kind, parameters, _ := mime.ParseMediaType(given[0]) // "" if it is invalid
	ofJSON := strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	charset := parameters["charset"]
	return (kind == jsonType || ofJSON) && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// finish completes the operation with the type of the input after huma has analysed the type.
func (o *operation) finish(a *API, in reflect.Type) {
	o.input, o.query = in, map[string]bool{}
	for _, f := range reflect.VisibleFields(in) {
		name, _, _ := strings.Cut(f.Tag.Get("query"), ",")
		o.query[name] = name != ""
	}
	field, hasBody := in.FieldByName("Body")
	if _, o.raw = in.FieldByName("RawBody"); hasBody && !o.raw {
		o.body = &body{
			index: field.Index, required: field.Type.Kind() != reflect.Pointer, strict: o.StrictBody, readOnly: o.ReadOnly,
			registry: a.huma.OpenAPI().Components.Schemas, schema: o.schema, objects: map[reflect.Type]*object{},
		}
		o.body.plan(field.Type, o.schema)
	}
}

// documenter documents the operation with its body. Then it makes huma accept an empty body, because this package reads the body first.
type documenter struct {
	huma.API

	op *operation
}

func (d documenter) DocumentOperation(op *huma.Operation) {
	documented := *op
	documented.Parameters = d.op.called(op.Parameters)
	d.OpenAPI().AddOperation(&documented)
	if op.RequestBody != nil {
		if content := op.RequestBody.Content[jsonType]; content != nil {
			d.op.schema = content.Schema
		}
		emptied := *op.RequestBody
		emptied.Required = false
		op.RequestBody = &emptied
	}
}
