package marketplacereact

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/internal/test/worktest"
	"bahi/providers/chat"
	"bahi/providers/egress"
	"bahi/reactors"
)

func TestPlacesOfATemplateAreLinesThatAreNotEmpty(t *testing.T) {
	t.Parallel()
	full := letter{
		Company: "Asha Mills", Link: "https://bahi.example/enquiries/1", Name: "Ravi", Email: "ravi@example.org", Phone: "+919812345678",
		Product: "Brass hook", Quantity: 500,
		Message: "In steel?\nAnd " + strings.Repeat("अ", 600),
	}
	places := full.places()
	require.Equal(t, []string{"Asha Mills", "Ravi", "ravi@example.org +919812345678"}, places[:3])
	require.True(t, strings.HasPrefix(places[3], "500 Brass hook In steel? And अ"))
	require.Len(t, []rune(places[3]), maxOfPlace)
	require.Equal(t, full.Link, places[4])
	require.Equal(t, []string{"Asha Mills", "-", "-", "-", ""}, letter{Company: "Asha Mills"}.places())
}

func TestEnquiriesThatComeTogetherAreToldByOneJob(t *testing.T) {
	t.Parallel()
	var into reactors.Mergeable = notify[byMail]{one(uuid.New())}
	for range maxAsked - 1 {
		all, taken := into.Join(notify[byMail]{one(uuid.New())})
		require.True(t, taken)
		into = all.(reactors.Mergeable)
	}
	_, taken := into.Join(notify[byMail]{one(uuid.New())})
	require.False(t, taken)
	require.Len(t, into.(notify[byMail]).all(), maxAsked)
	text, err := json.Marshal(into)
	require.NoError(t, err)
	var again notify[byMail]
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, into, again)

	var old notify[toCRM] // of an older program
	require.NoError(t, json.Unmarshal([]byte(`{"enquiry_id":"0195e8a0-7c1e-7000-8000-0000000000aa"}`), &old))
	require.Equal(t, []uuid.UUID{uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa")}, old.all())
}

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
