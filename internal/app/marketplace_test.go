package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/internal/app"
	"bahi/providers/chat"
	"bahi/providers/egress"
)

// The network accepts a text only for a phone that wrote within a day, a template always.
func TestCompaniesAreToldByATemplateWhereThereIsOne(t *testing.T) {
	t.Parallel()
	var said string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if said = string(body); strings.Contains(said, `"template"`) {
			_, _ = w.Write([]byte(`{"messages":[{"id":"wamid.1"}]}`))
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"message":"Re-engagement message","code":131047}}`))
	}))
	t.Cleanup(server.Close)
	exceptions, err := egress.Parse([]string{strings.TrimPrefix(server.URL, "http://")})
	require.NoError(t, err)
	networks, err := chat.New(chat.Settings{ChatURL: server.URL, Product: "chat-network", Client: exceptions.Client()})
	require.NoError(t, err)
	sender := app.OwnSender{Networks: networks, Account: network.Account{Type: channel.Chat, APIKey: "key", SenderID: "917"}}
	values := []string{"Asha Mills", "Ravi"}
	err = sender.Chat(t.Context(), "enq_1", "919812345678", "A new enquiry", values)
	require.Error(t, err)
	require.True(t, sender.Ended(err), "a closed window is not tried again")
	require.Contains(t, said, `"body":"A new enquiry"`)

	sender.Template, err = app.EnquiryTemplate("new_enquiry:en_IN")
	require.NoError(t, err)
	for range 2 { // a template is not used up
		require.NoError(t, sender.Chat(t.Context(), "enq_1", "919812345678", "A new enquiry", values))
		require.JSONEq(t, `{"messaging_product":"chat-network","recipient_type":"individual","to":"919812345678","type":"template",`+
			`"biz_opaque_callback_data":"enq_1",
			"template":{"name":"new_enquiry","language":{"code":"en_IN"},"components":[{"type":"body","parameters":[{"type":"text","text":"Asha `+
			`Mills"},{"type":"text","text":"Ravi"}]}]}}`, said)
	}
	for _, wrong := range []string{"new_enquiry", ":en", "new_enquiry:"} {
		_, err := app.EnquiryTemplate(wrong)
		require.ErrorContains(t, err, "CHAT_ENQUIRY_TEMPLATE", wrong)
	}
}
