package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/worktest"
)

func TestEveryWrongFieldIsNamed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk")
	for body, wrong := range map[string][]string{
		`{}`:            {"date", "is required"},
		`[]`:            {"body", "expected an object"},
		`null`:          {"body", "must not be null"},
		`{"date":null}`: {"date", "must not be null"},
		`{"date":"2025-02-29"}`: {
			"date", "expected a date such as 2025-03-31, from 1900 to 2199",
		},
		`{"date":20250331}`: {"date", "expected a text"},
		`{"date":"2025-03-31","in_entries":[{"amount":12.345},{"amount":1e3},{"amount":"12"},{"amount":null},{},null,7]}`: {
			"in_entries[0].amount", "at most 2 decimal places",
			"in_entries[1].amount", "exponents are not allowed",
			"in_entries[2].amount", "expected a number",
			"in_entries", "at most 3 items",
		},
		`{"date":"2025-03-31","in_entries":[{"amount":null},{},null]}`: {
			"in_entries[0].amount", "must not be null",
			"in_entries[1].amount", "is required",
			"in_entries[2]", "must not be null",
		},
		`{"date":"2025-03-31","in_entries":{},"weight":"5","kind":5,"count":1.5}`: {
			"in_entries", "expected a list", "weight", "expected a number", "kind", "expected a text", "count", "expected a whole number",
		},
		`{"date":"2025-03-31","kind":"gold","count":-1}`: {
			"kind", "expected one of cash, metal", "count", "must be at least 0",
		},
		`{"date":"2025-03-31","count":99999999999999999999}`: {"count", "expected a whole number"},
		`{"date":"2025-03-31","amuont":5,"in_entries":[{"amount":5,"details":""}]}`: {
			"amuont", "unknown field", "in_entries[0].details", "unknown field",
		},
		`{"Date":"2025-03-31"}`: {"Date", "unknown field", "date", "is required"},
		`{"date":"2025-03-31","in_entries":[{"amount":5,"description":"elf chars ok"}]}`: {
			"in_entries[0].description", "at most 10 characters",
		},
		`{"date":"2025-03-31","in_entries":[{"amount":5,"description":"a\u0000b"}]}`: {
			"in_entries[0].description", "NUL is not allowed",
		},
		`{"date":"2025-03-31","` + strings.Repeat("k", 200) + `":1}`: {strings.Repeat("k", 80) + "…", "unknown field"},
	} {
		clerk.POST("/ledger/3", body).Problem(422, "Validation error", wrong...)
	}
}

func TestValidBodiesAreAccepted(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk")
	for body, want := range map[string]string{
		good:                                     posted,
		" {\n\t\"date\" : \"2025-03-31\" \r\n} ": `{"id":7,"date":"2025-03-31"}`,
		`{"date":"2025-03-31","in_entries":null,"weight":null}`: `{"id":7,"date":"2025-03-31"}`,
		`{"date":"2025-03-31","kind":null,"count":null}`:        `{"id":7,"date":"2025-03-31"}`,
		`{"id":[{}],"date":"2025-03-31",` +
			`"weight":0.001}`: `{"id":7,"date":"2025-03-31","weight":0.001}`,
		`{"\u0064ate":"2025\u002d03-31",` +
			`"kind":"metal","count":3}`: `{"id":7,"date":"2025-03-31","kind":"metal","count":3}`,
		`{"date":"2025-03-31","in_entries":[{"amount":9999999999999.99,` +
			`"balance":1,"description":"दस अक्षर ₹"}]}`: `{"id":7,"date":"2025-03-31","in_entries":[{"amount":9999999999999.99,` +
			`"description":"दस अक्षर ₹"}]}`,
		`{"date":"2025-03-31","in_entries":[{"amount":1,` +
			`"description":"\ud83d\ude00\/\b\f\n\r\t\"\\"}]}`: `{"id":7,"date":"2025-03-31","in_entries":[{"amount":1,` +
			`"description":"😀/\b\f\n\r\t\"\\"}]}`,
	} {
		clerk.POST("/ledger/3", body).Status(201).Body(want)
	}
}

func TestInvalidJSONIsMalformed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clerk := s.as(t, "bahi_clerk")
	deep := `{"date":"2025-03-31","id":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`
	for body, why := range map[string]string{
		`{`:                                   " at byte 1: it ends too early",
		` `:                                   ": it ends too early",
		`{"date":"2025-03-31"} x`:             " at byte 22: invalid character 'x' at start of value",
		`{"date":"2025-03-31"}{}`:             " at byte 22: something follows the value",
		`{"date":"2025-03-31","date":1}`:      " at byte 21: two equal keys",
		`{"date":"2025-03-31","d\u0061te":1}`: " at byte 21: two equal keys",
		`{"date":"2025-03-31","id":1,"id":2}`: " at byte 28: two equal keys",
		`{"date":"2025-03-31","id":{"a":1,"a":2}}`:         " at byte 33: two equal keys",
		`{"date":"2025-03-31","id":"\ud800"}`:              " at byte 27: invalid surrogate pair `\\ud800\"}` in string",
		"{\"date\":\"2025-03-31\",\"id\":\"\xff\"}":        " at byte 27: invalid UTF-8",
		"{\"date\":\"2025-03-31\",\"id\":\"\\n\xc0\x80\"}": " at byte 29: invalid UTF-8",
		"{\"date\":\"2025-03-31\",\"id\":\"\n\"}":          ` at byte 27: invalid character '\n' in string (expecting non-control character)`,
		`{"date":"2025-03-31","id":"`:                      " at byte 27: it ends too early",
		"\xef\xbb\xbf{}":                                   ` at byte 0: invalid character '\ufeff' at start of value`,
		deep:                                               ": it is nested too deeply",
	} {
		clerk.POST("/ledger/3", body).Problem(400, "Malformed JSON"+why)
	}
	clerk.POST("/ledger/3", "").Problem(400, "A request body is required")
	clerk.Do("POST", "/ledger/3", nil).Problem(400, "A request body is required")
}

type tree struct {
	Name     string          `json:"name" minLength:"1"`
	Children []tree          `json:"children,omitempty"`
	By       map[string]*int `json:"by,omitempty"`
}

type varied struct {
	ID      uuid.UUID  `json:"id"`
	At      *time.Time `json:"at,omitempty"`
	Tree    tree       `json:"tree"`
	Flag    *bool      `json:"flag,omitempty"`
	Small   int8       `json:"small,omitempty"`
	Natural uint16     `json:"natural,omitempty" maximum:"1000"`
	Share   float64    `json:"share,omitempty"`
	Any     any        `json:"any,omitempty"`
	Code    string     `json:"code,omitempty" pattern:"^[a-z]+$"`
	Hidden  string     `json:"-"`
}

func TestBodiesOfAllShapes(t *testing.T) {
	t.Parallel()
	s := serve(t)
	api.Handle(s.API, api.Op{
		ID: "varied", Method: "PUT", Path: "/varied", Public: true, StrictBody: true, ReadOnly: []string{"tree.children.id"},
	}, varyHandler)
	anyone := s.as(t, "")
	const id = `"id":"11111111-1111-4111-8111-111111111111"`
	full := `{` + id + `,"at":"2025-03-31T09:15:00Z","tree":{"name":"a","children":[{"name":"b","children":[],"id":3}],"by":{"x":1,` +
		`"y":null}},` +
		`"flag":false,"small":-128,"natural":1000,"share":0.25,"any":{"n":[1.50,null,"x"]},"code":"abc"}`
	anyone.PUT("/varied", full).Status(200).Body(`{` + id + `,"at":"2025-03-31T09:15:00Z","tree":{"name":"a","children":[{"name":"b"}],` +
		`"by":{"x":1,"y":null}},` +
		`"flag":false,"small":-128,"natural":1000,"share":0.25,"any":{"n":[1.50,null,"x"]},"code":"abc"}`)
	anyone.PUT("/varied", `{"id":"{11111111-1111-4111-8111-111111111111}","at":"yesterday","tree":{"name":"","children":[{"name":"b",`+
		`"x":1}],"id":1},
		"flag":"yes","small":128,"natural":1001,"share":1e999,"any":"\u0000","code":"A1","hidden":"x","by":{"x":"1"}}`).
		Problem(422, "Validation error",
			"id", "expected a UUID such as 6ba7b810-9dad-41d1-80b4-00c04fd430c8",
			"at", "expected a moment such as 2025-03-31T09:15:00Z",
			"tree.name", "must not be empty",
			"tree.children[0].x", "unknown field",
			"tree.id", "unknown field",
			"flag", "expected true or false",
			"small", "expected a whole number",
			"natural", "must be at most 1000",
			"share", "expected a number",
			"any", "NUL is not allowed",
			"code", "expected string to match pattern ^[a-z]+$",
			"hidden", "unknown field",
			"by", "unknown field")
}

func TestUnnamedBodyTypesHaveTheirOwnPlans(t *testing.T) {
	t.Parallel()
	a := api.New(api.Config{})
	api.Handle(a, api.Op{ID: "a", Method: "POST", Path: "/a", Public: true}, none[struct {
		Body struct {
			A string `json:"a" maxLength:"3"`
		}
	}])
	api.Handle(a, api.Op{ID: "b", Method: "POST", Path: "/b", Public: true}, none[struct {
		Body *struct {
			B     string `json:"b" maxLength:"2"`
			Inner []struct {
				A string `json:"a" maxLength:"1"`
			} `json:"inner"`
		}
	}])
	server := worktest.Serve(t, a)
	stranger := apitest.New(t, server.URL, "")
	stranger.POST("/a", `{}`).Problem(422, "Validation error", "a", "is required")
	stranger.POST("/a", `{"a":"long"}`).Problem(422, "Validation error", "a", "at most 3 characters")
	stranger.POST("/b", `{}`).Problem(422, "Validation error", "b", "is required", "inner", "is required")
	stranger.POST("/b", `{"b":"abc","inner":[{},{"a":"ab"}]}`).Problem(422, "Validation error",
		"b", "at most 2 characters", "inner[0].a", "is required", "inner[1].a", "at most 1 characters")
	stranger.POST("/b", `{"b":"ab","inner":[{"a":"a"}]}`).Status(201)
}
