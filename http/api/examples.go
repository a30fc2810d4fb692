package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// examplesFile has a recorded request and response of each operation, by its id.
//
//go:embed examples.json
var examplesFile []byte

// Example is a request of an operation and its response, as far as they are JSON.
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

// further has the special codes of refusals by status. The code of a conflict about another record's value contains the field's name.
var further = map[int][]string{
	http.StatusBadRequest: {"wrong_password"},
	http.StatusForbidden:  {"email_not_verified"},
	http.StatusConflict: {
		"channel_identity_taken", "channel_type_unsupported", "customer_taken", "domain_taken", "email_taken", "no_company", "period_open",
		"phone_shared", "phone_taken", "reply_window_closed", "sender_taken", "sku_taken", "url_taken",
	},
	http.StatusUnprocessableEntity: {"dry_run_unsupported", "provider_refused", "recipient_failed"},
	http.StatusTooManyRequests:     {"provider_rate_limited", "too_many_streams"},
	http.StatusBadGateway:          {"provider_auth"},
	http.StatusServiceUnavailable: {"campaign_passed_over", "campaign_stopped", "provider_not_configured", "provider_unavailable",
		"provider_unknown"},
}

// codeOf returns the default code of a status.
func codeOf(status int) string {
	for _, kind := range kinds {
		if kind.status == status {
			return kind.code
		}
	}
	return others[status].code
}

// codesOf documents a refusal's codes.
func codesOf(status int) string {
	return http.StatusText(status) + ". `code`: " + strings.Join(append([]string{codeOf(status)}, further[status]...), ", ")
}

// exampleOf returns a problem of a status with its default code.
func exampleOf(status int) any {
	detail := others[status].detail
	if detail == "" {
		detail = http.StatusText(status)
	}
	return map[string]any{"detail": detail, "code": codeOf(status), "status": status, "title": http.StatusText(status),
		"request_id": "9b78ec1b6e030ca406e730d79703fa40"}
}
