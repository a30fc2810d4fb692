package marketplacereact

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/internal/test/worktest"
	"bahi/providers/chat"
	"bahi/providers/egress"
)

// The network accepts a text only for a phone that wrote within a day, a template always.
func TestCompaniesAreToldByATemplateWhereThereIsOne(t *testing.T) {
	t.Parallel()
	var said string
	server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if said = string(body); strings.Contains(said, `"template"`) {
			_, _ = w.Write([]byte(`{"messages":[{"id":"wamid.1"}]}`))
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"message":"Re-engagement message","code":131047}}`))
	}))
	exceptions, err := egress.Parse([]string{strings.TrimPrefix(server.URL, "http://")})
	require.NoError(t, err)
	networks, err := chat.New(chat.Settings{ChatURL: server.URL, Product: "chat-network", Client: exceptions.Client()})
	require.NoError(t, err)
	sender := Sender{Networks: networks, Account: network.Account{Type: channel.Chat, APIKey: "key", SenderID: "917"}}
	values := []string{"Asha Mills", "Ravi"}
	err = sender.Send(t.Context(), "enq_1", "919812345678", "A new enquiry", values)
	require.ErrorAs(t, err, new(ended), "a closed window is not tried again")
	require.Contains(t, said, `"body":"A new enquiry"`)

	sender.Template = network.Filled{Name: "new_enquiry", Language: "en_IN"}
	for range 2 { // a template is not used up
		require.NoError(t, sender.Send(t.Context(), "enq_1", "919812345678", "A new enquiry", values))
		require.JSONEq(t, `{"messaging_product":"chat-network","recipient_type":"individual","to":"919812345678","type":"template",`+
			`"biz_opaque_callback_data":"enq_1",
			"template":{"name":"new_enquiry","language":{"code":"en_IN"},"components":[{"type":"body","parameters":[{"type":"text","text":"Asha `+
			`Mills"},{"type":"text","text":"Ravi"}]}]}}`, said)
	}
}
