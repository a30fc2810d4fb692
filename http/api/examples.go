package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// examplesFile has a request and an answer of each operation, by its id, as a test recorded them.
//
//go:embed examples.json
var examplesFile []byte

// Example is a request of an operation and what it was answered, as far as they are JSON.
type Example struct {
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
}

// Examples returns the recorded examples.
var Examples = sync.OnceValue(func() (all map[string]Example) {
	if err := json.Unmarshal(examplesFile, &all); err != nil {
		panic(err) // a test writes the file
	}
	return all
})

// showExamples adds the operation's example to its description.
func (o *operation) showExamples(h *huma.Operation, success *huma.Response) {
	const kind = "application/json"
	e := Examples()[o.ID]
	if h.RequestBody != nil && h.RequestBody.Content[kind] != nil && e.Request != nil {
		h.RequestBody.Content[kind].Example = e.Request
	}
	if success.Content[kind] != nil && e.Answer != nil {
		success.Content[kind].Example = e.Answer
	}
}

// exampleOf returns a problem of a status, with the code that it has where the refusal has none of its own.
func exampleOf(status int) any {
	code, detail := others[status].code, others[status].detail
	for _, kind := range kinds {
		if kind.status == status {
			code = kind.code
		}
	}
	if detail == "" {
		detail = http.StatusText(status)
	}
	return map[string]any{"detail": detail, "code": code, "status": status, "title": http.StatusText(status), "request_id": "9b78ec1b6e030ca406e730d79703fa40"}
}
