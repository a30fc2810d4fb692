package chatgateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/providers/chatgateway"
)

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// The bodies of CONTRACT.md, sections 3.1.7 and 3.2.
const (
	envelopeMessage = `{"app":"WorkshopApp","timestamp":1740900000123,"version":2,"type":"message","payload":{"id":"ABEG1",` +
		`"source":"919812345678","type":"text",
  "payload":{"text":"payal 250 gm 4 pcs"},"sender":{"phone":"919812345678","name":"Asha","country_code":"91","dial_code":"9812345678"},
  "context":{"id":"gBEG0","gsId":"9b71…"}}}`
	envelopeDelivered = `{"app":"WorkshopApp","timestamp":1740900001123,"version":2,"type":"message-event","payload":{"id":"gBEG2",` +
		`"gsId":"ee4a…","type":"delivered",
  "destination":"919812345678","payload":{"ts":1740900001}}}`
	envelopeFailed = `{"app":"WorkshopApp","timestamp":1740900002123,"version":2,"type":"message-event","payload":{"id":"ee4b…",` +
		`"type":"failed",
  "destination":"919812345678","payload":{"code":1002,"reason":"Number not reachable"}}}`
	graphMessage = `{"object":"chat_business_account","entry":[{"id":"ACC","changes":[{"field":"messages","value":{
  "metadata":{"display_phone_number":"9198…","phone_number_id":"PN1"},
  "contacts":[{"wa_id":"919812345678","profile":{"name":"Asha"}}],
  "messages":[{"from":"919812345678","id":"wamid.a","timestamp":"1740900000","type":"text","text":{"body":"payal 250 gm"}}]}}]}]}`
	graphFailed = `{"object":"chat_business_account","entry":[{"id":"ACC","changes":[{"field":"messages","value":{
  "statuses":[{"id":"wamid.b","status":"failed","timestamp":"1740900005","recipient_id":"919812345678",
               "errors":[{"code":131026,"title":"…","error_data":{"details":"gone"}}]}]}}]}]}`
	formMessage = `MessageSid=SM1&From=%2B919812345678&Body=payal+250+gm&NumMedia=0&ProfileName=Asha`
)

func at(seconds, millis int64) *time.Time {
	return new(time.Unix(seconds, millis*1e6).UTC())
}

func TestBodiesOfTheContractAreRead(t *testing.T) {
	t.Parallel()
	const phone = "919812345678"
	for text, want := range map[string]chatgateway.Event{
		envelopeMessage: {
			Kind: chatgateway.Message, ID: "ABEG1", Type: "text", At: at(1740900000, 123), From: phone, Name: "Asha", Text: "payal 250 gm 4 pcs",
			App: "WorkshopApp",
		},
		envelopeDelivered: {Kind: chatgateway.Status, ID: "gBEG2", GSID: "ee4a…", Type: "delivered", At: at(1740900001, 0), To: phone,
			App: "WorkshopApp"},
		envelopeFailed: {
			Kind: chatgateway.Status, ID: "ee4b…", Type: "failed", At: at(1740900002, 123), To: phone, Code: "1002", Reason: "Number not reachable",
			App: "WorkshopApp",
		},
		graphMessage: {Kind: chatgateway.Message, ID: "wamid.a", Type: "text", At: at(1740900000, 0), From: phone, Name: "Asha",
			Text: "payal 250 gm", Sender: "PN1"},
		graphFailed: {Kind: chatgateway.Status, ID: "wamid.b", Type: "failed", At: at(1740900005, 0), To: phone, Code: "131026", Title: "…",
			Reason: "gone"},
		formMessage: {Kind: chatgateway.Message, ID: "SM1", Type: "text", From: phone, Name: "Asha", Text: "payal 250 gm"},
	} {
		kind := jsonType
		if text == formMessage {
			kind = formType
		}
		events, err := chatgateway.Decode(kind, []byte(text))
		require.NoError(t, err)
		require.Equal(t, []chatgateway.Event{want}, placeless(events))
	}
}

// placeless returns events without their places.
func placeless(events []chatgateway.Event) (all []chatgateway.Event) {
	for _, e := range events {
		e.Place = ""
		all = append(all, e)
	}
	return all
}

func TestAnOddPartCostsNoOther(t *testing.T) {
	t.Parallel()
	const good = `{"from":"919812345678","id":"w9","type":"text","text":{"body":"good"}}`
	change := func(value string) string { return `{"object":"o","entry":[{"id":"A","changes":[` + value + `]}]}` }
	message := func(odd string) string {
		return change(`{"field":"messages","value":{"metadata":{"phone_number_id":"PN1"},"messages":[` + odd + `,` + good + `]}}`)
	}
	const first = "entry[0].changes[0]"
	for text, place := range map[string]string{
		message(`{"from":"91","id":"w1","type":"text","text":"a string"}`): first + ".value.messages[0]",
		message(`7`):                               first + ".value.messages[0]",
		message(`null`):                            first + ".value.messages[0]",
		message(`["x"]`):                           first + ".value.messages[0]",
		message(`{"type":["text"]}`):               first + ".value.messages[0]",
		message(`{"id":"w1","image":"M1"}`):        first + ".value.messages[0]",
		message(`{"id":"w1","errors":{"code":1}}`): first + ".value.messages[0]",
		change(`{"field":7,"value":{"messages":[` + good + `]}}`): first,
		change(`{"field":"messages","value":{"contacts":"x","messages":[` + good + `]}}`): first +
			".value.contacts[0]",
		change(`{"field":"messages","value":{"contacts":[5],"messages":[` + good + `]}}`): first +
			".value.contacts[0]",
		change(`{"field":"messages","value":["x"]},{"value":{"messages":[` + good + `]}}`): first,
		change(`"x",{"value":{"messages":[` + good + `]}}`):                                first,
		change(`{"value":{"statuses":[{"id":"s","status":"failed","errors":{"code":1}}],"messages":[` + good + `]}}`): first +
			".value.statuses[0]",
		change(`{"value":{"statuses":{"id":"s"},"messages":[` + good + `]}}`):                             first + ".value.statuses[0]",
		change(`{"value":{"user_preferences":[true],"messages":[` + good + `]}}`):                         first + ".value.user_preferences[0]",
		`{"entry":["x",{"changes":[{"value":{"messages":[` + good + `]}}]}]}`:                             "entry[0]",
		`{"entry":[{"changes":7},{"changes":[{"value":{"messages":[` + good + `]}}]}]}`:                   first,
		`{"entry":[{"messaging":[{"message":"x"}]},{"changes":[{"value":{"messages":[` + good + `]}}]}]}`: "entry[0].messaging[0]",
	} {
		events, err := chatgateway.Decode(jsonType, []byte(text))
		require.NoError(t, err, text)
		kinds := map[chatgateway.Kind]chatgateway.Event{}
		for _, e := range events {
			kinds[e.Kind] = e
		}
		require.Equal(t, []string{"w9", "good"}, []string{kinds[chatgateway.Message].ID, kinds[chatgateway.Message].Text}, text)
		require.Equal(t, place, kinds[chatgateway.Unread].Place, text)
		require.NotEmpty(t, kinds[chatgateway.Unread].Reason, text)
	}
	events, err := chatgateway.Decode(jsonType, []byte(`{"object":1,"entry":7}`))
	require.NoError(t, err)
	require.Equal(t, []chatgateway.Event{{Kind: chatgateway.Unread, Place: "entry[0]", Reason: "unexpected number"}}, events)
	events, err = chatgateway.Decode(jsonType, []byte(message(`{"from":"91","id":"w1","type":"text","text":{"body":"`+"\xff"+`"}}`)))
	require.NoError(t, err)
	require.Equal(t, "\ufffd", events[0].Text, "bytes that are no text")
}

func TestAMessageOfAGroupIsNobodysMessage(t *testing.T) {
	t.Parallel()
	for text, kind := range map[string]string{
		`{"entry":[{"changes":[{"value":{"messages":[{"from":"91",` +
			`"id":"1","group_id":"G","type":"text"}]}}]}]}`: jsonType,
		`{"entry":[{"changes":[{"value":{"messages":[{"from":"91","id":"1",` +
			`"group_id":7,"type":"edit","edit":{"original_message_id":"0"}}]}}]}]}`: jsonType,
		`{"type":"message","payload":{"id":"1","source":"91",` +
			`"type":"text","group_id":"G","payload":{"text":"x"}}}`: jsonType,
		`{"type":"message","payload":{"id":"1","source":"1203@` +
			`g.us","type":"text","payload":{"text":"x"}}}`: jsonType,
		`{"type":"message","payload":{"id":"1","source":"91",` +
			`"type":"text","sender":{"group_id":"G"},"payload":{"text":"x"}}}`: jsonType,
		`MessageSid=S&From=91&Body=x&group_id=G`: formType,
	} {
		events, err := chatgateway.Decode(kind, []byte(text))
		require.NoError(t, err)
		require.Equal(t, chatgateway.Group, events[0].Kind, text)
	}
}

func TestASenderIsAPhoneOrAnID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string][2]string{
		"919812345678": {"919812345678"}, "+91 98123-45678": {"919812345678"}, "5215512345678": {"5215512345678"}, "IN.ab12": {"", "IN.ab12"},
		"shop.owner":        {"", "shop.owner"},
		"tel:+919812345678": {"919812345678"}, "919812345678@c.us": {"919812345678"}, "77@lid": {"", "77@lid"}, "": {},
	} {
		events, err := chatgateway.Decode(jsonType,
			fmt.Appendf(nil, `{"entry":[{"changes":[{"value":{"messages":[{"from":%q,"id":"1","type":"text"}]}}]}]}`, id))
		require.NoError(t, err)
		require.Equal(t, want, [2]string{events[0].From, events[0].UserID}, id)
	}
}

func TestWhatElseANetworkTells(t *testing.T) {
	t.Parallel()
	change := func(value string) string {
		return `{"object":"anything","gs_app_id":"A1","entry":[{"id":"ACC","changes":[{"field":"x","value":` + value + `}]}]}`
	}
	for text, want := range map[string]chatgateway.Event{
		`{"entry":[{"id":"P1","time":1,"messaging":[{"sender":{"id":"U1"},"recipient":{"id":"P1"},"timestamp":1740900000123,` +
			`"message":{"mid":"m1","text":"\u0938\u094b\u0928\u093e"}}]}]}`: {
			Kind: chatgateway.Message, ID: "m1", Type: "text", At: at(1740900000, 123), UserID: "U1", Text: "सोना", Sender: "P1", Page: true,
		},
		`{"entry":[{"id":"P1","messaging":[{"sender":{"id":"P1"},"recipient":{"id":"U1"},"message":{"mid":"m2","text":"x","is_echo":true}}]}]}`: {
			Kind: chatgateway.Other, UserID: "P1", Sender: "U1", Page: true,
		},
		`{"entry":[{"id":"P1","messaging":[{"sender":{"id":"U1"},"recipient":{"id":"P1"},"message":{"mid":"m1","is_deleted":true}}]}]}`: {
			Kind: chatgateway.Revoked, ID: "m1", UserID: "U1", Sender: "P1", Page: true,
		},
		`{"entry":[{"id":"P1","messaging":[{"sender":{"id":"U1"},"recipient":{"id":"P1"},"message_edit":{"mid":"m1","text":"better"}}]}]}`: {
			Kind: chatgateway.Revised, ID: "m1", UserID: "U1", Text: "better", Sender: "P1", Page: true,
		},
		change(`{"messages":[{"from":"91","id":"w2","type":"revoke","revoke":{"original_message_id":"w1"}}]}`): {
			Kind: chatgateway.Revoked, ID: "w1", Type: "revoke", From: "91", App: "A1",
		},
		change(`{"messages":[{"from":"91","id":"w2","type":"edit","edit":{"original_message_id":"w1","message":{"type":"text",` +
			`"text":{"body":"better"}}}}]}`): {
			Kind: chatgateway.Revised, ID: "w1", Type: "edit", From: "91", Text: "better", App: "A1",
		},
		change(`{"event":"PAUSED","message_template_id":55}`): {Kind: chatgateway.Template, ID: "55", Type: "PAUSED", Sender: "ACC", App: "A1"},
		change(`{"metadata":{"phone_number_id":"PN1"},"user_preferences":[{"wa_id":"919812345678","user_id":"IN.7","value":"stop"},` +
			`{"value":"other"}]}`): {
			Kind: chatgateway.Consent, Type: "stop", From: "919812345678", UserID: "IN.7", Sender: "PN1", App: "A1",
		},
		change(`{"contacts":[{"wa_id":"91","user_id":"IN.7","profile":{"username":"asha"}}],"messages":[{"from":"91","id":"w",` +
			`"type":"reaction","reaction":{"emoji":"👍"}}]}`): {
			Kind: chatgateway.Message, ID: "w", Type: "reaction", From: "91", UserID: "IN.7", Username: "asha", Text: "👍", App: "A1",
		},
		change(`{"messages":[{"from":"919812345678","id":"w","type":"system",` +
			`"system":{"type":"user_changed_number","wa_id":"919812345679"}}]}`): {
			Kind: chatgateway.Moved, ID: "w", Type: "system", From: "919812345679", Before: "919812345678", App: "A1",
		},
		change(`{"messages":[{"id":"w","type":"system","system":{"type":"user_changed_user_id","previous_user_id":"IN.7","user_id":"IN.8"}}]}`): {
			Kind: chatgateway.Moved, ID: "w", Type: "system", UserID: "IN.8", Before: "IN.7", App: "A1",
		},
		change(`{"statuses":[{"id":"w","status":"played","biz_opaque_callback_data":"msg_8"}]}`): {Kind: chatgateway.Status, ID: "w",
			Type: "played", Callback: "msg_8", App: "A1"},
		`{"app":"A","type":"user-event","payload":{"phone":"919812345678","type":"opted-out"}}`: {Kind: chatgateway.Consent, Type: "stop",
			From: "919812345678", App: "A"},
		`{"app":"A","type":"user-event","payload":{"phone":"919812345678","type":"sandbox-start"}}`: {
			Kind: chatgateway.Other, Type: "sandbox-start", App: "A",
		},
	} {
		events, err := chatgateway.Decode(jsonType, []byte(text))
		require.NoError(t, err, text)
		require.Equal(t, []chatgateway.Event{want}, placeless(events), text)
	}
	require.Empty(t, chatgateway.Key(jsonType, []byte(change(`{"event":"PAUSED","message_template_id":55}`))), "it may be paused again")
}

func TestDialectsAreDetected(t *testing.T) {
	t.Parallel()
	for want, text := range map[chatgateway.Dialect]string{
		chatgateway.EnvelopeV2: envelopeMessage, chatgateway.GraphV3: graphMessage, chatgateway.FormV1: formMessage,
	} {
		kind := jsonType
		if want == chatgateway.FormV1 {
			kind = formType
		}
		dialect, err := chatgateway.Detect(kind, []byte(text))
		require.NoError(t, err)
		require.Equal(t, want, dialect)
	}
	for _, text := range []string{"", "{", "[]", "7", `{"type":"message"}`, `{"a":1}`, "\xff\xfe", formMessage} {
		_, err := chatgateway.Decode(jsonType, []byte(text))
		require.ErrorIs(t, err, chatgateway.ErrUnreadable, text)
	}
	for _, text := range []string{`{"type":7,"payload":{}}`, `{"type":"message","payload":[]}`} {
		_, err := chatgateway.Decode(jsonType, []byte(text))
		require.ErrorIs(t, err, chatgateway.ErrUnreadable, text)
	}
}

func TestTimesComeInFourForms(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]*time.Time{
		`1740900000`: at(1740900000, 0), `"1740900000"`: at(1740900000, 0), `1740900000123`: at(1740900000, 123),
		`"1740900000123"`: at(1740900000, 123),
		`null`:            nil, `"soon"`: nil, `-1`: nil, `1e9`: nil, `99999999999999999999`: nil, `{}`: nil,
	} {
		events, err := chatgateway.Decode(jsonType, fmt.Appendf(nil, `{"timestamp":%s,"type":"message","payload":{"id":"1"}}`, form))
		require.NoError(t, err)
		require.Equal(t, want, events[0].At, form)
	}
}

func TestEachKindOfMessageIsRead(t *testing.T) {
	t.Parallel()
	envelope := func(kind, inner string) string {
		return `{"type":"message","payload":{"id":"1","source":"91 98123-45678","type":"` + kind + `","payload":` + inner + `}}`
	}
	graph := func(message string) string {
		return `{"object":"o","entry":[{"changes":[{"value":{"messages":[{"id":"1","from":"919812345678",` + message + `}]}}]}]}`
	}
	for text, want := range map[string]chatgateway.Event{
		envelope("image", `{"url":"https://a/1.jpg","caption":"payal 250 gm","contentType":"image/jpeg"}`): {
			Type: "image", Text: "payal 250 gm", Media: &chatgateway.Media{URL: "https://a/1.jpg", ContentType: "image/jpeg"},
		},
		envelope("button_reply", `{"title":"Yes","id":"b1"}`):  {Type: "button_reply", Text: "Yes"},
		envelope("location", `{"longitude":"1","latitude":2}`): {Type: "location"},
		envelope("hologram", `["new"]`):                        {Type: "hologram"},
		graph(`"type":"image","image":{"id":"m1","mime_type":"image/png","caption":"ring"}`): {
			Type: "image", Text: "ring", Media: &chatgateway.Media{ID: "m1", ContentType: "image/png"},
		},
		graph(`"type":"document","document":{"id":"m2","mime_type":"application/pdf"}`): {
			Type: "file", Media: &chatgateway.Media{ID: "m2", ContentType: "application/pdf"},
		},
		graph(`"type":"unsupported","errors":[{"code":131051,"title":"Unknown","error_data":{"details":"not supported"}}]`): {
			Type: "unsupported", Code: "131051", Title: "Unknown", Reason: "not supported",
		},
		graph(`"type":"button","button":{"text":"Yes"}`):                                                 {Type: "button_reply", Text: "Yes"},
		graph(`"type":"interactive","interactive":{"type":"list_reply","list_reply":{"title":"Payal"}}`): {Type: "list_reply", Text: "Payal"},
	} {
		want.Kind, want.ID, want.From = chatgateway.Message, "1", "919812345678"
		events, err := chatgateway.Decode(jsonType, []byte(text))
		require.NoError(t, err)
		require.Equal(t, []chatgateway.Event{want}, placeless(events), text)
	}
	for _, body := range []string{"NumMedia=1&From=1&MediaUrl0=https://a/1&MediaContentType0=image/png",
		"NumMedia=1&From=1&MediaUrl0=https://a/1"} {
		events, err := chatgateway.Decode(formType, []byte(body))
		require.NoError(t, err)
		require.Equal(t, "https://a/1", events[0].Media.URL)
		require.Contains(t, []string{"image", "file"}, events[0].Type)
	}
}

// Sandbox-start, system and unknown events are decoded, and have no effect.
func TestOtherEventsAreNoMessages(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"type":"user-event","payload":{"phone":"919812345678","type":"sandbox-start"}}`,
		`{"object":"o","entry":[{"changes":[{"value":{"messages":[{"id":"1","type":"system","system":{}}]}}]}]}`,
		`{"type":"tomorrow","payload":null}`,
	} {
		events, err := chatgateway.Decode(jsonType, []byte(text))
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.Equal(t, chatgateway.Other, events[0].Kind, text)
	}
	for text, want := range map[string][]chatgateway.Event{
		`{"object":"o","entry":[]}`: nil, `{"object":"o","entry":[{"id":"ACC","changes":[{"field":"flows","value":{"event":"x"}}]}]}`: nil,
		`{"object":"o","entry":[{"changes":[{"value":{"metadata":{"phone_number_id":"PN1"},"tomorrow":1}}]}]}`: {{Kind: chatgateway.Other,
			Sender: "PN1"}},
		`{"object":"o","entry":[{"changes":[{"value":{"metadata":{"phone_number_id":"PN1"},"errors":[{"code":131000,"title":"Down"}]}}]}]}`: {
			{Kind: chatgateway.Failure, Sender: "PN1", Code: "131000", Title: "Down", Reason: "Down"},
		},
	} {
		events, err := chatgateway.Decode(jsonType, []byte(text))
		require.NoError(t, err)
		require.Equal(t, want, placeless(events), text)
	}
}

func TestKeyIsThatOfTheEventNotOfTheCall(t *testing.T) {
	t.Parallel()
	key := func(text string) string { return chatgateway.Key(jsonType, []byte(text)) }
	require.Equal(t, "message ABEG1", key(envelopeMessage))
	require.Equal(t, "message SM1", chatgateway.Key(formType, []byte(formMessage)))
	require.Equal(t, "WorkshopApp  message ABEG1", chatgateway.SenderKey(jsonType, []byte(envelopeMessage)))
	require.Equal(t, " PN1 message wamid.a", chatgateway.SenderKey(jsonType, []byte(graphMessage)))
	require.Empty(t, chatgateway.SenderKey(jsonType, []byte("{")))
	require.NotEqual(t, key(envelopeDelivered), key(envelopeFailed))
	require.NotEqual(t, key(envelopeDelivered), key(`{"type":"message-event","payload":{"id":"gBEG2","gsId":"ee4a…","type":"read"}}`))
	for _, text := range []string{"{", `{"type":"message","payload":{}}`, `{"object":"o","entry":[]}`} {
		require.Empty(t, key(text))
	}
}

func TestStatusesRise(t *testing.T) {
	t.Parallel()
	rising := []string{"deleted", "enqueued", "sent", "failed", "delivered", "read"}
	for i := 1; i < len(rising); i++ {
		require.Greater(t, chatgateway.Rank(rising[i]), chatgateway.Rank(rising[i-1]), rising[i])
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{envelopeMessage, envelopeDelivered, graphMessage, graphFailed} {
		f.Add(jsonType, []byte(text))
	}
	f.Add(formType, []byte(formMessage))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		events, err := chatgateway.Decode(kind, body)
		if err != nil {
			require.ErrorIs(t, err, chatgateway.ErrUnreadable)
			require.Empty(t, events)
		}
		require.Equal(t, chatgateway.Key(kind, body), chatgateway.Key(kind, body)) //nolint:testifylint // the same body has the same key
	})
}

// A form names our own phone, and the other party of a message, with the network's prefix.
func TestAFormNamesOurPhone(t *testing.T) {
	t.Parallel()
	events, err := chatgateway.Decode(formType,
		[]byte(`MessageSid=SM1&From=chat%3A%2B919812345678&To=chat%3A%2B919820000004&Body=Hello&NumMedia=0`))
	require.NoError(t, err)
	require.Equal(t, []string{"919812345678", "919820000004", "Hello"}, []string{events[0].From, events[0].Sender, events[0].Text})
	for status, want := range map[string]string{"delivered": "delivered", "undelivered": "failed", "failed": "failed", "read": "read"} {
		events, err := chatgateway.Decode(formType,
			[]byte(`MessageSid=SM2&From=%2B919820000004&To=%2B919812345678&MessageStatus=`+status+`&ErrorCode=63016`))
		require.NoError(t, err)
		e := events[0]
		require.Equal(t, []string{"status", want, "919820000004", "919812345678", "63016"},
			[]string{string(e.Kind), e.Type, e.Sender, e.To, e.Code})
	}
}
