package api

import (
	"errors"
	"fmt"
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

// read reads the body, up to the operation's limit.
func (c *call) read() (err error) {
	if c.r.ContentLength > c.op.MaxBody {
		return errBodyLarge
	}
	if c.r.ContentLength != 0 && !isJSON(c.r.Header) {
		return problemOf(http.StatusUnsupportedMediaType)
	}
	c.body, err = io.ReadAll(io.LimitReader(c.r.Body, c.op.MaxBody+1))
	switch {
	case int64(len(c.body)) > c.op.MaxBody:
		return errBodyLarge
	case err != nil:
		return broken(err)
	}
	c.print.part(c.body)
	return nil
}

// broken returns the refusal of an interrupted body.
func broken(err error) error {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return problemOf(http.StatusRequestTimeout)
	}
	return errBroken
}

// tee passes the body to huma, within the limit and through the fingerprint.
func (c *call) tee() error {
	if c.r.ContentLength > c.op.MaxBody {
		return errBodyLarge
	}
	c.r.Body = http.MaxBytesReader(c.ResponseWriter, c.r.Body, c.op.MaxBody)
	if c.print != nil {
		c.r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(c.r.Body, c.print), c.r.Body}
	}
	return nil
}

// release closes the call's files.
func (c *call) release() {
	c.discard()
	if c.answering != nil {
		c.answering.discard()
		c.answering = nil
	}
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
	o.check(in)
	o.input = in
	field, hasBody := in.FieldByName("Body")
	_, raw := in.FieldByName("RawBody")
	if hasBody && !raw {
		o.body = &body{
			index: field.Index, required: field.Type.Kind() != reflect.Pointer, strict: o.StrictBody, readOnly: o.ReadOnly,
			registry: a.huma.OpenAPI().Components.Schemas, schema: o.schema, objects: map[reflect.Type]*object{},
		}
		o.body.plan(field.Type, o.schema)
	}
	switch {
	case o.OptionalAuth:
		o.entry = append(o.entry, ifGiven((*call).authenticate))
	case !o.Public:
		o.entry = append(o.entry, (*call).authenticate)
	}
	if a.limiter != nil && !o.Refusals {
		o.entry = append(o.entry, (*call).limit)
	}
	switch {
	case o.OptionalAuth:
		o.entry = append(o.entry, ifGiven((*call).enter))
	case !o.Public:
		o.entry = append(o.entry, (*call).enter, (*call).permit)
	}
	if a.config.Admit != nil && o.write() {
		o.entry = append(o.entry, func(c *call) error { return a.config.Admit(c.ctx, o.Op) })
	}
	if o.StrictQuery {
		o.steps = append(o.steps, (*call).strictQuery)
	}
	if len(o.Reads) > 0 {
		o.steps = append(o.steps, (*call).freshness)
	}
	o.steps = append(o.steps, (*call).preferences)
	if o.write() {
		o.steps = append(o.steps, (*call).conditions)
	}
	switch {
	case o.body != nil:
		o.steps = append(o.steps, (*call).read)
	case o.file != nil:
		o.steps = append(o.steps, (*call).receive)
	case raw:
		o.steps = append(o.steps, (*call).tee)
	}
}

// check panics on inputs that huma would silently leave empty.
func (o *operation) check(in reflect.Type) {
	if o.query == nil {
		o.query = map[string]bool{}
	}
	for f := range in.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("query"), ",")
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			if !f.IsExported() {
				panic("operation " + o.ID + ": the embedded " + f.Name + " must be exported, or its fields stay empty")
			}
			o.check(f.Type)
		case name != "":
			o.query[name] = true
			readable(o.ID, f)
		case f.Tag.Get("path") != "":
			readable(o.ID, f)
		}
	}
}

// readable panics on parameters that huma would misread. Huma truncates numbers with fewer than 64 bits, and ignores the UnmarshalText of
// types with an underlying number or string: a Money of 12 would become 12 paise.
func readable(id string, f reflect.StructField) {
	t := f.Type
	wrapper := reflect.PointerTo(t).Implements(paramWrapper)
	if wrapper && t.Kind() == reflect.Struct {
		if value, ok := t.FieldByName("Value"); ok {
			t = value.Type
		}
	}
	own := reflect.PointerTo(t)
	ownText := own.Implements(textUnmarshaler)
	switch {
	case own.Implements(jsonUnmarshaler) && !ownText:
		panic(fmt.Sprintf("operation %s: the parameter %s has no UnmarshalText", id, f.Name))
	case wrapper && ownText:
		return
	case ownText && t.Kind() != reflect.Struct && t.Kind() != reflect.Array:
		panic(fmt.Sprintf("operation %s: the parameter %s must be an api.Optional; otherwise its UnmarshalText is ignored", id, f.Name))
	}
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		panic(fmt.Sprintf("operation %s: the parameter %s must have 64 bits; otherwise it is truncated", id, f.Name))
	default:
	}
}

// documenter documents the operation with its body. Then it makes huma accept an empty body, because this package reads the body first.
type documenter struct {
	huma.API

	op *operation
}

func (d documenter) DocumentOperation(op *huma.Operation) {
	documented := *op
	d.op.document(&documented)
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
