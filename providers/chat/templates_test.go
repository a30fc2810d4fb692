package chat_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
	"bahi/internal/test/worktest"
	"bahi/providers/chat"
)

func TestTemplatesAreReadPageByPageAndSentWithTheirValues(t *testing.T) {
	t.Parallel()
	var sent string
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			sent = string(bodyOf(r))
			_, _ = io.WriteString(w, `{"messages":[{"id":"wamid.1"}],"status":"submitted","messageId":"ee-1"}`)
		case !bearer(r) || r.URL.Path != "/ACC/message_templates":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":190}}`)
		case r.URL.Query().Get("after") == "":
			_, _ = io.WriteString(w, `{"data":[{"id":"5","name":"order_ready","status":"approved","category":"UTILITY","language":"en","components":[
				{"type":"HEADER","format":"TEXT","text":"Hi {{1}}"},{"type":"BODY","text":"To {{ 2 }} from {{1}}"},{"type":"BUTTONS",`+
				`"buttons":[{"type":"PHONE"},{"type":"URL","url":"https://a.example/{{1}}"}]}]},
				{"name":"without an id"}],"paging":{"cursors":{"after":"c1"},"next":"https://thief.example/?token=all"}}`)
		default:
			_, _ = io.WriteString(w, `{"data":[{"id":"6","name":"offer","status":"PAUSED","parameter_format":"NAMED","components":[
				{"type":"HEADER","format":"IMAGE"},{"type":"BODY","text":"For {{customer}}"}]},
				{"id":"7","name":"balance","components":[{"type":"HEADER","format":"DOCUMENT"},{"type":"BODY","text":"You owe {{1}}"}]}],
				"paging":{"cursors":{"after":"c2"}}}`)
		}
	}))
	n, err := chat.New(chat.Settings{ChatURL: server.URL, GatewayURL: server.URL, Client: server.Client()})
	require.NoError(t, err)
	account := network.Account{Type: "chat", SenderID: "PN1", AccountID: "ACC", APIKey: token}
	all, err := n.Templates(t.Context(), account)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, network.Template{
		ProviderID: "5", Name: "order_ready", Language: "en", Category: "UTILITY", Status: "APPROVED", Format: network.Positional,
		Parameters: []string{"1", "2"},
		Extras:     []string{"header", "button_1"}, Body: "To {{2}} from {{1}}",
	}, all[0])
	require.Equal(t, []string{"customer", "header_image"}, all[1].Places())
	require.Equal(t, []string{"1", "header_document"}, all[2].Places())

	positional := network.Filled{
		ProviderID: "5", Name: "order_ready", Language: "en", Body: []network.Value{{Name: "1", Text: "us"}, {Name: "2", Text: "you"}},
		Extras: map[string]string{"header": "Asha", "button_1": "A-204"},
	}
	_, err = n.Send(t.Context(), account, network.Message{ID: "msg_8", To: phone, Template: &positional})
	require.NoError(t, err)
	require.JSONEq(t, `{"messaging_product":"chat-network","recipient_type":"individual","to":"919812345678","type":"template",`+
		`"biz_opaque_callback_data":"msg_8",
		"template":{"name":"order_ready","language":{"code":"en"},"components":[
			{"type":"button","sub_type":"url","index":"1","parameters":[{"type":"text","text":"A-204"}]},{"type":"header",`+
		`"parameters":[{"type":"text","text":"Asha"}]},
			{"type":"body","parameters":[{"type":"text","text":"us"},{"type":"text","text":"you"}]}]}}`, sent)
	_, err = n.Send(t.Context(), account, network.Message{To: phone, Template: &network.Filled{
		Name: "offer", Language: "hi", Named: true, Body: []network.Value{{Name: "customer", Text: "Asha"}},
		Extras: map[string]string{"header_image": picture},
	}})
	require.NoError(t, err)
	require.Contains(t, sent, `{"type":"header","parameters":[{"type":"image","image":{"link":"`+picture+`"}}]},{"type":"body",`+
		`"parameters":[{"type":"text","parameter_name":"customer","text":"Asha"}]}`)

	for link, name := range map[string]string{"https://a.example/s/1-2-ab": "balance.pdf", "https://a.example/list.pdf": "list.pdf"} {
		_, err = n.Send(t.Context(), account, network.Message{To: phone, Template: &network.Filled{
			Name: "balance", Extras: map[string]string{"header_document": link},
		}})
		require.NoError(t, err)
		require.Contains(t, sent, `[{"type":"document","document":{"link":"`+link+`","filename":"`+name+`"}}]`)
	}

	aggregator := network.Account{Type: "chat", Dialect: "envelope_v2", SenderID: "917", APIKey: token}
	_, err = n.Send(t.Context(), aggregator, network.Message{To: phone, Template: &positional})
	require.NoError(t, err)
	require.Contains(t, sent, "template=%7B%22id%22%3A%225%22%2C%22params%22%3A%5B%22us%22%2C%22you%22%5D%7D")
	require.NotContains(t, sent, "message=")
	_, err = n.Send(t.Context(), aggregator, network.Message{To: phone, Template: &network.Filled{
		ProviderID: "7", Name: "balance", Extras: map[string]string{"header_document": "https://a.example/s/1-2-ab"},
	}})
	require.NoError(t, err)
	require.Contains(t, sent, "message="+url.QueryEscape(
		`{"type":"document","document":{"link":"https://a.example/s/1-2-ab","filename":"balance.pdf"}}`)+"&")
	all, err = n.Templates(t.Context(), aggregator)
	require.NoError(t, err)
	require.Empty(t, all, "the aggregator does not say")

	account.APIKey = "another"
	_, err = n.Templates(t.Context(), account)
	require.Equal(t, network.Credentials, chat.AsFailure(err).Reason)
	account.AccountID = ""
	_, err = n.Templates(t.Context(), account)
	require.Equal(t, network.Unconfigured, chat.AsFailure(err).Reason)
}

// Before a message is sent, the list of its app's templates is the only call of an aggregator that checks a channel's key.
func TestTheAggregatorsTemplatesProveItsApp(t *testing.T) {
	t.Parallel()
	answer := `{"status":"success","templates":[
		{"id":"0f1","elementName":"order_ready","languageCode":"en","category":"UTILITY","status":"approved","data":"To {{2}} from {{1}}",` +
		`"templateType":"TEXT"},
		{"id":"0f2","elementName":"picture","status":"APPROVED","data":"See","templateType":"IMAGE"}]}`
	n := networks(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Apikey") != token:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"status":"error","message":"no app"}`)
		case r.URL.Path != "/sm/api/v1/template/list/Our shop":
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = io.WriteString(w, answer)
		}
	}))
	account := network.Account{Type: "chat", Dialect: "envelope_v2", SenderID: "917", AppName: "Our shop", APIKey: token}
	health, err := n.Health(t.Context(), account)
	require.NoError(t, err)
	require.Equal(t, "app:Our shop", health.Identity)
	all, err := n.Templates(t.Context(), account)
	require.NoError(t, err)
	require.Equal(t, []network.Template{{
		ProviderID: "0f1", Name: "order_ready", Language: "en", Category: "UTILITY", Status: "APPROVED", Format: network.Positional,
		Parameters: []string{"1", "2"}, Body: "To {{2}} from {{1}}",
	}, {
		ProviderID: "0f2", Name: "picture", Status: "APPROVED", Format: network.Positional, Extras: []string{"header_image"}, Body: "See",
	}}, all)

	for want, a := range map[network.Reason]network.Account{
		network.Credentials:       {AppName: "Our shop", APIKey: "wrong"},
		network.HealthUnsupported: {AppName: "An app of an aggregator without lists", APIKey: token},
		network.Unconfigured:      {AppName: "Our shop"},
	} {
		a.Type, a.Dialect = "chat", "envelope_v2"
		_, err = n.Health(t.Context(), a)
		require.Equal(t, want, chat.AsFailure(err).Reason)
	}
	answer = `{"status":"error"}`
	_, err = n.Health(t.Context(), account)
	require.Equal(t, network.Refused, chat.AsFailure(err).Reason)
	account.AppName = ""
	all, err = n.Templates(t.Context(), account)
	require.NoError(t, err)
	require.Empty(t, all)
}
