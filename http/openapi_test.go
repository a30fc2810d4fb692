package http_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"bahi/http/api"
)

const schemaPrefix = "#/components/schemas/"

// completed returns the document of all operations: huma's, with the consequences of each Op and with examples.
func completed(a *api.API) ([]byte, error) {
	all := a.Described()
	all.Components.Responses = documentRefusals()
	for _, op := range a.Operations() {
		item := all.Paths[op.Path]
		for _, h := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if h != nil && h.OperationID == op.ID {
				documentBodies(op, h, a.Inputs()[op.ID], all.Components.Schemas)
				document(op, h)
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return nullable(text, all.Components.Schemas)
}

// documentBodies describes forms, streams and downloads, which huma does not describe.
func documentBodies(o api.Op, h *huma.Operation, input reflect.Type, schemas huma.Registry) {
	for f := range input.Fields() {
		if f.Type == reflect.TypeFor[api.File]() {
			h.RequestBody = documentForm(o)
		}
	}
	success := h.Responses[strconv.Itoa(status(o))]
	if o.Events != nil {
		*success = documentEvents(o.Events, schemas)
	}
	if o.Media == nil {
		return
	}
	*success = huma.Response{
		Description: http.StatusText(status(o)), Content: map[string]*huma.MediaType{},
		Headers: map[string]*huma.Param{"Content-Disposition": {Schema: &huma.Schema{Type: huma.TypeString},
			Description: "Name of the file, if the response is a file"}},
	}
	for kind, document := range o.Media {
		schema := &huma.Schema{Type: huma.TypeString}
		if document != nil {
			schema = schemas.Schema(reflect.TypeOf(document), true, "")
		}
		success.Content[kind] = &huma.MediaType{Schema: schema}
	}
}

func documentForm(o api.Op) *huma.RequestBody {
	schema := &huma.Schema{
		Type: huma.TypeObject, Required: []string{"file"}, AdditionalProperties: !o.StrictBody,
		Properties: map[string]*huma.Schema{
			"file": {Type: huma.TypeString, Format: "binary", Description: "At most " + api.InWords(o.MaxBody)},
		},
	}
	for _, text := range o.Texts {
		kind := huma.TypeString
		if text.Integer {
			kind = huma.TypeInteger
		}
		schema.Properties[text.Name] = &huma.Schema{Type: kind, Description: text.Doc}
		if text.Required {
			schema.Required = append(schema.Required, text.Name)
		}
	}
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: schema}}}
}

// documentEvents describes the events, each as one item type of the stream's list.
func documentEvents(kinds map[string]any, schemas huma.Registry) huma.Response {
	list := make([]*huma.Schema, 0, len(kinds))
	for name, data := range kinds {
		content := *schemas.Schema(reflect.TypeOf(data), true, "")
		content.Description = "Data of the event"
		list = append(list, &huma.Schema{
			Type: huma.TypeObject, Title: name, Required: []string{"event", "data"},
			Properties: map[string]*huma.Schema{
				"event": {Type: huma.TypeString, Enum: []any{name}, Description: "Name of the event"},
				"data":  &content,
				"id":    {Type: huma.TypeString, Description: "Send it as Last-Event-ID to resume the stream"},
			},
		})
	}
	slices.SortFunc(list, func(x, y *huma.Schema) int { return strings.Compare(x.Title, y.Title) })
	items := &huma.Schema{OneOf: list}
	if len(list) == 1 {
		items = list[0]
	}
	all := &huma.Schema{Type: huma.TypeArray, Description: "Server-sent events, one after the other", Items: items}
	return huma.Response{
		Description: http.StatusText(http.StatusOK), Content: map[string]*huma.MediaType{"text/event-stream": {Schema: all}},
	}
}

func write(o api.Op) bool { return o.Method != http.MethodGet }

// document adds the consequences of the Op to an operation's description.
func document(o api.Op, h *huma.Operation) {
	if !o.Public {
		h.Security = []map[string][]string{{"bearer": {}}}
	}
	if !o.Public || o.OptionalAuth {
		h.Parameters = append(h.Parameters, header("Bahi-Workspace", "Workspace of the request, if not the caller's default", "string", "uuid"))
	}
	if len(o.Reads) > 0 && !write(o) {
		h.Parameters = append(h.Parameters,
			header("Bahi-Min-Position", "Wait (at most 5 s) until the answer is complete up to this position of the log", "integer", "int64"))
	}
	if write(o) {
		if !o.NoKey {
			h.Parameters = append(h.Parameters,
				header("Idempotency-Key", "1 to 255 characters: the same key and request have one effect, for ever", "string", ""))
		}
		h.Parameters = append(h.Parameters,
			header("If-Match", "The ETag that the caller has seen; 412 when it is not the newest", "string", ""),
			header("Bahi-Reason", "Why, in at most 500 characters of percent-encoded UTF-8; kept for the audit trail", "string", ""),
			header("Prefer", "return=representation: return the whole resource, balances included", "string", ""))
		if o.DryRun {
			h.Parameters = append(h.Parameters, header("Bahi-Dry-Run", "true: decide and validate, write nothing, answer 200", "boolean", ""))
		}
	}
	h.Extensions = map[string]any{}
	switch {
	case o.OptionalAuth: // a credential or none
		h.Extensions["security"] = []any{map[string]any{}, map[string]any{"bearer": []string{}}}
	case o.Public: // huma leaves an empty list out
		h.Extensions["security"] = []any{}
	}
	if o.Limit != "" {
		h.Extensions["x-rate-limit"] = o.Limit
	}
	switch {
	case o.Operator:
		h.Extensions["x-permission"] = "operator"
	case o.Area != "":
		h.Extensions["x-permission"] = string(o.Area) + ":" + string(o.Level)
	case o.Permission != "":
		h.Extensions["x-permission"] = o.Permission
	}
	documentAnswers(o, h)
}

func header(name, description, kind, format string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: description, Schema: &huma.Schema{Type: kind, Format: format}}
}

func documentAnswers(o api.Op, h *huma.Operation) {
	success := h.Responses[strconv.Itoa(status(o))]
	if success.Headers == nil {
		success.Headers = map[string]*huma.Param{}
	}
	answer := func(name, description, kind string) {
		success.Headers[name] = &huma.Param{Description: description, Schema: &huma.Schema{Type: kind}}
	}
	answer("X-Request-Id", "Names the request in logs, events and errors", "string")
	if len(o.Reads) > 0 || write(o) {
		answer("Bahi-Position", "Log position of the write, or up to which the response is complete", "integer")
	}
	if len(o.Reads) > 0 {
		answer("Warning", `110 - "Response is Stale": the answer lacks what the log had`, "string")
		answer("Bahi-Stale", "true: the response lacks the newest events", "boolean")
	}
	if write(o) && !o.NoKey {
		answer("Idempotency-Replayed", "true: an earlier request with this key did it", "boolean")
	}
	statuses := append([]int{http.StatusInternalServerError, http.StatusServiceUnavailable}, o.Errors...)
	switch {
	case !o.Public:
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound)
	case o.OptionalAuth: // the credential, or the workspace, is wrong
		statuses = append(statuses, http.StatusUnauthorized, http.StatusNotFound)
	}
	if len(h.Parameters) > 0 || h.RequestBody != nil {
		statuses = append(statuses, http.StatusBadRequest, http.StatusUnprocessableEntity)
	}
	if write(o) {
		statuses = append(statuses, http.StatusPreconditionFailed)
		if !o.Refusals { // a webhook call is stored whatever the state of its records
			statuses = append(statuses, http.StatusConflict)
		}
	}
	if h.RequestBody != nil {
		statuses = append(statuses, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if o.Limit != "" || !o.Public || o.OptionalAuth { // refused credentials are limited too
		statuses = append(statuses, http.StatusTooManyRequests)
	}
	delete(h.Responses, "default")
	showExamples(o, h, success)
	for _, status := range statuses {
		h.Responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + responseName(status)}
	}
}

// refusals are the statuses of refusals, each a component of the document.
var refusals = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
	http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable,
}

func responseName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

// documentRefusals returns the components that operations refer to.
func documentRefusals() map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for _, status := range refusals {
		refusal := &huma.Response{
			Description: codesOf(status),
			Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: &huma.Schema{Ref: schemaPrefix + "Problem"}, Example: exampleOf(status)},
			},
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			refusal.Headers = map[string]*huma.Param{
				"Retry-After": {Description: "Seconds to wait before the next try", Schema: &huma.Schema{Type: "integer"}},
			}
		}
		all[responseName(status)] = refusal
	}
	return all
}

// showExamples adds the operation's example to its description.
func showExamples(o api.Op, h *huma.Operation, success *huma.Response) {
	const kind = "application/json"
	e := committedExamples()[o.ID]
	if h.RequestBody != nil && h.RequestBody.Content[kind] != nil && e.Request != nil {
		h.RequestBody.Content[kind].Example = e.Request
	}
	if success.Content[kind] != nil && e.Answer != nil {
		success.Content[kind].Example = e.Answer
	}
}

// further has the refusals' own codes, by status. The code of a conflict about another record's value is named after the field.
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

// codesOf documents a refusal's codes.
func codesOf(status int) string {
	return http.StatusText(status) + ". `code`: " + strings.Join(append([]string{api.ProblemOf(status).Code}, further[status]...), ", ")
}

// exampleOf returns a problem of a status with its default code.
func exampleOf(status int) any {
	p := api.ProblemOf(status)
	return map[string]any{"detail": p.Detail, "code": p.Code, "status": status, "title": http.StatusText(status),
		"request_id": "9b78ec1b6e030ca406e730d79703fa40"}
}

// nullable documents which values may be null. Huma marks pointers to plain types, but omits null from their enums.
func nullable(document []byte, registry huma.Registry) ([]byte, error) {
	var all map[string]any
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&all); err != nil {
		return nil, err
	}
	components, _ := all["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for name, schema := range schemas {
		object, _ := schema.(map[string]any)
		properties, _ := object["properties"].(map[string]any)
		if t := registry.TypeFromRef(schemaPrefix + name); t != nil {
			nullPointers(t, properties)
		}
	}
	narrowNulls(all)
	addFieldExamples(all, schemas)
	if err := addSharedExamples(schemas); err != nil {
		return nil, err
	}
	paths, _ := all["paths"].(map[string]any)
	all["paths"] = pathsInOrder(paths)
	return json.Marshal(all)
}

// pathsInOrder orders paths by the area of their first operation, in the order of areas, then by their names.
type pathsInOrder map[string]any

// areas are the first tags of operations in the document's order.
var areas = []string{"Ledger", "Order drafts", "Khata", "Marketplace", "Messaging", "Webhooks", "Audit", "Operations"}

// MarshalJSON writes the paths in their order.
func (p pathsInOrder) MarshalJSON() ([]byte, error) {
	place := func(path string) int {
		for _, operation := range p[path].(map[string]any) {
			if o, is := operation.(map[string]any); is {
				tags, _ := o["tags"].([]any)
				return slices.IndexFunc(areas, func(area string) bool { return len(tags) > 0 && tags[0] == area })
			}
		}
		return -1
	}
	names := slices.SortedFunc(maps.Keys(p), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
	})
	text := []byte{'{'}
	for i, name := range names {
		one, err := json.Marshal(map[string]any{name: p[name]})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, one[1:len(one)-1]...)
	}
	return append(text, '}'), nil
}

// nullPointers marks the pointers of a type that responses always contain.
func nullPointers(t reflect.Type, properties map[string]any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		property, there := properties[name].(map[string]any)
		switch {
		case f.Anonymous && name == "":
			nullPointers(f.Type, properties)
		case !there || f.Type.Kind() != reflect.Pointer || strings.Contains(options, "omit"):
		case property["$ref"] != nil:
			properties[name] = map[string]any{
				"anyOf":       []any{map[string]any{"$ref": property["$ref"]}, map[string]any{"type": "null"}},
				"description": property["description"],
			}
		default:
			if kind, plain := property["type"].(string); plain {
				property["type"] = []any{kind, "null"}
			}
		}
	}
}

// narrowNulls adds null to the enums of values that may be null, and removes null from the types of lists. A PATCH accepts null for some
// lists, but [] has the same effect.
func narrowNulls(value any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			narrowNulls(one)
		}
	case map[string]any:
		kinds, _ := v["type"].([]any)
		if slices.Contains(kinds, any("array")) {
			v["type"] = "array"
		}
		if values, is := v["enum"].([]any); is && slices.Contains(kinds, any("null")) && !slices.Contains(values, nil) {
			v["enum"] = append(values, nil)
		}
		for name, one := range v {
			if name != "example" && name != "examples" {
				narrowNulls(one)
			}
		}
	}
}
