package botwebhook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
)

// change has the changed texts.
type change struct {
	Name, URL, Method, Description patch.Field[string]
}

const (
	maxURL         = 2048
	maxDescription = 5000
	maxEntries     = 50 // headers, query parameters, parameters
	maxValue       = 2000
	maxJSON        = 64 << 10 // bytes
	maxNumber      = 30       // characters
)

var (
	parameterName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	number        = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,9})?$`)
	placeholder   = regexp.MustCompile(`\{([^{}/]*)\}|:([A-Za-z0-9_-]+)`)
)

// reservedHeaders are headers that the call sets itself.
var reservedHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "webhook-id", "webhook-timestamp",
	"webhook-signature", "idempotency-key"}

func secret(bot int64, text string) event.Secret {
	return event.NewSecret(bots.Of(strconv.FormatInt(bot, 10)), text)
}

func differing(after, before string) patch.Field[string] {
	return patch.Differing(patch.Set(after), before)
}

// apply returns the call after a change, or all faults (CONTRACT.md B9).
func (in Input) apply(bot int64, before Call, c change) (call Call, err error) {
	call = before
	var faults []error
	text := func(into *string, f patch.Field[string], rule func(string) (string, error)) {
		f, err := f.With(rule)
		faults = append(faults, err)
		*into = f.Or(*into)
	}
	text(&call.Name, c.Name, func(text string) (string, error) { return person.Name("name", text) })
	text(&call.Description, c.Description, func(text string) (string, error) {
		return wording.Required("description", text, maxDescription)
	})
	text(&call.URL, c.URL, address)
	text(&call.Method, c.Method, func(text string) (string, error) { return text, nil })
	moved := c.URL.Present() && before.URL != "" && server(call.URL) != server(before.URL)
	members, err := object(in.JSON)
	faults = append(faults, err)
	for _, list := range []struct {
		field string
		in    patch.Field[map[string]string]
		of    *[]Header
		valid func(name, value string) string
	}{{"headers", in.Headers, &call.Headers, header}, {"queryParams", in.Query, &call.Query, free}, {"jsonData", members, &call.JSON, free}} {
		*list.of, err = sealed(bot, list.field, list.in, *list.of, moved, list.valid)
		faults = append(faults, err)
	}
	parameters, err := in.parameters(bot, before, moved)
	faults, call.Parameters = append(faults, err), parameters
	complete := err == nil && (in.Parameters.State != patch.Given || in.Parameters.Value != nil)
	return call, fault.Join(append(faults, call.placed(complete)...)...)
}

// address checks the address of an endpoint and returns it unchanged.
func address(text string) (string, error) {
	text, err := wording.Normalise("url", text, maxURL)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" ||
		strings.ContainsAny(text, " \t\r\n") {
		return "", fault.Wrong("url", "expected an address like https://shop.example/stock/{sku}")
	}
	if placeholder.MatchString(u.Host) && strings.ContainsAny(u.Host, "{}") || strings.ContainsAny(u.RawQuery, "{}") {
		return "", fault.Wrong("url", "placeholders are allowed in the path only")
	}
	return text, nil
}

// server returns the scheme, host and port of the server that receives the secrets.
func server(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	port := u.Port()
	port = cmp.Or(port, map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// object returns the members of a body with their values as JSON.
func object(f patch.Field[map[string]json.RawMessage]) (members patch.Field[map[string]string], err error) {
	if !f.Present() {
		return members, nil
	}
	text, err := json.Marshal(f.Value)
	if err != nil || len(text) > maxJSON {
		return members, fault.Wrong("jsonData", "at most 64 KB")
	}
	all := map[string]string{}
	for name, value := range f.Value {
		if all[name] = string(value); all[name] == `"`+Stars+`"` {
			all[name] = Stars
		}
	}
	return patch.Set(all), nil
}

// entries checks names and values.
func entries(field string, all map[string]string) error {
	if len(all) > maxEntries {
		return fault.Wrong(field, fmt.Sprintf("at most %d entries", maxEntries))
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "" || len(name) > 100 || len(all[name]) > maxValue {
			faults = append(faults, fault.Wrong(field+"."+name, fmt.Sprintf("a name of 1 to 100 and a value of at most %d characters", maxValue)))
		}
	}
	return fault.Join(faults...)
}

// header returns the fault of a header.
func header(name, value string) string {
	switch {
	case !httpguts.ValidHeaderFieldName(name) || slices.Contains(reservedHeaders, strings.ToLower(name)):
		return "not a header that may be set"
	case !httpguts.ValidHeaderFieldValue(value):
		return "control characters are not allowed"
	default:
		return ""
	}
}

func free(string, string) string { return "" }

// sealed returns the values of one kind after a change. A change of the server requires all values in the request. Names of headers are
// case-insensitive.
func sealed(bot int64, of string, in patch.Field[map[string]string], before []Header, moved bool,
	valid func(name, value string) string) (after []Header, err error) {
	if !in.Present() {
		if moved && len(before) > 0 {
			return nil, fault.Wrong(of, again)
		}
		return before, nil
	}
	var faults []error
	if of != "jsonData" { // the size of jsonData is checked
		faults = append(faults, entries(of, in.Value))
	}
	same := func(a, b string) bool { return a == b || of == "headers" && strings.EqualFold(a, b) }
	for _, name := range slices.Sorted(maps.Keys(in.Value)) {
		value, field := in.Value[name], of+"."+name
		kept := slices.IndexFunc(before, func(h Header) bool { return same(h.Name, name) })
		h, said := Header{Name: name}, valid(name, value)
		switch {
		case said != "":
			faults = append(faults, fault.Wrong(field, said))
		case slices.ContainsFunc(after, func(h Header) bool { return same(h.Name, name) }):
			faults = append(faults, fault.Wrong(field, "occurs twice"))
		case value == Stars && kept < 0:
			faults = append(faults, fault.Wrong(field, "there is no value to keep"))
		case value == Stars && moved:
			faults = append(faults, fault.Wrong(field, again))
		case value == Stars:
			h.Value = before[kept].Value
		default:
			h.Value = secret(bot, value)
		}
		after = append(after, h)
	}
	return after, fault.Join(faults...)
}

const again = "must be given again, since url names another server"

// parameters returns the parameters after a change.
func (in Input) parameters(bot int64, before Call, moved bool) (after []Parameter, err error) {
	if !in.Parameters.Present() {
		if moved && slices.ContainsFunc(before.Parameters, func(p Parameter) bool { return p.Source == Fixed }) {
			return nil, fault.Wrong("parameters", again)
		}
		return before.Parameters, nil
	}
	var faults []error
	for i, g := range in.Parameters.Value {
		field := fmt.Sprintf("parameters[%d].", i)
		p := Parameter{Name: g.Name, DataType: g.DataType, Place: g.Place, Source: g.Source}
		kept := slices.IndexFunc(before.Parameters, func(p Parameter) bool { return p.Name == g.Name && p.Source == Fixed })
		switch {
		case !parameterName.MatchString(g.Name):
			faults = append(faults, fault.Wrong(field+"name", "1 to 64 letters, digits, _ and -"))
		case slices.ContainsFunc(after, func(p Parameter) bool { return p.Name == g.Name }):
			faults = append(faults, fault.Wrong(field+"name", "occurs twice"))
		}
		switch {
		case g.Source == ByAI && g.Value.State == patch.Given && g.Value.Value != "":
			faults = append(faults, fault.Wrong(field+"value", "only a fixed parameter has one"))
		case g.Source == ByAI:
		case g.Value.State != patch.Given:
			faults = append(faults, fault.Wrong(field+"value", "is required"))
		case g.Value.Value == Stars && kept < 0:
			faults = append(faults, fault.Wrong(field+"value", "there is no value to keep"))
		case g.Value.Value == Stars && moved:
			faults = append(faults, fault.Wrong(field+"value", again))
		case g.Value.Value == Stars:
			p.Value = before.Parameters[kept].Value
		default:
			if _, err := Coerce(g.DataType, g.Value.Value); err != nil {
				faults = append(faults, fault.Wrong(field+"value", err.Error()))
			}
			p.Value = secret(bot, g.Value.Value)
		}
		after = append(after, p)
	}
	return after, fault.Join(faults...)
}

// placed returns the faults of path parameters: each placeholder of the path requires a parameter, and each parameter a placeholder.
// complete reports whether all parameters are known. An unreadable url is empty.
func (c Call) placed(complete bool) (faults []error) {
	found := map[string]bool{}
	for _, name := range c.Placeholders() {
		found[name] = true
	}
	for i, p := range c.Parameters {
		field := fmt.Sprintf("parameters[%d].type", i)
		switch {
		case p.Place == InPath && c.URL != "" && parameterName.MatchString(p.Name) && !found[p.Name]:
			faults = append(faults, fault.Wrong(field, "the url has no placeholder {"+p.Name+"}"))
		case p.Place == inBody && c.Method == "GET":
			faults = append(faults, fault.Wrong(field, "GET has no body"))
		case p.Place == InPath:
			delete(found, p.Name)
		case p.Place != inBody && p.Place != InQuery:
			complete = false
		}
	}
	if !complete {
		return faults
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		faults = append(faults, fault.Wrong("url", "no path_param fills the placeholder "+name))
	}
	return faults
}

// Placeholders returns the names of the placeholders in the path: {name} or :name.
func (c Call) Placeholders() (names []string) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil
	}
	for _, m := range placeholder.FindAllStringSubmatch(u.Path, -1) {
		names = append(names, m[1]+m[2])
	}
	return names
}

// Expand returns the address with the values of its placeholders.
func (c Call) Expand(values map[string]string) string {
	base, rest := c.URL, ""
	if i := strings.IndexByte(base, '?'); i >= 0 {
		base, rest = base[:i], base[i:]
	}
	at := strings.Index(base, "://") + len("://")
	slash := strings.IndexByte(base[at:], '/')
	if slash < 0 {
		return c.URL
	}
	at += slash
	path := placeholder.ReplaceAllStringFunc(base[at:], func(name string) string {
		return url.PathEscape(values[strings.Trim(name, "{}:")])
	})
	return base[:at] + path + rest
}

// Coerce converts a value to its data type in JSON: a number to json.Number, everything else to text.
func Coerce(dataType string, value any) (any, error) {
	text, isText := value.(string)
	if n, ok := value.(json.Number); ok {
		text, isText = n.String(), dataType == Number || dataType == String
	}
	if !isText {
		return nil, fmt.Errorf("expected a %s", dataType)
	}
	if len(text) > maxValue {
		return nil, fmt.Errorf("at most %d characters", maxValue)
	}
	switch dataType {
	case Number:
		text = strings.TrimSpace(text)
		if len(text) > maxNumber || !number.MatchString(text) {
			return nil, fmt.Errorf("expected a number, as in 12.5")
		}
		return json.Number(strings.TrimPrefix(text, "+")), nil
	case Date:
		if _, err := time.Parse(time.DateOnly, strings.TrimSpace(text)); err != nil {
			return nil, fmt.Errorf("expected a date, as in 2026-03-31")
		}
		return strings.TrimSpace(text), nil
	case Datetime:
		if _, err := time.Parse(time.RFC3339, strings.TrimSpace(text)); err != nil {
			return nil, fmt.Errorf("expected a time, as in 2026-03-31T18:00:00+05:30")
		}
		return strings.TrimSpace(text), nil
	default:
		return text, nil
	}
}
