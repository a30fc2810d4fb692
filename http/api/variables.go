package api

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

var variableName = regexp.MustCompile(`\{([^}]+)\}`)

// variables returns the names of a path's variables by the input's names for them. A name that the path does not have means the
// path's next variable that the input does not name: so operations on several paths can share an input although each path
// has its own names.
func variables(path string, input reflect.Type) map[string]string {
	var asked []string
	vars, taken := map[string]string{}, map[string]bool{}
	for _, f := range reflect.VisibleFields(input) {
		switch tag := f.Tag.Get("path"); {
		case tag == "":
		case strings.Contains(path, "{"+tag+"}"):
			taken[tag] = true
		default:
			asked = append(asked, tag)
		}
	}
	for _, found := range variableName.FindAllStringSubmatch(path, -1) {
		if len(asked) > 0 && !taken[found[1]] {
			vars[asked[0]], asked = found[1], asked[1:]
		}
	}
	if len(asked) > 0 {
		panic(fmt.Sprintf("%s has no variable for the parameter %s", path, asked[0]))
	}
	return vars
}

// called returns the parameters of an operation under the path's names.
func (o *operation) called(parameters []*huma.Param) []*huma.Param {
	all := make([]*huma.Param, len(parameters))
	for i, p := range parameters {
		one := *p
		if p.In == "path" {
			one.Name = cmp.Or(o.vars[p.Name], p.Name)
		}
		all[i] = &one
	}
	return all
}

// Param returns a variable of the path by the input's name for it.
func (v *view) Param(name string) string {
	return v.humaContext.Param(cmp.Or(v.call.op.vars[name], name))
}
