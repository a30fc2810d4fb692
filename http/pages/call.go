package pages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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

// deny records the visit's first error. After an error no further operation runs, and the error's page is shown in place of the handler's.
// Handlers therefore need not check each error, as with [bufio.Writer]. deny returns an empty page.
func (v *visit) deny(err error) page {
	if v.failed == nil {
		v.failed = err
	}
	return page{}
}

// require records a refusal as the visit's first error, if there is one.
func (v *visit) require(refused *problem) {
	if refused != nil {
		v.deny(refused)
	}
}

// read runs an operation. Any error, even a refusal, fails the visit.
func (v *visit) read(operation string, in request, into any) api.Response {
	out, refused := v.ask(operation, in, into)
	v.require(refused)
	return out
}

// one returns the record that an operation reads.
func (v *visit) one(operation string, vars ...string) (record map[string]any) {
	v.read(operation, request{vars: vars}, &record)
	return record
}

// asked runs an operation with parameters that the visitor chose. It returns why they are invalid. Any other error fails the visit.
func (v *visit) asked(operation string, in request, into any) (out api.Response, wrong []string) {
	out, refused := v.ask(operation, in, into)
	if refused != nil && refused.Status == http.StatusUnprocessableEntity {
		return out, []string{detail(refused)}
	}
	v.require(refused)
	return out, nil
}

// paged runs the operation of a list for one of its pages, without parameters that are empty. It returns the records, and the number of
// records on all pages.
func (v *visit) paged(id string, in request, number, size int) (rows []map[string]any, total int, refused *problem) {
	query := url.Values{}
	maps.Copy(query, in.query)
	maps.DeleteFunc(query, func(_ string, values []string) bool { return values[0] == "" })
	for _, p := range v.operation(id).Params {
		switch p.Name {
		case "page":
			query.Set("page", strconv.Itoa(number))
		case "skip":
			query.Set("skip", strconv.Itoa((number-1)*size))
		case "limit", "page_size":
			query.Set(p.Name, strconv.Itoa(size))
		}
	}
	in.query = query
	var answer any
	out, refused := v.ask(id, in, &answer)
	v.listed = out.Header
	list, total := listOf(answer)
	if counted := totalOf(out); counted > 0 {
		total = counted
	}
	return entriesOf(list), total, refused
}

// listOf returns the records of a list's response, which is an array or an object with one, and the total in it.
func listOf(answer any) (list []any, total int) {
	switch a := answer.(type) {
	case []any:
		return a, len(a)
	case map[string]any:
		for _, name := range []string{"data", "items", "rows"} {
			if list, is := a[name].([]any); is {
				total, _ = strconv.Atoi(textOf(a["total"])) // 0 without one
				return list, max(total, len(list))
			}
		}
	}
	return nil, 0
}

// newestFirst reads a page of records, newest first. The API counts pages from the oldest record, so its last page may be short. The
// first page here therefore includes the API's last two pages.
func (v *visit) newestFirst(id string, in request) (records []map[string]any, total int, refused *problem) {
	_, total, refused = v.paged(id, in, 1, 1)
	full, number := total/rowsShown, v.number()
	number = min(number, max(full, 1))
	for n := max(1, full-number+1); n <= full || number == 1 && n == full+1; n++ {
		some, _, _ := v.paged(id, in, n, rowsShown)
		records = append(records, some...)
		if number != 1 {
			break
		}
	}
	slices.Reverse(records)
	return records, total, refused
}

// ask runs an operation for the visitor and decodes its response. It returns the operation's refusal, or nil. Any other error fails the
// visit.
func (v *visit) ask(operation string, in request, into any) (out api.Response, refused *problem) {
	r := v.request(operation, in)
	if v.failed != nil {
		return out, nil //nolint:nilerr // the visit has the error
	}
	out = v.API.Inside(v.r.Context(), r)
	if r.Body != nil {
		_ = r.Body.Close() // this ends writeForm
	}
	if out.Status >= http.StatusBadRequest {
		refused = &problem{Status: out.Status, Detail: http.StatusText(out.Status)}
		into = refused
	} else if out.Header.Get("Bahi-Stale") != "" {
		v.w.Header().Set("Bahi-Stale", "true")
	}
	if into == nil || len(out.Body) == 0 {
		return out, refused
	}
	if err := decode(out.Body, into); err != nil {
		v.deny(fmt.Errorf("the answer of %s: %w", operation, err))
	}
	return out, refused
}

// operation returns an operation by its id.
func (v *visit) operation(id string) *operation {
	o, known := v.document()[id]
	if !known {
		v.deny(fmt.Errorf("there is no operation %q", id))
		return &operation{Body: &schema{}}
	}
	return o
}

// address returns the address of a request without a body.
func (v *visit) address(operation string, in request) *url.URL { return v.request(operation, in).URL }

// request returns a request to an operation. An error fails the visit.
func (v *visit) request(id string, in request) *http.Request {
	o := v.operation(id)
	address := o.Path
	for _, value := range in.vars {
		before, after, found := strings.Cut(address, "{")
		if !found {
			v.deny(fmt.Errorf("the path of %s has fewer variables", id))
		}
		_, after, _ = strings.Cut(after, "}")
		address = before + url.PathEscape(value) + after // an escaped value has no {
	}
	if len(in.query) > 0 {
		address += "?" + in.query.Encode()
	}
	body, kind, err := in.content(o)
	r, invalid := http.NewRequestWithContext(v.r.Context(), o.Method, address, body)
	if err = cmp.Or(err, invalid); err != nil {
		v.deny(fmt.Errorf("the request of %s: %w", id, err))
		return &http.Request{URL: &url.URL{}}
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
	return r
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
	go func() { write.CloseWithError(writeForm(form, fields, in.files)) }()
	return read, form.FormDataContentType(), nil
}

// writeForm writes the fields, then the files. It returns an error if the reader is closed.
func writeForm(form *multipart.Writer, fields map[string]any, files []file) (err error) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		err = errors.Join(err, form.WriteField(name, textOf(fields[name])))
	}
	for _, f := range files {
		err = errors.Join(err, f.write(form))
	}
	return errors.Join(err, form.Close())
}

func (f file) write(form *multipart.Writer) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	header := maps.Clone(f.Header)
	header.Set("Content-Disposition", multipart.FileContentDisposition(f.field, f.Filename))
	part, err := form.CreatePart(header)
	if err == nil {
		_, err = io.Copy(part, from)
	}
	return err
}

// totalOf returns the number of records of a list, 0 if the response lacks it.
func totalOf(out api.Response) int {
	total, _ := strconv.Atoi(out.Header.Get("X-Total-Count"))
	return total
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
