package patch

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Text is a text field of a body: its name in JSON and its maximum length, from its tags.
type Text struct {
	*Field[string]

	Name      string
	MaxLength int // characters
}

// Texts returns the fields of type Field[string] of a struct in order. of is a pointer to the struct.
func Texts(of any) (all []Text) {
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		field, ok := reflect.TypeAssert[*Field[string]](v.Field(i).Addr())
		if !ok {
			continue
		}
		tag := v.Type().Field(i).Tag
		maxLength, err := strconv.Atoi(tag.Get("maxLength"))
		if err != nil {
			panic(fmt.Sprintf("%s.%s: a text has a maxLength", v.Type(), v.Type().Field(i).Name))
		}
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		all = append(all, Text{Field: field, Name: name, MaxLength: maxLength})
	}
	return all
}

// Apply applies a change to a struct's texts. Each text of change is absent, null or given. Each text of before is absent or given.
func Apply(before, change any) {
	texts := Texts(before)
	for i, f := range Texts(change) {
		switch f.State {
		case Given:
			*texts[i].Field = *f.Field
		case Null:
			*texts[i].Field = Field[string]{}
		case absent:
		}
	}
}
