package botwebhook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/botwebhook"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

func secret(text string) event.Secret { return event.NewSecret("bot-1", text) }

func given(name, place, source string, value patch.Field[string]) botwebhook.Given {
	return botwebhook.Given{Name: name, DataType: "string", Place: place, Source: source, Value: value}
}

var create = botwebhook.Create{
	Name: "Stock", URL: "https://shop.example/stock/{sku}?v=1", Method: "POST", Description: "Tells the stock", Bot: 1, Secret: "whsec_x",
	Input: botwebhook.Input{
		Headers: patch.Set(map[string]string{"X-Key": "k", "A": "b"}), Query: patch.Set(map[string]string{"shop": "1"}),
		JSON: patch.Set(map[string]json.RawMessage{"n": json.RawMessage("9007199254740993")}),
		Parameters: patch.Set([]botwebhook.Given{given("sku", "path_param", "by_ai", patch.Field[string]{}),
			given("till", "post_data", "fixed", patch.Set("7"))}),
	},
}

var made = botwebhook.Created{
	Bot: 1, Active: true, Signing: secret("whsec_x"),
	Call: botwebhook.Call{
		Name: "Stock", URL: "https://shop.example/stock/{sku}?v=1", Method: "POST", Description: "Tells the stock",
		Query: []botwebhook.Header{{Name: "shop", Value: secret("1")}}, JSON: []botwebhook.Header{{Name: "n", Value: secret("9007199254740993")}},
		Headers: []botwebhook.Header{{Name: "A", Value: secret("b")}, {Name: "X-Key", Value: secret("k")}},
		Parameters: []botwebhook.Parameter{
			{Name: "sku", DataType: "string", Place: "path_param", Source: "by_ai"},
			{Name: "till", DataType: "string", Place: "post_data", Source: "fixed", Value: secret("7")},
		},
	},
}

func TestCreate(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, botwebhook.Kind)
	none.Case("its secrets are sealed with the bot's key").When(create).Then(made)
	wrong := create
	wrong.URL, wrong.Method = "https://shop.example/:a/{b}", "GET"
	none.Case("each placeholder has a parameter, and the reverse").When(wrong).ThenFails(fault.Fields(
		fault.Field{Field: "parameters[0].type", Message: "the url has no placeholder {sku}"},
		fault.Field{Field: "parameters[1].type", Message: "GET has no body"},
		fault.Field{Field: "url", Message: "no path_param fills the placeholder a"},
		fault.Field{Field: "url", Message: "no path_param fills the placeholder b"},
	))
	for url, message := range map[string]string{
		"https://{host}.example/":   "expected an address like https://shop.example/stock/{sku}",
		"https://a.example/?q={x}":  "placeholders are allowed in the path only",
		"ftp://a.example/":          "expected an address like https://shop.example/stock/{sku}",
		"https://u:p@a.example/":    "expected an address like https://shop.example/stock/{sku}",
		"https://a.example:port/{}": "expected an address like https://shop.example/stock/{sku}",
	} {
		bad := botwebhook.Create{Name: "S", URL: url, Method: "GET", Description: "d", Bot: 1}
		_, err := bad.Decide(botwebhook.State{})
		require.Equal(t, fault.Fields(fault.Field{Field: "url", Message: message}), err, url)
	}
	bad := create
	bad.URL, bad.Method = "https://shop.example/{unfilled}", "GET"
	bad.Headers = patch.Set(map[string]string{"Host": "x", "B": "a\r\nC: d", "ok": "********", "a b": "c"})
	bad.Parameters = patch.Set([]botwebhook.Given{
		given("a b", "query_param", "by_ai", patch.Field[string]{}), given("x", "query_param", "fixed", patch.Field[string]{}),
		given("x", "post_data", "fixed", patch.Field[string]{}), given("sku", "path_param", "by_ai", patch.Field[string]{}),
		{Name: "n", DataType: "number", Place: "query_param", Source: "fixed", Value: patch.Set("1e9")},
		given("y", "query_param", "by_ai", patch.Set("v")),
	})
	_, err := bad.Decide(botwebhook.State{})
	refused := &fault.Error{}
	require.ErrorAs(t, err, &refused)
	var fields []string
	for _, f := range refused.Fields {
		fields = append(fields, f.Field+": "+f.Message)
	}
	require.Equal(t, []string{
		"headers.B: control characters are not allowed", "headers.Host: not a header that may be set",
		"headers.a b: not a header that may be set", "headers.ok: there is no value to keep",
		"parameters[0].name: 1 to 64 letters, digits, _ and -", "parameters[1].value: is required", "parameters[2].name: occurs twice",
		"parameters[2].value: is required", "parameters[4].value: expected a number, as in 12.5",
		"parameters[5].value: only a fixed parameter has one", "parameters[2].type: GET has no body",
		"parameters[3].type: the url has no placeholder {sku}",
	}, fields)
	unread := create
	unread.URL, unread.Name, unread.Parameters.Value = "https://shop.example/{sku}", "", nil // the parameters were unreadable
	none.Case("an unreadable list has no faults").When(unread).ThenFails(fault.Wrong("name", "1 to 100 characters"))
	unread.Parameters = patch.Set([]botwebhook.Given{given("sku", "path", "by_ai", patch.Field[string]{})})
	none.Case("nor has a place").When(unread).ThenFails(fault.Wrong("name", "1 to 100 characters"))
	unread.Parameters, unread.URL = create.Parameters, "shop"
	none.Case("nor an address").When(unread).ThenFails(fault.Fields(fault.Field{Field: "name", Message: "1 to 100 characters"},
		fault.Field{Field: "url", Message: "expected an address like https://shop.example/stock/{sku}"}))
}

func TestEdit(t *testing.T) {
	t.Parallel()
	history := eventtest.Given(t, botwebhook.Kind, made)
	history.Case("nothing").When(botwebhook.Edit{Bot: 1}).ThenNothing()
	history.Case("another bot's").When(botwebhook.Edit{Bot: 2}).ThenFails(botwebhook.ErrNotFound)
	history.Case("it is switched off").When(botwebhook.Edit{Bot: 1,
		Active: patch.Set(false)}).Then(botwebhook.Edited{Active: patch.Set(false)})
	history.Case("null empties").When(botwebhook.Edit{Bot: 1,
		Input: botwebhook.Input{JSON: patch.Clear[map[string]json.RawMessage](), Query: patch.Clear[map[string]string]()}}).
		Then(botwebhook.Edited{JSON: patch.Clear[[]botwebhook.Header](), Query: patch.Clear[[]botwebhook.Header]()})
	keep := patch.Set(map[string]string{"x-key": botwebhook.Stars})
	history.Case("stars keep a secret, what is not named goes").When(botwebhook.Edit{Bot: 1, Input: botwebhook.Input{Headers: keep}}).
		Then(botwebhook.Edited{Headers: patch.Set([]botwebhook.Header{{Name: "x-key", Value: secret("k")}})})
	history.Case("stars keep a value of the body and the query").When(botwebhook.Edit{Bot: 1, Input: botwebhook.Input{
		JSON:  patch.Set(map[string]json.RawMessage{"n": json.RawMessage(`"********"`), "b": json.RawMessage(`{"c":[1]}`)}),
		Query: patch.Set(map[string]string{"shop": botwebhook.Stars}),
	}}).Then(botwebhook.Edited{
		JSON:  patch.Set([]botwebhook.Header{{Name: "b", Value: secret(`{"c":[1]}`)}, {Name: "n", Value: secret("9007199254740993")}}),
		Query: patch.Set(made.Query),
	})
	elsewhere := patch.Set("https://thief.example/{sku}")
	history.Case("another server wants the secrets again").When(botwebhook.Edit{Bot: 1, URL: elsewhere,
		Input: botwebhook.Input{Headers: keep}}).ThenFails(fault.Fields(
		fault.Field{Field: "headers.x-key", Message: "must be given again, since url names another server"},
		fault.Field{Field: "queryParams", Message: "must be given again, since url names another server"},
		fault.Field{Field: "jsonData", Message: "must be given again, since url names another server"},
		fault.Field{Field: "parameters", Message: "must be given again, since url names another server"},
	))
	history.Case("another path does not").When(botwebhook.Edit{Bot: 1, URL: patch.Set("https://shop.example:443/v2/{sku}")}).
		Then(botwebhook.Edited{URL: patch.Set("https://shop.example:443/v2/{sku}")})
}

func TestValuesAreCoerced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dataType string
		value    any
		want     any
	}{
		{"string", "a", "a"}, {"string", json.Number("12"), "12"}, {"number", " 12.50 ", json.Number("12.50")},
		{"number", json.Number("-3"), json.Number("-3")},
		{"date", "2026-03-31", "2026-03-31"}, {"datetime", "2026-03-31T18:00:00+05:30", "2026-03-31T18:00:00+05:30"},
	} {
		got, err := botwebhook.Coerce(c.dataType, c.value)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for dataType, values := range map[string][]any{
		"string": {nil, true, []any{"a"}, strings.Repeat("a", 2001)}, "number": {"1e9", "NaN", "", "12,5", map[string]any{}},
		"date": {"31.3.2026", json.Number("2026")}, "datetime": {"2026-03-31"},
	} {
		for _, value := range values {
			_, err := botwebhook.Coerce(dataType, value)
			require.Error(t, err, "%s %v", dataType, value)
		}
	}
}

func TestPlaceholdersAreFilledInThePathAlone(t *testing.T) {
	t.Parallel()
	call := botwebhook.Call{URL: "https://shop.example:8443/a/{sku}/:size?x=:y"}
	require.Equal(t, []string{"sku", "size"}, call.Placeholders())
	require.Equal(t, "https://shop.example:8443/a/b%2Fc%3F/%E0%A4%86?x=:y", call.Expand(map[string]string{"sku": "b/c?", "size": "आ"}))
	require.Equal(t, "https://shop.example", botwebhook.Call{URL: "https://shop.example"}.Expand(nil))
}
