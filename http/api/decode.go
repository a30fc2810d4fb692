package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"

	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"bahi/domain/fault"
	"bahi/domain/patch"
)

const (
	maxDepth = 64
	maxWrong = 100 // faults that one answer lists (CONTRACT.md 0.8)
	maxNamed = 80  // bytes of an unknown name that an answer repeats
)

// decoder reads a JSON body into a value. The library reads the text (RFC 8259): it refuses two equal
// keys, bytes that are not UTF-8 and half of a surrogate pair, which become one fault of kind Malformed.
// The decoder itself collects every fault of a well-formed body, with its path. No library does: they stop at the
// first value of a wrong type and at the first unknown field, or check a copy in which numbers are floats.
type decoder struct {
	input  bytes.Buffer
	json   *jsontext.Decoder
	buffer []byte
	path   []byte
	wrong  []fault.Field
	unsure []string
}

var decoders = sync.Pool{New: func() any { return &decoder{json: new(jsontext.Decoder), path: make([]byte, 0, 64)} }}

// decode reads data into the value, which must be settable. Its error is a fault of kind Malformed, or
// one of kind Invalid that names the fields. Unsure has the paths of absent fields in objects with an unknown field: the
// unknown field may be a misspelt one of them.
func decode(plan *node, data []byte, into reflect.Value) (unsure []string, err error) {
	if tooDeep(data) {
		return nil, fault.New(fault.Malformed, "Malformed JSON: it is nested too deeply")
	}
	d, _ := decoders.Get().(*decoder)
	d.path, d.wrong, d.unsure = d.path[:0], nil, nil
	d.input = *bytes.NewBuffer(data)
	d.json.Reset(&d.input)
	err = d.document(plan, into)
	wrong, unsure := d.wrong, d.unsure
	d.wrong, d.unsure, d.input = nil, nil, bytes.Buffer{}
	if cap(d.buffer) > maxKept {
		d.buffer = nil
	}
	decoders.Put(d)
	switch {
	case err != nil:
		return nil, malformed(err)
	case wrong != nil:
		return unsure, fault.Fields(wrong...)
	}
	return nil, nil
}

func (d *decoder) document(plan *node, into reflect.Value) error {
	if err := d.value(plan, into); err != nil {
		return err
	}
	_, err := d.json.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return &jsontext.SyntacticError{ByteOffset: d.json.InputOffset(), Err: errors.New("something follows the value")}
	}
	return err
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

// tooDeep reports whether brackets are nested deeper than a body needs. Otherwise JSON that a handler stores unread
// would meet the limits of other programs.
func tooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

// fail adds a fault of the value at the path.
func (d *decoder) fail(message string) {
	if len(d.wrong) < maxWrong {
		d.wrong = append(d.wrong, fault.Field{Field: d.where(), Message: message})
	}
}

// wholeBody is the path of a fault of the body itself.
const wholeBody = "body"

func (d *decoder) where() string {
	if len(d.path) == 0 {
		return wholeBody
	}
	return string(d.path)
}

// enter adds a name to the path. It returns the length to cut it back to.
func (d *decoder) enter(name string) int {
	before := len(d.path)
	if before > 0 {
		d.path = append(d.path, '.')
	}
	d.path = append(d.path, name...)
	return before
}

func (d *decoder) enterIndex(i int) int {
	before := len(d.path)
	d.path = append(d.path, '[')
	d.path = strconv.AppendInt(d.path, int64(i), 10)
	d.path = append(d.path, ']')
	return before
}

func (d *decoder) leave(before int) { d.path = d.path[:before] }

func shortened(name string) string {
	if len(name) <= maxNamed {
		return name
	}
	return strings.ToValidUTF8(name[:maxNamed], "") + "…"
}

// value reads one value.
func (d *decoder) value(n *node, v reflect.Value) error {
	given := d.json.PeekKind()
	if given == 'f' {
		given = 't'
	}
	switch {
	case n.kind == ownJSON:
		return d.own(n, v)
	case n.kind == patched:
		return d.patched(n, v, given == 'n')
	case given == 'n':
		return d.null(n, v)
	case n.kind == pointer:
		if v.IsNil() {
			v.Set(reflect.New(n.typ.Elem()))
		}
		return d.value(n.elem, v.Elem())
	case n.kind == anything:
		return d.any(v)
	case given != n.token:
		d.fail(n.wanted)
		return d.json.SkipValue()
	}
	switch n.kind {
	case object:
		return d.object(n, v)
	case dict:
		return d.dict(n, v)
	case list:
		return d.list(n, v)
	case text, ownText:
		return d.text(n, v)
	default:
		return d.scalar(n, v)
	}
}

// patched reads a patch.Field: its value and its state.
func (d *decoder) patched(n *node, v reflect.Value, null bool) error {
	switch {
	case !null:
		v.Field(1).SetUint(uint64(patch.Given))
		return d.value(n.elem, v.Field(0))
	case n.nullable:
		v.Field(1).SetUint(uint64(patch.Null))
	default:
		d.fail("must not be null")
	}
	return d.json.SkipValue()
}

// null reads a null, which is an absent value where one may be absent.
func (d *decoder) null(n *node, v reflect.Value) error {
	switch n.kind {
	case pointer, dict, list, anything:
		v.SetZero()
	default:
		d.fail("must not be null")
	}
	return d.json.SkipValue()
}

// string reads a string. The bytes are valid until the next read.
func (d *decoder) string() ([]byte, error) {
	quoted, err := d.json.ReadValue()
	if err != nil {
		return nil, err
	}
	d.buffer, err = jsontext.AppendUnquote(d.buffer[:0], quoted)
	return d.buffer, err
}

// members reads an object. It calls each with every key; the key is valid until each reads on.
func (d *decoder) members(each func(key []byte) error) error {
	if _, err := d.json.ReadToken(); err != nil { // {
		return err
	}
	for d.json.PeekKind() == '"' {
		key, err := d.string()
		if err != nil {
			return err
		}
		if err := each(key); err != nil {
			return err
		}
	}
	_, err := d.json.ReadToken() // }
	return err
}

// object reads the fields of a struct.
func (d *decoder) object(n *node, v reflect.Value) error {
	var few [64]bool
	seen := few[:]
	if len(n.fields) > len(few) {
		seen = make([]bool, len(n.fields))
	}
	strange := false
	err := d.members(func(key []byte) error {
		i, known := n.byName[string(key)]
		if !known {
			strange = strange || n.strict && !n.readOnly[string(key)]
			return d.unknown(n, string(key))
		}
		seen[i] = true
		f := &n.fields[i]
		before := d.enter(f.name)
		defer d.leave(before)
		if !f.required && f.plan.kind != ownJSON && f.plan.kind != patched && d.json.PeekKind() == 'n' { // null counts as absent
			return d.json.SkipValue()
		}
		return d.value(f.plan, fieldOf(v, f.index))
	})
	for i := range n.fields {
		f := &n.fields[i]
		before := d.enter(f.name)
		switch {
		case seen[i] || err != nil:
		case f.required:
			d.fail("is required")
		case strange:
			d.unsure = append(d.unsure, d.where())
		}
		d.leave(before)
	}
	return err
}

func (d *decoder) unknown(n *node, name string) error {
	if n.strict && !n.readOnly[name] {
		before := d.enter(shortened(name))
		d.fail(unknownField)
		d.leave(before)
	}
	return d.json.SkipValue()
}

const unknownField = "unknown field"

func (d *decoder) list(n *node, v reflect.Value) error {
	if _, err := d.json.ReadToken(); err != nil { // [
		return err
	}
	v.Set(reflect.MakeSlice(n.typ, 0, min(4, n.maxItems())))
	count := 0
	for ; ; count++ {
		if kind := d.json.PeekKind(); kind == ']' || kind == jsontext.KindInvalid {
			break
		}
		if count >= n.maxItems() {
			if err := d.json.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if count == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(count + 1)
		v.Index(count).SetZero()
		before := d.enterIndex(count)
		if err := d.value(n.elem, v.Index(count)); err != nil {
			return err
		}
		d.leave(before)
	}
	if n.limits != nil {
		n.limits.count(d, count)
	}
	_, err := d.json.ReadToken() // ]
	return err
}

func (d *decoder) dict(n *node, v reflect.Value) error {
	v.Set(reflect.MakeMap(n.typ))
	return d.members(func(key []byte) error {
		name := string(key)
		before := d.enter(shortened(name))
		defer d.leave(before)
		item := reflect.New(n.typ.Elem()).Elem()
		if err := d.value(n.elem, item); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(n.typ.Key()), item)
		return nil
	})
}

func (d *decoder) text(n *node, v reflect.Value) error {
	b, err := d.string()
	if err != nil {
		return err
	}
	switch {
	case n.kind == ownText:
		if message := n.unmarshalText(v, b); message != "" {
			d.fail(message)
		}
	case bytes.IndexByte(b, 0) >= 0: // Postgres has no text with NUL
		d.fail(noNUL)
	default:
		s := string(b)
		v.SetString(s)
		if n.limits != nil {
			n.limits.text(d, s)
		}
	}
	return nil
}

const noNUL = "NUL is not allowed"

// scalar reads a number or a truth value.
func (d *decoder) scalar(n *node, v reflect.Value) error {
	raw, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	if v2.Unmarshal(raw, v.Addr().Interface()) != nil { // the type has no place for it
		d.fail(n.wanted)
	} else if n.limits != nil {
		n.limits.number(d, string(raw))
	}
	return nil
}

// any reads a value of unknown type. Its numbers keep their digits.
func (d *decoder) any(v reflect.Value) error {
	raw, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	if bytes.Contains(raw, []byte(`\u0000`)) { // this also refuses an escaped backslash before u0000, which nobody writes
		d.fail(noNUL)
		return nil
	}
	inner := json.NewDecoder(bytes.NewReader(raw))
	inner.UseNumber()
	return inner.Decode(v.Addr().Interface())
}

// own passes the value's text to the type's own UnmarshalJSON.
func (d *decoder) own(n *node, v reflect.Value) error {
	raw, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	unmarshaler, _ := reflect.TypeAssert[json.Unmarshaler](v.Addr())
	if err := unmarshaler.UnmarshalJSON(raw); err != nil {
		d.refused(n, err)
		return nil
	}
	if n.quantity && raw.Kind() == 'n' {
		d.fail("must not be null")
	} else if n.limits != nil {
		n.limits.number(d, string(raw))
	}
	return nil
}

// refused adds the fault that a type's own UnmarshalJSON found.
func (d *decoder) refused(n *node, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || len(f.Fields) == 0 {
		d.fail(n.complaint(err))
		return
	}
	for _, inner := range f.Fields {
		before := d.enter(inner.Field)
		d.fail(inner.Message)
		d.leave(before)
	}
}
