package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// node is a part of a JSON document, with its keys in the original order.
type node struct {
	key    string
	kind   byte // '{', '[', or 'v' for a value
	text   string
	class  string // of a value: text, number, word, sealed
	inside []node
}

// parseJSON parses a document. Numbers keep their digits.
func parseJSON(data []byte) (node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return parseValue(d)
}

func parseValue(d *json.Decoder) (node, error) {
	t, err := d.Token()
	if err != nil {
		return node{}, err
	}
	switch t := t.(type) {
	case json.Delim:
		return parseInside(d, t)
	case string:
		return node{kind: 'v', class: "text", text: t}, nil
	case json.Number:
		return node{kind: 'v', class: "number", text: t.String()}, nil
	case nil:
		return node{kind: 'v', class: "word", text: "null"}, nil
	default:
		return node{kind: 'v', class: "word", text: fmt.Sprint(t)}, nil
	}
}

func parseInside(d *json.Decoder, opening json.Delim) (n node, err error) {
	n.kind = byte(opening)
	for d.More() {
		var key string
		if opening == '{' {
			t, err := d.Token()
			if err != nil {
				return n, err
			}
			key, _ = t.(string)
		}
		inner, err := parseValue(d)
		if err != nil {
			return n, err
		}
		inner.key = key
		n.inside = append(n.inside, inner)
	}
	_, err = d.Token()
	return n.hide(), err
}

// hide replaces the box of a sealed value by a word, because a ciphertext says nothing; the subject says whose value it is.
func (n node) hide() node {
	of := func(key string) string {
		if i := slices.IndexFunc(n.inside, func(m node) bool { return m.key == key }); i >= 0 && n.kind == '{' {
			return n.inside[i].text
		}
		return ""
	}
	if of("sealed") == "" || of("box") == "" {
		return n
	}
	return node{kind: 'v', class: "sealed", text: "sealed: " + of("class") + ", of " + of("subject")}
}

// piece is a part of a document for display.
type piece struct{ Class, Text string }

// spans returns a document in indented lines.
func spans(data []byte) []piece {
	n, err := parseJSON(data)
	if err != nil {
		return []piece{{"text", string(data)}}
	}
	var out []piece
	n.write(&out, 0)
	return out
}

func (n node) write(out *[]piece, depth int) {
	if n.kind == 'v' {
		text := n.text
		if n.class == "text" {
			text = quoted(text)
		}
		*out = append(*out, piece{n.class, text})
		return
	}
	closing := map[byte]string{'{': "}", '[': "]"}[n.kind]
	if len(n.inside) == 0 {
		*out = append(*out, piece{"mark", string(n.kind) + closing})
		return
	}
	*out = append(*out, piece{"mark", string(n.kind)})
	for i, m := range n.inside {
		*out = append(*out, piece{"mark", "\n" + strings.Repeat("  ", depth+1)})
		if n.kind == '{' {
			*out = append(*out, piece{"key", quoted(m.key)}, piece{"mark", ": "})
		}
		m.write(out, depth+1)
		if i < len(n.inside)-1 {
			*out = append(*out, piece{"mark", ","})
		}
	}
	*out = append(*out, piece{"mark", "\n" + strings.Repeat("  ", depth) + closing})
}

// quoted returns a text as JSON without HTML escapes, which the template adds.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return text
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// change is a field that differs between two versions. An empty side means that the field is missing.
type change struct {
	Field         string
	Before, After string
}

// changes returns the fields in which two documents differ, in the order of the later one. Either may be nil.
func changes(before, after []byte) []change {
	was, names := flatten(before)
	is, later := flatten(after)
	for _, name := range names {
		if _, there := is[name]; !there {
			later = append(later, name)
		}
	}
	var out []change
	for _, name := range later {
		if was[name] != is[name] {
			out = append(out, change{name, was[name], is[name]})
		}
	}
	return out
}

// flatten returns a document's values by path, and the paths in order.
func flatten(data []byte) (values map[string]string, names []string) {
	values = map[string]string{}
	if len(data) == 0 {
		return values, nil
	}
	n, err := parseJSON(data)
	if err != nil {
		return map[string]string{"": string(data)}, []string{""}
	}
	var walk func(n node, path string)
	walk = func(n node, path string) {
		if n.kind == 'v' {
			values[path] = n.text
			names = append(names, path)
			return
		}
		for i, m := range n.inside {
			switch {
			case n.kind == '[':
				walk(m, fmt.Sprintf("%s[%d]", path, i))
			case path == "":
				walk(m, m.key)
			default:
				walk(m, path+"."+m.key)
			}
		}
	}
	walk(n, "")
	return values, names
}
