package api

import "slices"

// skip reads over a value, which must be in order.
func (d *decoder) skip() error {
	switch c := d.next(); {
	case c == '{':
		var keys names
		return d.members(func(name []byte) error {
			if !keys.add(string(name)) {
				return d.malformed("two equal keys")
			}
			return d.skip()
		})
	case c == '[':
		return d.items(func(int) error { return d.skip() })
	case c == '"':
		_, err := d.string()
		return err
	case c == 't':
		return d.literal("true")
	case c == 'f':
		return d.literal("false")
	case c == 'n':
		return d.literal("null")
	case c == '-' || c >= '0' && c <= '9':
		return d.skipNumber()
	case d.pos == len(d.data):
		return d.malformed("it ends too early")
	default:
		return d.malformed("no value begins like this")
	}
}

// skipNumber reads over a number, by JSON's grammar.
func (d *decoder) skipNumber() error {
	if d.data[d.pos] == '-' {
		d.pos++
	}
	if d.pos < len(d.data) && d.data[d.pos] == '0' {
		d.pos++
	} else if d.digits() == 0 {
		return d.malformed("a digit is missing")
	}
	if d.pos < len(d.data) && d.data[d.pos] == '.' {
		d.pos++
		if d.digits() == 0 {
			return d.malformed("a digit is missing")
		}
	}
	if d.pos < len(d.data) && (d.data[d.pos] == 'e' || d.data[d.pos] == 'E') {
		d.pos++
		if d.pos < len(d.data) && (d.data[d.pos] == '+' || d.data[d.pos] == '-') {
			d.pos++
		}
		if d.digits() == 0 {
			return d.malformed("a digit is missing")
		}
	}
	return nil
}

func (d *decoder) digits() (n int) {
	for d.pos < len(d.data) && d.data[d.pos] >= '0' && d.data[d.pos] <= '9' {
		d.pos++
		n++
	}
	return n
}

// names finds equal ones. Most objects have few.
type names struct {
	few  []string
	many map[string]struct{}
}

const fewNames = 16

// add answers false for a name that was there.
func (n *names) add(name string) bool {
	if n.many != nil {
		before := len(n.many)
		n.many[name] = struct{}{}
		return len(n.many) > before
	}
	if slices.Contains(n.few, name) {
		return false
	}
	n.few = append(n.few, name)
	if len(n.few) > fewNames {
		n.many = make(map[string]struct{}, 2*fewNames)
		for _, name := range n.few {
			n.many[name] = struct{}{}
		}
	}
	return true
}
