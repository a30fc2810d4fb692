package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
)

var readSpec = sync.OnceValues(func() (document, error) {
	spec, err := os.ReadFile("../testdata/openapi.json")
	if err != nil {
		return nil, err
	}
	return readDocument(spec)
})

func operationOf(t testing.TB, id string) *operation {
	t.Helper()
	d, err := readSpec()
	require.NoError(t, err)
	o, known := d[id]
	require.True(t, known, id)
	return o
}

func TestSchemaOfAnOperation(t *testing.T) {
	t.Parallel()
	o := operationOf(t, "add-karigar-row")
	require.Equal(t, "POST /karigar-ledger/{karigar_id} ledger:write", o.Method+" "+o.Path+" "+o.Permission)
	require.True(t, o.DryRun && o.Match && o.Key && !o.Files)
	require.Equal(t, "path karigar_id whole", o.Params[0].In+" "+o.Params[0].Name+" "+o.Params[0].Kind)
	var entry []string
	for _, p := range o.Body.Properties[1].Items.Properties {
		entry = append(entry, strings.TrimSpace(p.Name+" "+p.Unit))
	}
	require.Equal(t, []string{
		"item_name", "computed", "pure_weight g", "fine_percent %", "fine_weight g", "wastage_percent %", "wastage_weight g", "other ₹",
		"metal",
	}, entry)

	require.True(t, operationOf(t, "upload-khata").Files)
	require.Nil(t, operationOf(t, "receive-billing").Body)
	require.Nil(t, operationOf(t, "list-polishers").Body)
	require.False(t, operationOf(t, "list-polishers").DryRun)
	require.Equal(t, "operator", operationOf(t, "list-jobs").Permission)
	require.Len(t, operationOf(t, "edit-karigar-row").Body.without("id", "row_id").Properties, 3)

	for _, p := range operationOf(t, "edit-bot-webhook").Body.Properties {
		require.Equal(t, p.Name == "headers" || p.Name == "jsonData" || p.Name == "queryParams", p.Secret, p.Name)
	}

	d, _ := readSpec()
	_, known := d["no-such-operation"]
	require.False(t, known)
	_, err := readDocument([]byte(`{"paths":`))
	require.Error(t, err)
}

func TestSchemaKinds(t *testing.T) {
	t.Parallel()
	for spec, kind := range map[string]string{
		`{"type":"string"}`:                                                          "text",
		`{"type":["string","null"]}`:                                                 "text?",
		`{"type":"string","maxLength":201}`:                                          "area",
		`{"type":"string","enum":["a"]}`:                                             "select",
		`{"type":"string","format":"date"}`:                                          "date",
		`{"type":"integer"}`:                                                         "whole",
		`{"type":"number"}`:                                                          "number",
		`{"type":"boolean"}`:                                                         "tick",
		`{"$ref":"#/components/schemas/One"}`:                                        "group",
		`{"anyOf":[{"$ref":"#/components/schemas/One"},{"type":"null"}]}`:            "group?",
		`{"type":"array","items":{"$ref":"#/components/schemas/One"}}`:               "lines",
		`{"type":["array","null"],"items":{"type":"integer"}}`:                       "list?",
		`{"type":"array","items":{"type":"array","items":{"type":"string"}}}`:        "json",
		`{"type":"object","additionalProperties":{"type":"string"}}`:                 "map",
		`{"type":"object","additionalProperties":{}}`:                                "map",
		`{"type":"object","additionalProperties":true}`:                              "json",
		`{"oneOf":[{"type":"string"},{"type":"integer"}]}`:                           "json",
		`{"$ref":"#/components/schemas/Loop"}`:                                       "json",
		`{"$ref":"#/components/schemas/Self"}`:                                       "group",
		`{"type":"string","format":"binary","contentMediaType":"application/x-any"}`: "file",
	} {
		var s specSchema
		require.NoError(t, decode([]byte(spec), &s))
		all := specSchemas{}
		require.NoError(t, decode([]byte(`{"One":{"type":"object","properties":{"a":{"type":"string"}}},
			"Loop":{"$ref":"#/components/schemas/Loop"},
			"Self":{"type":"object","properties":{"self":{"$ref":"#/components/schemas/Self"}}}}`), &all))
		read := all.read("x", s, 0)
		require.Equal(t, kind, read.Kind+strings.Repeat("?", map[bool]int{true: 1}[read.Nullable]), spec)
	}
}

// TestFormOfEveryOperation draws each body with a value in every field as HTML, and reads it back as a browser would send it.
func TestFormOfEveryOperation(t *testing.T) {
	t.Parallel()
	d, err := readSpec()
	require.NoError(t, err)
	for id, o := range d {
		if o.Body == nil || o.Files {
			continue
		}
		body, has := valueOf(o.Body).(map[string]any)
		if !has { // only secrets
			body = map[string]any{}
		}
		drawn := draw(t, o.Body.fields("", body, nil, 2))
		for _, edit := range []bool{false, true} {
			read := o.Body.read(drawn, edit)
			require.Equal(t, asJSON(t, body), asJSON(t, read), "%s\n%v", id, drawn)
		}
	}
}

func TestFormOfRows(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"add-bank-row", "add-karigar-row", "add-client-row", "add-bullion-row", "add-polisher-row"} {
		o := operationOf(t, id)
		require.NotEmpty(t, o.Example, id)
		require.Equal(t, asJSON(t, o.Example), asJSON(t, o.Body.read(draw(t, o.Body.fields("", o.Example, nil, 3)), false)), id)
		require.Empty(t, o.Body.read(draw(t, o.Body.fields("", nil, nil, 3)), false), id)
	}
	var entered []string
	for _, f := range operationOf(t, "add-polisher-row").Body.fields("", nil, nil, 1)[1].Lines[0] {
		if !f.Passed {
			entered = append(entered, f.Key)
		}
	}
	require.Equal(t, []string{"item_name", "pieces", "weight", "loss_weight", "amount", "description"}, entered, "Enter skips the rate")
}

func TestFormReadsKinds(t *testing.T) {
	t.Parallel()
	text, number := &schema{Kind: "text"}, &schema{Kind: "number"}
	list, pairs := schema{Kind: "list", Items: number, Nullable: true}, schema{Kind: "map", Items: text}
	for name, c := range map[string]struct {
		s          schema
		in         url.Values
		body, edit string
	}{
		"text":                    {schema{Kind: "text"}, url.Values{"x": {" payal "}}, `{"x":"payal"}`, `{"x":"payal"}`},
		"no input":                {schema{Kind: "text"}, nil, `{}`, `{}`},
		"empty text":              {schema{Kind: "text"}, url.Values{"x": {" "}}, `{}`, `{"x":""}`},
		"empty text or null":      {schema{Kind: "text", Nullable: true}, url.Values{"x": {""}}, `{}`, `{"x":null}`},
		"empty number":            {schema{Kind: "number"}, url.Values{"x": {""}}, `{}`, `{}`},
		"empty number or null":    {schema{Kind: "number", Nullable: true}, url.Values{"x": {""}}, `{}`, `{"x":null}`},
		"no value at all":         {schema{Kind: "text"}, url.Values{"x": {}}, `{}`, `{}`},
		"long text":               {schema{Kind: "area"}, url.Values{"x": {"a\r\n b"}}, `{"x":"a\n b"}`, `{"x":"a\n b"}`},
		"secret":                  {schema{Kind: "secret"}, url.Values{"x": {" pass "}}, `{"x":" pass "}`, `{"x":" pass "}`},
		"empty secret":            {schema{Kind: "secret", Secret: true, Nullable: true}, url.Values{"x": {""}}, `{}`, `{}`},
		"select":                  {schema{Kind: "select"}, url.Values{"x": {"cash"}}, `{"x":"cash"}`, `{"x":"cash"}`},
		"no choice":               {schema{Kind: "select"}, url.Values{"x": {""}}, `{}`, `{}`},
		"tick":                    {schema{Kind: "tick"}, url.Values{"x": {"", "true"}}, `{"x":true}`, `{"x":true}`},
		"no tick":                 {schema{Kind: "tick"}, url.Values{"x": {""}}, `{}`, `{"x":false}`},
		"no tick where required":  {schema{Kind: "tick", Required: true}, nil, `{"x":false}`, `{"x":false}`},
		"list":                    {list, url.Values{"x": {"1\r\n\n२\nz"}}, `{"x":[1,2,"z"]}`, `{"x":[1,2,"z"]}`},
		"empty list":              {list, url.Values{"x": {""}}, `{}`, `{"x":[]}`},
		"map":                     {pairs, url.Values{"x": {"a = =\nb\n = c"}}, `{"x":{"a":"=","b":""}}`, `{"x":{"a":"=","b":""}}`},
		"empty map of secrets":    {schema{Kind: "map", Secret: true, Items: text}, url.Values{"x": {""}}, `{}`, `{}`},
		"empty map":               {pairs, url.Values{"x": {""}}, `{}`, `{"x":{}}`},
		"any JSON":                {schema{Kind: "json"}, url.Values{"x": {`[1.50,{}]`}}, `{"x":[1.50,{}]}`, `{"x":[1.50,{}]}`},
		"any text":                {schema{Kind: "json"}, url.Values{"x": {"all"}}, `{"x":"all"}`, `{"x":"all"}`},
		"file":                    {schema{Kind: "file"}, url.Values{"x": {"a.pdf"}}, `{}`, `{}`},
		"what a client never set": {schema{Kind: "text", ReadOnly: true}, url.Values{"x": {"a"}}, `{}`, `{}`},
	} {
		s := &schema{Kind: "group", Properties: []property{{"x", &c.s}}}
		require.Equal(t, c.body, asJSON(t, s.read(c.in, false)), name)
		require.Equal(t, c.edit, asJSON(t, s.read(c.in, true)), name)
	}
}

func TestFormNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ unit, text, want string }{
		{"", "1500", `1500`},
		{"₹", "1,20,000", `120000`},
		{"₹", "₹ 1,500.50", `1500.50`},
		{"₹", "12,34,567.00", `1234567.00`},
		{"₹", "1,234,567", `1234567`},
		{"%", "92 %", `92`},
		{"g", "10 g", `10`},
		{"g", "010.500", `10.500`},
		{"g", ".5", `0.5`},
		{"g", "5.", `5`},
		{"g", "0", `0`},
		{"₹", "-5", `-5`},
		{"₹", "−₹5", `-5`},
		{"g", "५२०.२५", `520.25`},
		{"g", "૫૨૦", `520`},
		{"₹", "12345678901234567890.123456789", `12345678901234567890.123456789`},
		// The API refuses these texts, because it expects numbers. None may become another number.
		{"₹", "1,50", `"1,50"`},
		{"g", "0,500", `"0,500"`},
		{"₹", "1,2,3", `"1,2,3"`},
		{"₹", "10 20", `"10 20"`},
		{"₹", "10 g", `"10 g"`},
		{"g", "10 kg", `"10 kg"`},
		{"", "1e5", `"1e5"`},
		{"", "+5", `"+5"`},
		{"", "0x10", `"0x10"`},
		{"", "NaN", `"NaN"`},
		{"", ".", `"."`},
		{"g", "g", `"g"`},
		{"", "- -1", `"- -1"`},
	} {
		require.Equal(t, c.want, asJSON(t, number(c.text, c.unit)), "%q in %q", c.text, c.unit)
	}
}

func TestFormLeavesEmptyLinesOut(t *testing.T) {
	t.Parallel()
	s := operationOf(t, "add-client-row").Body
	in := url.Values{
		"date":                   {"2026-10-06"},
		"in_entries[0].amount":   {""},
		"in_entries[10].amount":  {"3"},
		"in_entries[2].amount":   {"2"},
		"out_entries[0].weight":  {""},
		"out_entries[0].unknown": {"1"},
	}
	require.JSONEq(t, `{"date":"2026-10-06","in_entries":[{"amount":2},{"amount":3}]}`, asJSON(t, s.read(in, false)))
	require.JSONEq(t, `{"date":"2026-10-06","in_entries":[{"amount":2},{"amount":3}],"out_entries":[]}`, asJSON(t, s.read(in, true)))
}

func TestFormShowsFaultsAtTheirFields(t *testing.T) {
	t.Parallel()
	s := operationOf(t, "add-karigar-row").Body
	body := map[string]any{"in_entries": []any{map[string]any{"item_name": `<b>"payal"`, "other": "much"}}}
	faults := map[string]string{
		"in_entries[0].other": "expected number", "out_entries": "is too long", "in_entries[7].other": "is odd", "": "is bad",
	}
	drawn := s.fields("", body, faults, 1)
	require.Equal(t, []string{"is bad", "line 8, Labour: is odd"}, language("en").misplaced(drawn, faults))
	require.Equal(t, []string{"जमा, लाइन 1: " + language("hi").t("a weight or an amount above 0 is needed")},
		language("hi").misplaced(nil, map[string]string{"in_entries[0]": "a weight or an amount above 0 is needed"}))

	page := render(t, drawn)
	require.Contains(t, page, `<input value="much" inputmode="decimal" autocomplete="off" id="f-in_entries-0-other" `+
		`name="in_entries[0].other"`+
		` aria-invalid="true" autofocus aria-describedby="f-in_entries-0-other-hint f-in_entries-0-other-error">`)
	require.Contains(t, page, `<p class="error" id="f-in_entries-0-other-error">expected number</p>`)
	require.Contains(t, page, `<fieldset class="lines" id="f-out_entries" data-lines="out_entries" aria-describedby="f-out_entries-error">`+
		`<legend>Given</legend>`)
	require.Equal(t, 1, strings.Count(page, " autofocus"))
	require.NotContains(t, page, "<b>")

	list := &schema{Kind: "group", Properties: []property{{"ids", &schema{Kind: "list", Items: &schema{Kind: "whole"}}}}}
	require.Equal(t, "expected a whole number", list.fields("", nil, map[string]string{"ids[2]": "expected a whole number"}, 0)[0].Error)
}

func TestFormDrawsInputs(t *testing.T) {
	t.Parallel()
	s := operationOf(t, "add-karigar-row").Body
	body := map[string]any{"in_entries": []any{map[string]any{"fine_weight": json.Number("478.4"), "computed": []any{"fine_weight"}}}}
	page := render(t, s.fields("", body, nil, 0))
	require.Contains(t, page, `<input class="computed" value="" placeholder="478.4" inputmode="decimal" autocomplete="off"`+
		` id="f-in_entries-0-fine_weight"`)
	require.Contains(t, page, `<label for="f-in_entries-0-fine_weight">Fine weight <span class="unit">g</span></label>`)
	require.Contains(t, page, `<label for="f-in_entries-0-fine_percent">Fine %</label>`)
	require.Contains(t, page, `<input type="date" value="" id="f-date" name="date" required>`)
	require.Contains(t, page, `<div class="line" role="group" aria-label="Received, line 1">`)
	require.NotContains(t, page, "computed]")

	secret := &schema{Kind: "group", Properties: []property{{"new_password", &schema{Kind: "secret"}}}}
	page = render(t, secret.fields("", map[string]any{"new_password": "hidden"}, nil, 0))
	require.NotContains(t, page, "hidden\"")
	require.Contains(t, page, `type="password"`)
	own := render(t, operationOf(t, "register").Body.fields("", nil, nil, 0))
	for _, shown := range []string{
		`name="first_name" required autocomplete="given-name"`,
		`<input value="" inputmode="email" id="f-email" name="email" required autocomplete="email"`,
		`type="password" id="f-password" name="password" required autocomplete="new-password"`,
	} {
		require.Contains(t, own, shown)
	}
	for name, label := range map[string]string{"unreadCount": "Unread count", "client_id": "Client", "gstin": "GSTIN"} {
		require.Equal(t, label, labelOf(name))
	}
	for option, words := range map[string]string{"rate_cut": "Rate cut", "per_10g": "per 10 g", "in_stock": "In stock", "": "", "GET": "GET"} {
		require.Equal(t, words, wordOf(option))
	}
}

func TestFormIgnoresWhatIsHostile(t *testing.T) {
	t.Parallel()
	s := operationOf(t, "add-client-row").Body
	in := url.Values{"date": {"2026-10-06", "1999-01-01"}, "in_entries[1].amount": {"2", "3"}}
	want := asJSON(t, s.read(in, true))
	require.JSONEq(t, `{"date":"2026-10-06","in_entries":[{"amount":2}]}`, want)
	for _, name := range []string{
		"in_entries[99999999999].amount", "in_entries[99999999999999999999999].amount", "in_entries[500].amount", "in_entries[-1].amount",
		"in_entries[0][1]", "in_entries[01].amount", "in_entries[+0].amount", "in_entries[].amount", "in_entries[0", "in_entries",
		"in_entries[0]", "in_entries.amount", "in_entries[0].computed", "in_entries[0].amount.x", "id", "", "[", "]", "[0]", ".", "date.x",
		"date[0]", "__proto__", "in_entries[0].\x00", "\xff[\xff", strings.Repeat("[0]", 100_000), strings.Repeat("in_entries[0].", 100),
	} {
		in.Set(name, "1")
	}
	for i := range 10_000 {
		in.Set(fmt.Sprintf("in_entries[%d].amount%d", i, i), "1")
		in.Set(fmt.Sprintf("in_entries[%d].amount", i+maxLines), "1")
		in.Set(fmt.Sprintf("name%d", i), "1")
	}
	require.Equal(t, want, asJSON(t, s.read(in, true)))
}

func FuzzFormBody(f *testing.F) {
	f.Add("date=2026-10-06&in_entries[0].amount=1,20,000")
	f.Add("in_entries[9].kind=cash&x[[]]=")
	f.Add("in_entries[0][1]=%ff&out_entries[3].touch=92 %25")
	s := operationOf(f, "add-bullion-row").Body
	f.Fuzz(func(t *testing.T, query string) {
		in, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		for _, edit := range []bool{false, true} {
			body := s.read(in, edit)
			text := asJSON(t, body)
			again := asJSON(t, s.read(posted(s.fields("", body, nil, 1)), edit))
			if !edit { // an empty form has empty sides for an edit
				require.Equal(t, text, again, "drawn and read again")
			}
		}
	})
}

// valueOf returns a value of a schema with every field that a form can have.
func valueOf(s *schema) any {
	switch s.Kind {
	case "group":
		object := map[string]any{}
		for _, p := range s.Properties {
			if value := valueOf(p.schema); value != nil && !p.ReadOnly {
				object[p.Name] = value
			}
		}
		if len(object) == 0 {
			return nil
		}
		return object
	case "lines", "list":
		return []any{valueOf(s.Items), valueOf(s.Items)}
	case "map":
		return map[string]any{"a": valueOf(s.Items), "b = c": valueOf(s.Items)}
	case "number":
		return json.Number("12.50")
	case "whole":
		return json.Number("12")
	case "tick":
		return true
	case "select":
		return s.Options[len(s.Options)-1]
	case "date":
		return "2026-10-06"
	case "file", "secret":
		return nil
	case "area":
		return "\na <b> \"text\"\nof lines = 2"
	case "json":
		return []any{"a", json.Number("1.0"), nil}
	default:
		return "चाँदी & \"[1]\""
	}
}

func render(t testing.TB, drawn []field) string {
	t.Helper()
	parsed, err := template.New("").Funcs((&Pages{}).functions("en")).ParseFiles("templates/form.html")
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, parsed.ExecuteTemplate(&page, "fields", drawn))
	return page.String()
}

// draw returns the form that a browser sends for inputs. Ids must be unique.
func draw(t testing.TB, drawn []field) url.Values {
	t.Helper()
	page, ids := render(t, drawn), map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		require.False(t, ids[id[1]], id[1])
		ids[id[1]] = true
	}
	return apitest.Filled(page)
}

// posted returns the values of inputs without HTML.
func posted(drawn []field) url.Values {
	in := url.Values{}
	for _, f := range drawn {
		in.Add(f.Name, f.Value)
		for _, inside := range append(f.Lines, f.Fields) {
			maps.Copy(in, posted(inside))
		}
	}
	return in
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return strings.TrimSpace(text.String())
}
