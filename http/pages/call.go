package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"bahi/domain/fault"
	"bahi/http/api"
)

// request is a request to an operation.
type request struct {
	vars   []string // values of the path's variables, in order
	query  url.Values
	body   any    // nil: none
	key    string // Idempotency-Key
	match  string // revision for If-Match
	reason string // Bahi-Reason
	dry    bool   // Bahi-Dry-Run
}

// problem is the refusal of an operation.
type problem struct {
	Detail string        `json:"detail"`
	Code   string        `json:"code"`
	Status int           `json:"status"`
	Errors []fault.Field `json:"errors"`
}

func (p *problem) Error() string { return p.Detail }

// faults returns the messages by the fields' paths.
func (p *problem) faults() map[string]string {
	if p == nil {
		return nil
	}
	found := map[string]string{}
	for _, f := range p.Errors {
		found[f.Field] = f.Message
	}
	return found
}

// refusal returns the problem of an error, nil if it is none that a form can show.
func refusal(err error) *problem {
	p, _ := errors.AsType[*problem](err)
	return p
}

// call runs an operation for the visitor and decodes its answer. It returns a *[problem] if the operation refuses.
func (v *visit) call(operation string, in request, into any) (api.Response, error) {
	r, err := v.request(operation, in)
	if err != nil {
		return api.Response{}, err
	}
	out := v.API.Inside(v.r.Context(), r)
	if out.Status >= http.StatusBadRequest {
		refused := &problem{Status: out.Status, Detail: http.StatusText(out.Status)}
		if err := json.Unmarshal(out.Body, refused); err != nil {
			return out, fmt.Errorf("the answer of %s: %w", operation, err)
		}
		return out, refused
	}
	if out.Header.Get("Bahi-Stale") != "" {
		v.w.Header().Set("Bahi-Stale", "true")
	}
	if into == nil || len(out.Body) == 0 {
		return out, nil
	}
	if err := decode(out.Body, into); err != nil {
		return out, fmt.Errorf("the answer of %s: %w", operation, err)
	}
	return out, nil
}

func (v *visit) request(id string, in request) (*http.Request, error) {
	d, err := v.document()
	if err != nil {
		return nil, err
	}
	o, known := d.operation(id)
	if !known {
		return nil, fmt.Errorf("there is no operation %q", id)
	}
	address, rest := "", o.Path
	for _, value := range in.vars {
		before, after, found := strings.Cut(rest, "{")
		if _, after, found = strings.Cut(after, "}"); !found {
			return nil, fmt.Errorf("operation %q: the path %s has fewer variables", id, o.Path)
		}
		address, rest = address+before+url.PathEscape(value), after
	}
	address += rest
	if len(in.query) > 0 {
		address += "?" + in.query.Encode()
	}
	var body []byte
	if in.body != nil {
		if body, err = json.Marshal(in.body); err != nil {
			return nil, fmt.Errorf("encode the body of %s: %w", id, err)
		}
	}
	r, err := http.NewRequestWithContext(v.r.Context(), o.Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if in.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	set := func(name, value string, documented bool) {
		if value != "" && documented {
			r.Header.Set(name, value)
		}
	}
	set("Idempotency-Key", in.key, o.Key && !in.dry)
	if in.match != "" {
		set("If-Match", `"`+in.match+`"`, true)
	}
	set("Bahi-Reason", url.PathEscape(in.reason), true)
	if in.dry {
		set("Bahi-Dry-Run", "true", o.DryRun)
	}
	set("Bahi-Min-Position", v.r.URL.Query().Get("at"), o.Method == http.MethodGet)
	return r, nil
}

// after returns the address of a page that shows what was written.
func after(out api.Response, address, word string) string {
	query := url.Values{"done": {word}}
	if at := out.Header.Get("Bahi-Position"); at != "" {
		query.Set("at", at)
	}
	return address + "?" + query.Encode()
}
