package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"bahi/domain/fault"
)

const (
	maxDepth = 64
	maxWrong = 50 // faults that one answer names
	maxNamed = 80 // bytes of an unknown name that an answer repeats
)

// decoder reads JSON (RFC 8259) into a value in one pass. What is no JSON at all is one fault of kind
// Malformed; that includes what others let pass: two equal keys, bytes that are not UTF-8, half of a
// surrogate pair, anything behind the end. What is JSON but not what was asked for is collected, field
// by field.
type decoder struct {
	data   []byte
	pos    int
	depth  int
	path   []byte
	wrong  []fault.Field
	buffer []byte
}

var decoders = sync.Pool{New: func() any { return &decoder{path: make([]byte, 0, 64)} }}

// decode reads data into the value, which must be settable.
func decode(plan *node, data []byte, into reflect.Value) error {
	d, _ := decoders.Get().(*decoder)
	d.data, d.pos, d.depth, d.path, d.wrong = data, 0, 0, d.path[:0], nil
	err := d.document(plan, into)
	wrong := d.wrong
	d.data, d.wrong = nil, nil
	if cap(d.buffer) > maxKept {
		d.buffer = nil
	}
	decoders.Put(d)
	if err != nil {
		return err
	}
	if wrong != nil {
		return fault.Fields(wrong...)
	}
	return nil
}

func (d *decoder) document(plan *node, into reflect.Value) error {
	if err := d.value(plan, into); err != nil {
		return err
	}
	d.space()
	if d.pos < len(d.data) {
		return d.malformed("something follows the value")
	}
	return nil
}

func (d *decoder) malformed(why string) error {
	return fault.Newf(fault.Malformed, "Malformed JSON at byte %d: %s", d.pos, why)
}

// fail notes what is wrong with the value that the path leads to.
func (d *decoder) fail(message string) {
	if len(d.wrong) < maxWrong {
		d.wrong = append(d.wrong, fault.Field{Field: d.where(), Message: message})
	}
}

func (d *decoder) where() string {
	if len(d.path) == 0 {
		return "body"
	}
	return string(d.path)
}

// enter adds a name to the path, and answers where to cut it off again.
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

func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// next answers the byte that the next value or sign begins with, 0 at the end.
func (d *decoder) next() byte {
	d.space()
	if d.pos == len(d.data) {
		return 0
	}
	return d.data[d.pos]
}

// value reads one value.
func (d *decoder) value(n *node, v reflect.Value) error {
	c := d.next()
	if c == 0 && d.pos == len(d.data) {
		return d.malformed("it ends too early")
	}
	if c == 'n' && n.kind != ownJSON {
		if err := d.literal("null"); err != nil {
			return err
		}
		return d.null(n, v)
	}
	switch n.kind {
	case pointer:
		if v.IsNil() {
			v.Set(reflect.New(n.typ.Elem()))
		}
		return d.value(n.elem, v.Elem())
	case object:
		if c == '{' {
			return d.object(n, v)
		}
	case dict:
		if c == '{' {
			return d.dict(n, v)
		}
	case list:
		if c == '[' {
			return d.list(n, v)
		}
	case text, ownText:
		if c == '"' {
			return d.text(n, v)
		}
	case boolean:
		if c == 't' || c == 'f' {
			v.SetBool(c == 't')
			return d.bool()
		}
	case whole, natural, float:
		if c == '-' || c >= '0' && c <= '9' {
			return d.number(n, v)
		}
	case ownJSON, anything:
		return d.own(n, v)
	}
	d.fail(n.wanted)
	return d.skip()
}

// null stands for an absent value where one may be absent.
func (d *decoder) null(n *node, v reflect.Value) error {
	switch n.kind {
	case pointer, dict, list, anything:
		v.SetZero()
	default:
		d.fail("must not be null")
	}
	return nil
}

func (d *decoder) literal(word string) error {
	if len(d.data)-d.pos < len(word) || string(d.data[d.pos:d.pos+len(word)]) != word {
		return d.malformed("no such word")
	}
	d.pos += len(word)
	return nil
}

func (d *decoder) bool() error {
	if d.data[d.pos] == 't' {
		return d.literal("true")
	}
	return d.literal("false")
}

func (d *decoder) deeper() error {
	if d.depth++; d.depth > maxDepth {
		return d.malformed("it is nested too deeply")
	}
	return nil
}

// object reads the fields of a struct.
func (d *decoder) object(n *node, v reflect.Value) error {
	var few [4]uint64
	seen := few[:]
	if len(n.fields) > len(few)*64 {
		seen = make([]uint64, len(n.fields)/64+1)
	}
	var others names
	err := d.members(func(name []byte) error {
		i, known := n.byName[string(name)]
		if !known {
			return d.unknown(n, string(name), &others)
		}
		if seen[i/64]&(1<<(i%64)) != 0 {
			return d.malformed("two equal keys")
		}
		seen[i/64] |= 1 << (i % 64)
		f := &n.fields[i]
		before := d.enter(f.name)
		defer d.leave(before)
		if !f.required && f.plan.kind != ownJSON && d.next() == 'n' { // null is as good as absent
			return d.literal("null")
		}
		return d.value(f.plan, fieldOf(v, f.index))
	})
	if err != nil {
		return err
	}
	for i := range n.fields {
		if f := &n.fields[i]; f.required && seen[i/64]&(1<<(i%64)) == 0 {
			before := d.enter(f.name)
			d.fail("is required")
			d.leave(before)
		}
	}
	return nil
}

func (d *decoder) unknown(n *node, name string, others *names) error {
	if !others.add(name) {
		return d.malformed("two equal keys")
	}
	if n.strict && !n.readOnly[name] {
		before := d.enter(shortened(name))
		d.fail("unknown field")
		d.leave(before)
	}
	return d.skip()
}

// members reads an object, calling each with its keys. The key is good until each reads on.
func (d *decoder) members(each func(name []byte) error) error {
	if err := d.deeper(); err != nil {
		return err
	}
	d.pos++ // {
	if d.next() == '}' {
		d.pos++
		d.depth--
		return nil
	}
	for {
		if d.next() != '"' {
			return d.malformed("a key is missing")
		}
		name, err := d.string()
		if err != nil {
			return err
		}
		if d.next() != ':' {
			return d.malformed("a colon is missing")
		}
		d.pos++
		if err := each(name); err != nil {
			return err
		}
		switch d.next() {
		case ',':
			d.pos++
		case '}':
			d.pos++
			d.depth--
			return nil
		default:
			return d.malformed("a comma or a brace is missing")
		}
	}
}

// items reads an array, calling each at every item.
func (d *decoder) items(each func(i int) error) error {
	if err := d.deeper(); err != nil {
		return err
	}
	d.pos++ // [
	if d.next() == ']' {
		d.pos++
		d.depth--
		return nil
	}
	for i := 0; ; i++ {
		if err := each(i); err != nil {
			return err
		}
		switch d.next() {
		case ',':
			d.pos++
		case ']':
			d.pos++
			d.depth--
			return nil
		default:
			return d.malformed("a comma or a bracket is missing")
		}
	}
}

func (d *decoder) list(n *node, v reflect.Value) error {
	v.Set(reflect.MakeSlice(n.typ, 0, min(4, n.mostItems())))
	count := 0
	err := d.items(func(i int) error {
		count++
		if count > n.mostItems() {
			return d.skip()
		}
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		v.Index(i).SetZero()
		before := d.enterIndex(i)
		defer d.leave(before)
		return d.value(n.elem, v.Index(i))
	})
	if n.limits != nil && err == nil {
		n.limits.count(d, count)
	}
	return err
}

func (d *decoder) dict(n *node, v reflect.Value) error {
	v.Set(reflect.MakeMap(n.typ))
	var keys names
	return d.members(func(name []byte) error {
		key := string(name)
		if !keys.add(key) {
			return d.malformed("two equal keys")
		}
		before := d.enter(shortened(key))
		defer d.leave(before)
		item := reflect.New(n.typ.Elem()).Elem()
		if err := d.value(n.elem, item); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(n.typ.Key()), item)
		return nil
	})
}

func (d *decoder) text(n *node, v reflect.Value) error {
	b, err := d.string()
	if err != nil {
		return err
	}
	if n.kind == ownText {
		if message := n.unmarshalText(v, b); message != "" {
			d.fail(message)
		}
		return nil
	}
	s := string(b)
	if strings.IndexByte(s, 0) >= 0 { // no text column of Postgres takes it
		d.fail("NUL is not allowed")
		return nil
	}
	v.SetString(s)
	if n.limits != nil {
		n.limits.text(d, s)
	}
	return nil
}

func (d *decoder) number(n *node, v reflect.Value) error {
	from := d.pos
	if err := d.skipNumber(); err != nil {
		return err
	}
	digits := string(d.data[from:d.pos])
	switch {
	case !n.setNumber(v, digits):
		d.fail(n.wanted)
	case n.limits != nil:
		n.limits.number(d, digits)
	}
	return nil
}

// setNumber answers whether the value's type has a place for the number.
func (n *node) setNumber(v reflect.Value, digits string) bool {
	var err error
	bits := n.typ.Bits()
	switch n.kind {
	case whole:
		var i int64
		if i, err = strconv.ParseInt(digits, 10, bits); err == nil {
			v.SetInt(i)
		}
	case natural:
		var u uint64
		if u, err = strconv.ParseUint(digits, 10, bits); err == nil {
			v.SetUint(u)
		}
	default:
		var f float64
		if f, err = strconv.ParseFloat(digits, bits); err == nil {
			v.SetFloat(f)
		}
	}
	return err == nil
}

// own gives the value's text to the type's own UnmarshalJSON.
func (d *decoder) own(n *node, v reflect.Value) error {
	d.space()
	from := d.pos
	if err := d.skip(); err != nil {
		return err
	}
	raw := d.data[from:d.pos]
	if n.kind == anything {
		if bytes.Contains(raw, []byte(`\u0000`)) { // and so does the text of a backslash before it, which nobody writes
			d.fail("NUL is not allowed")
			return nil
		}
		return decodeAny(raw, v)
	}
	unmarshaler, _ := reflect.TypeAssert[json.Unmarshaler](v.Addr())
	err := unmarshaler.UnmarshalJSON(raw)
	if err == nil {
		if string(raw) == "null" && n.quantity {
			d.fail("must not be null")
		} else if n.limits != nil {
			n.limits.number(d, string(raw))
		}
		return nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && len(f.Fields) > 0 {
		for _, inner := range f.Fields {
			before := d.enter(inner.Field)
			d.fail(inner.Message)
			d.leave(before)
		}
		return nil
	}
	d.fail(n.complaint(err))
	return nil
}

// decodeAny reads what was checked already.
func decodeAny(raw []byte, v reflect.Value) error {
	inner := json.NewDecoder(bytes.NewReader(raw))
	inner.UseNumber()
	if err := inner.Decode(v.Addr().Interface()); err != nil {
		return fmt.Errorf("decode what was checked: %w", err)
	}
	return nil
}
