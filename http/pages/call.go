package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"bahi/domain/fault"
	"bahi/http/api"
)

// request is a request to an operation.
type request struct {
	vars   []string // values of the path's variables, in order
	query  url.Values
	body   any    // nil: none
	files  []file // if any, the body's fields are sent as a form
	key    string // Idempotency-Key
	match  string // revision for If-Match
	reason string // Bahi-Reason
	dry    bool   // Bahi-Dry-Run
	prefer string // Prefer
}

// file is an uploaded file with the name of its field.
type file struct {
	field string
	*multipart.FileHeader
}

// files returns the uploaded files of a field. It omits the empty file that a browser sends if none is chosen.
func (v *visit) files(field string) (chosen []file) {
	if v.r.MultipartForm == nil {
		return nil
	}
	for _, h := range v.r.MultipartForm.File[field] {
		if h.Filename != "" || h.Size > 0 {
			chosen = append(chosen, file{field, h})
		}
	}
	return chosen
}

// problem is the error response of an operation.
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

// refusal returns the problem in an error, or nil if a form cannot show the error.
func refusal(err error) *problem {
	p, _ := errors.AsType[*problem](err)
	return p
}

// call runs an operation for the visitor and decodes its response. It returns a *[problem] if the operation refuses.
func (v *visit) call(operation string, in request, into any) (api.Response, error) {
	r, err := v.request(operation, in)
	if err != nil {
		return api.Response{}, err
	}
	out := v.API.Inside(v.r.Context(), r)
	if r.Body != nil {
		_ = r.Body.Close() // stops writeForm
	}
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

// operation returns an operation by its id.
func (v *visit) operation(id string) (*operation, error) {
	d, err := v.document()
	if err != nil {
		return nil, err
	}
	o, known := d.operation(id)
	if !known {
		return nil, fmt.Errorf("there is no operation %q", id)
	}
	return o, nil
}

func (v *visit) request(id string, in request) (*http.Request, error) {
	o, err := v.operation(id)
	if err != nil {
		return nil, err
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
	body, kind, err := in.content(o)
	if err != nil {
		return nil, fmt.Errorf("encode the body of %s: %w", id, err)
	}
	r, err := http.NewRequestWithContext(v.r.Context(), o.Method, address, body)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
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
	set("Prefer", in.prefer, true)
	set("Bahi-Reason", url.PathEscape(in.reason), true)
	if in.dry {
		set("Bahi-Dry-Run", "true", o.DryRun)
	}
	set("Bahi-Min-Position", v.r.URL.Query().Get("at"), o.Method == http.MethodGet)
	return r, nil
}

// content returns the request's body and its media type.
func (in request) content(o *operation) (body io.Reader, kind string, err error) {
	if !o.Files || in.files == nil {
		if in.body == nil {
			return http.NoBody, "", nil
		}
		text, err := json.Marshal(in.body)
		return bytes.NewReader(text), "application/json", err
	}
	fields, _ := in.body.(map[string]any)
	read, write := io.Pipe()
	form := multipart.NewWriter(write)
	go func() { write.CloseWithError(errors.Join(writeForm(form, fields, in.files), form.Close())) }()
	return read, form.FormDataContentType(), nil
}

// writeForm writes the fields, then the files. It returns an error if the reader is closed.
func writeForm(form *multipart.Writer, fields map[string]any, files []file) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := form.WriteField(name, textOf(fields[name])); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := f.write(form); err != nil {
			return err
		}
	}
	return nil
}

func (f file) write(form *multipart.Writer) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	header := textproto.MIMEHeader{"Content-Disposition": {multipart.FileContentDisposition(f.field, f.Filename)}}
	if kind := f.Header.Get("Content-Type"); kind != "" {
		header.Set("Content-Type", kind)
	}
	part, err := form.CreatePart(header)
	if err == nil {
		_, err = io.Copy(part, from)
	}
	return err
}

// after returns the address of the page that shows the written record.
func after(out api.Response, address, word string) string {
	address, given, _ := strings.Cut(address, "?")
	query, _ := url.ParseQuery(given) // built by this package, so valid
	query.Set("done", word)
	if at := out.Header.Get("Bahi-Position"); at != "" {
		query.Set("at", at)
	}
	return address + "?" + query.Encode()
}
