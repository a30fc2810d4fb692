package http_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apitest"
)

// example is a request of an operation and its response, as far as they are JSON.
type example struct {
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
}

// examples are the requests and answers of the document.
type examples map[string]example

const (
	examplesFile  = "testdata/examples.json"
	longestAnswer = 6_000 // bytes: longer examples are useless
)

// stable replaces values that differ in each run by constant ones.
var stable = []struct {
	found *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}@`), "asha@"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "0199c2f4-8a10-7c3e-9b52-5d1f0c6a7e21"},
	{regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})`), "2026-10-01T09:30:00Z"},
	{regexp.MustCompile(`"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}"`), `"2026-10-01T15:00:00"`},
	{regexp.MustCompile(`"(key|access_token|refresh_token|token|note|secret)":"[^"]+"`), `"$1":"…"`},
	{regexp.MustCompile(`"[A-Za-z0-9+/]{43}="`), `"n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="`},
	{regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`), "https://bahi.example.org"},
	{regexp.MustCompile(`bahi/[0-9a-f-]{36}`), "bahi/books"},
}

// committedExamples returns the examples of the document, by the operations' ids.
func committedExamples() (all examples) {
	text, err := os.ReadFile(examplesFile)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		panic(err)
	}
	return all
}

// shown returns JSON with stable values and short lists, nil for anything else.
func shown(text string) json.RawMessage {
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil
	}
	short, err := json.Marshal(shortened(value))
	if err != nil || len(short) > longestAnswer {
		return nil
	}
	text = string(short)
	for _, s := range stable {
		text = s.found.ReplaceAllString(text, s.shown)
	}
	return json.RawMessage(text)
}

// shortened leaves one of the values of each list. It leaves two plain values, because some lists need two.
func shortened(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = shortened(v[name])
		}
	case []any:
		for i := range v {
			v[i] = shortened(v[i])
			switch v[i].(type) {
			case map[string]any, []any:
				return v[:i+1]
			}
		}
		return v[:min(len(v), 2)]
	}
	return value
}

// note records a request and the operation's response.
func (e examples) note(op api.Op, r request, a *apitest.Answer) {
	var one example
	if r.contentType == "application/json" && r.body != "" {
		one.Request = shown(r.body)
	}
	if a.Response.StatusCode/100 == 2 && strings.HasPrefix(a.Header("Content-Type"), "application/json") {
		one.Answer = shown(a.Text)
	}
	if one.Request != nil || one.Answer != nil {
		e[op.ID] = one
	}
}

// fields returns the names of an object's fields, of the first object in a list.
func fields(t *testing.T, text json.RawMessage) map[string]bool {
	t.Helper()
	var value any
	if text != nil {
		require.NoError(t, json.Unmarshal(text, &value))
	}
	if list, is := value.([]any); is && len(list) > 0 {
		value = list[0]
	}
	names := map[string]bool{}
	if object, is := value.(map[string]any); is {
		for name := range object {
			names[name] = true
		}
	}
	return names
}

// verify writes the examples with -update, and requires that the document's have what was recorded.
func (e examples) verify(t *testing.T) {
	t.Helper()
	if *update {
		text, err := json.MarshalIndent(e, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(examplesFile, append(text, '\n'), 0o644))
		return
	}
	committed := committedExamples()
	require.Len(t, committed, len(e), "make generate updates the examples")
	for id, one := range e {
		require.Contains(t, committed, id)
		require.Equal(t, fields(t, one.Request), fields(t, committed[id].Request), "%s: make generate updates its example", id)
		for name := range fields(t, committed[id].Answer) { // a listed record may appear later
			if len(fields(t, one.Answer)) > 0 {
				require.Contains(t, fields(t, one.Answer), name, "%s: make generate updates its example", id)
			}
		}
	}
}
