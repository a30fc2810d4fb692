package api

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"bahi/domain/fault"
	"bahi/domain/patch"
)

const (
	maxDepth = 64
	maxWrong = 100 // maximum faults in one response (CONTRACT.md 0.8)
	maxNamed = 80  // bytes of an unknown name that a response repeats

	uuidLength   = 36
	wantUUID     = "expected a UUID such as 6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	wantTime     = "expected a moment such as 2025-03-31T09:15:00Z"
	wantText     = "expected a text"
	notNull      = "must not be null"
	noNUL        = "NUL is not allowed" // Postgres cannot store it
	unknownField = "unknown field"
	wholeBody    = "body" // the path of a fault of the body itself
)

// decoder reads a body into a value and collects every fault with its path. json/v2 alone would stop at the first value of a wrong type and
// at the first unknown field, and huma would check a copy with floats as numbers. So the decoder reads tokens and single values with
// json/v2, and checks the limits of huma's schemas, which are in the document.
type decoder struct {
	*jsontext.Decoder

	body   *body
	name   []byte
	wrong  []fault.Field
	unsure []string
}

// decode reads data into the value, which must be settable. It returns a fault of kind Malformed, or of kind Invalid with a list of fields.
// unsure has the paths of absent fields in objects with an unknown field, because the unknown field may be one of these misspelt.
func (b *body) decode(data []byte, into reflect.Value) (unsure []string, err error) {
	text := jsontext.NewDecoder(bytes.NewBuffer(data))
	if err := wellFormed(text); err != nil {
		return nil, err
	}
	text.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)) // wellFormed has checked for duplicates
	d := decoder{Decoder: text, body: b}
	d.value(into, b.schema)
	if d.wrong == nil {
		return nil, nil
	}
	return d.unsure, fault.Fields(d.wrong...)
}

// wellFormed returns a fault unless the text is one JSON value (RFC 8259) without equal keys and with limited nesting. The limit also
// applies to values that handlers store undecoded, which other programs must be able to read.
func wellFormed(text *jsontext.Decoder) error {
	for depth := 1; depth > 0; depth = text.StackDepth() {
		if _, err := text.ReadToken(); err != nil {
			return malformed(err)
		}
		if text.StackDepth() > maxDepth {
			return fault.New(fault.Malformed, "Malformed JSON: it is nested too deeply")
		}
	}
	_, err := text.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		err = &jsontext.SyntacticError{ByteOffset: text.InputOffset(), Err: errors.New("something follows the value")}
	}
	return malformed(err)
}

// malformed returns the fault of a body that is not JSON.
func malformed(err error) error {
	where, why := "", err.Error()
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		where, why = fmt.Sprintf(" at byte %d", s.ByteOffset), s.Err.Error()
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		why = "two equal keys"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		why = "it ends too early"
	}
	return fault.Newf(fault.Malformed, "Malformed JSON%s: %s", where, why)
}

// where returns the path of the value that was read last, or of a field in it.
func (d *decoder) where(field ...string) string {
	var path string
	level := 0
	for name := range d.StackPointer().Tokens() {
		level++
		if kind, _ := d.StackIndex(level); kind == jsontext.KindBeginArray {
			path += "[" + name + "]"
		} else {
			path = joined(path, shortened(name))
		}
	}
	for _, name := range field {
		path = joined(path, name)
	}
	return cmp.Or(path, wholeBody)
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func shortened(name string) string {
	if len(name) <= maxNamed {
		return name
	}
	return strings.ToValidUTF8(name[:maxNamed], "") + "…"
}

// fail adds a fault of the value that was read last, or of a field in it.
func (d *decoder) fail(message string, field ...string) {
	if len(d.wrong) < maxWrong {
		d.wrong = append(d.wrong, fault.Field{Field: d.where(field...), Message: message})
	}
}

// raw reads the next value unchanged, and token the next token. The body is well-formed, so neither fails.
func (d *decoder) raw() jsontext.Value {
	raw, _ := d.ReadValue()
	return raw
}

func (d *decoder) token() jsontext.Token {
	token, _ := d.ReadToken()
	return token
}

func (d *decoder) refuse(message string) {
	d.raw()
	d.fail(message)
}

// value reads the next value. The schema is nil if there is none.
func (d *decoder) value(v reflect.Value, s *huma.Schema) {
	s = d.body.resolve(s)
	into := v.Addr().Interface()
	_, moment := into.(*time.Time)
	_, isText := into.(encoding.TextUnmarshaler)
	_, isOwn := into.(json.Unmarshaler)
	kind, given := v.Kind(), d.PeekKind()
	first, wanted := expected(kind, isText, into)
	nilable := kind == reflect.Pointer || kind == reflect.Map || kind == reflect.Slice || kind == reflect.Interface
	switch {
	case isPatch(v.Type()):
		d.patch(v, s)
	case isOwn && !moment:
		d.leaf(v, s, "")
	case given == jsontext.KindNull && nilable && !isText:
		d.raw()
		v.SetZero()
	case given == jsontext.KindNull:
		d.refuse(notNull)
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem(), s)
	case kind == reflect.Interface:
		d.any(v)
	case given != first && (first != jsontext.KindTrue || given != jsontext.KindFalse):
		d.refuse(wanted)
	case isText:
		d.leaf(v, nil, wanted)
	case kind == reflect.Struct:
		d.object(v)
	case kind == reflect.Map:
		d.dict(v)
	case kind == reflect.Slice:
		d.list(v, s)
	case kind == reflect.String:
		d.text(v, s)
	default:
		d.leaf(v, s, wanted)
	}
}

// expected returns the first token of a value's JSON, and its name in faults.
func expected(kind reflect.Kind, isText bool, into any) (jsontext.Kind, string) {
	switch {
	case isText:
		switch into.(type) {
		case *uuid.UUID:
			return jsontext.KindString, wantUUID
		case *time.Time:
			return jsontext.KindString, wantTime
		}
		return jsontext.KindString, wantText
	case kind == reflect.Struct || kind == reflect.Map:
		return jsontext.KindBeginObject, "expected an object"
	case kind == reflect.Slice:
		return jsontext.KindBeginArray, "expected a list"
	case kind == reflect.String:
		return jsontext.KindString, wantText
	case kind == reflect.Bool:
		return jsontext.KindTrue, "expected true or false"
	case kind >= reflect.Int && kind <= reflect.Int64:
		return jsontext.KindNumber, "expected a whole number"
	case kind >= reflect.Uint && kind <= reflect.Uint64:
		return jsontext.KindNumber, "expected a whole number that is not negative"
	default:
		return jsontext.KindNumber, "expected a number"
	}
}

// members reads an object. each reads a value; its name is valid until then.
func (d *decoder) members(each func(name []byte)) {
	d.token() // {
	for d.PeekKind() == jsontext.KindString {
		d.name, _ = jsontext.AppendUnquote(d.name[:0], d.raw())
		each(d.name)
	}
	d.token() // }
}

func (d *decoder) object(v reflect.Value) {
	o := d.body.objects[v.Type()]
	seen, strange := make([]bool, len(o.fields)), false
	d.members(func(name []byte) {
		i, known := o.byName[string(name)]
		if !known {
			d.raw()
			if d.body.strict && !slices.Contains(d.body.readOnly, indices.ReplaceAllString(d.where(), "")) {
				strange = true
				d.fail(unknownField)
			}
			return
		}
		seen[i] = true
		if f := o.fields[i]; !f.required && !f.own && d.PeekKind() == jsontext.KindNull { // null equals absent
			d.raw()
		} else {
			d.value(v.FieldByIndex(f.index), f.schema)
		}
	})
	for i, f := range o.fields {
		switch {
		case seen[i]:
		case f.required:
			d.fail("is required", f.name)
		case strange:
			d.unsure = append(d.unsure, d.where(f.name))
		}
	}
}

func (d *decoder) dict(v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.members(func(name []byte) {
		key, item := reflect.ValueOf(string(name)).Convert(v.Type().Key()), reflect.New(v.Type().Elem()).Elem()
		d.value(item, nil)
		v.SetMapIndex(key, item)
	})
}

// list reads a list. It only counts items beyond the limit.
func (d *decoder) list(v reflect.Value, s *huma.Schema) {
	least, most, items := 0, math.MaxInt, (*huma.Schema)(nil)
	if s != nil {
		least, most, items = or(s.MinItems, least), or(s.MaxItems, most), s.Items
	}
	d.token() // [
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	count := 0
	for ; d.PeekKind() != jsontext.KindEndArray; count++ {
		if count >= most {
			d.raw()
			continue
		}
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		d.value(v.Index(count), items)
	}
	d.token() // ]
	switch {
	case count < least:
		d.fail(fmt.Sprintf("at least %d items", least))
	case count > most:
		d.fail(fmt.Sprintf("at most %d items", most))
	}
}

func or(limit *int, otherwise int) int {
	if limit == nil {
		return otherwise
	}
	return *limit
}

func (d *decoder) text(v reflect.Value, s *huma.Schema) {
	text := d.token().String()
	if strings.IndexByte(text, 0) >= 0 {
		d.fail(noNUL)
		return
	}
	v.SetString(text)
	if s == nil {
		return
	}
	length, least, most := utf8.RuneCountInString(text), or(s.MinLength, 0), or(s.MaxLength, math.MaxInt)
	switch {
	case length < least && least == 1:
		d.fail("must not be empty")
	case length < least:
		d.fail(fmt.Sprintf("at least %d characters", least))
	case length > most:
		d.fail(fmt.Sprintf("at most %d characters", most))
	case !d.oneOf(text, s) || s.Pattern == "" && s.Format == "":
	default:
		var result huma.ValidateResult
		rest := *s
		rest.Enum, rest.MinLength, rest.MaxLength = nil, nil, nil
		huma.Validate(d.body.registry, &rest, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, text, &result)
		for _, err := range result.Errors {
			if detail, ok := err.(huma.ErrorDetailer); ok {
				d.fail(detail.ErrorDetail().Message)
			}
		}
	}
}

// oneOf reports whether the schema lists the value, or lists none.
func (d *decoder) oneOf(text string, s *huma.Schema) bool {
	allowed := make([]string, len(s.Enum))
	for i, value := range s.Enum {
		allowed[i] = fmt.Sprint(value)
	}
	if s.Enum == nil || slices.Contains(allowed, text) {
		return true
	}
	d.fail("expected one of " + strings.Join(allowed, ", "))
	return false
}

// number checks the limits of a number, exactly.
func (d *decoder) number(digits string, s *huma.Schema) {
	if s == nil || !d.oneOf(digits, s) || s.Minimum == nil && s.Maximum == nil {
		return
	}
	value, err := decimal.NewFromString(digits)
	switch {
	case err != nil:
		d.fail("expected a number")
	case s.Minimum != nil && value.LessThan(decimal.NewFromFloat(*s.Minimum)):
		d.fail("must be at least " + decimal.NewFromFloat(*s.Minimum).String())
	case s.Maximum != nil && value.GreaterThan(decimal.NewFromFloat(*s.Maximum)):
		d.fail("must be at most " + decimal.NewFromFloat(*s.Maximum).String())
	}
}

// any reads a value of any type. Numbers keep their digits.
func (d *decoder) any(v reflect.Value) {
	raw := d.raw()
	if bytes.Contains(raw, []byte(`\u0000`)) { // this also refuses an escaped backslash before u0000, which is rare
		d.fail(noNUL)
		return
	}
	inner := json.NewDecoder(bytes.NewReader(raw))
	inner.UseNumber()
	if inner.Decode(v.Addr().Interface()) != nil {
		d.fail("cannot be read")
	}
}

// patch reads a patch.Field: its value and its state.
func (d *decoder) patch(v reflect.Value, s *huma.Schema) {
	switch {
	case d.PeekKind() != jsontext.KindNull:
		v.Field(1).SetUint(uint64(patch.Given))
		d.value(v.Field(0), s)
	case s != nil && s.Nullable:
		d.raw()
		v.Field(1).SetUint(uint64(patch.Null))
	default:
		d.refuse(notNull)
	}
}

// leaf reads a value of a plain type, or of a type that decodes itself.
func (d *decoder) leaf(v reflect.Value, s *huma.Schema, wanted string) {
	raw, into := d.raw(), v.Addr().Interface()
	_, isText := into.(encoding.TextUnmarshaler)
	_, isOwn := into.(json.Unmarshaler)
	ours := (isText || isOwn) && strings.HasPrefix(v.Type().PkgPath(), "bahi/")
	err := v2.Unmarshal(raw, into)
	if outer, ok := errors.AsType[*v2.SemanticError](err); ok && outer.Err != nil {
		err = outer.Err
	}
	f, listed := errors.AsType[*fault.Error](err)
	if err != nil { // the error of a library quotes the input
		switch err.(type) { //nolint:errorlint // only the outermost message counts
		case *json.SyntaxError, *json.UnmarshalTypeError:
			ours, wanted = false, ""
		}
	}
	switch {
	case listed && len(f.Fields) > 0:
		for _, inner := range f.Fields {
			d.fail(inner.Message, inner.Field)
		}
	case err != nil && ours:
		d.fail(err.Error())
	case err != nil:
		d.fail(cmp.Or(wanted, "cannot be read"))
	case raw.Kind() == jsontext.KindNull && strings.HasSuffix(v.Type().PkgPath(), "domain/unit"): // a quantity would treat it as absent
		d.fail(notNull)
	case wanted == wantUUID && utf8.RuneCount(raw) != uuidLength+len(`""`):
		d.fail(wantUUID)
	case raw.Kind() == jsontext.KindNumber, raw.Kind() == jsontext.KindTrue, raw.Kind() == jsontext.KindFalse:
		d.number(string(raw), s)
	}
}
