package chat_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/worktest"
	"bahi/providers/chat"
)

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// golden is a line of bodies.ndjson: a body of JSON or a form, and the events that it has. The bodies of CONTRACT.md, sections 3.1.7 and
// 3.2, come first, with their dialects and keys.
type golden struct {
	What       string
	Body       json.RawMessage
	Form       string
	Key        *string
	SenderKey  string
	Unreadable bool
	Events     []chat.Event
}

func (g golden) call() (kind string, body []byte) {
	if g.Form != "" {
		return formType, []byte(g.Form)
	}
	return jsonType, g.Body
}

func bodies(t testing.TB) (all []golden) {
	t.Helper()
	text := worktest.File(t, "testdata/bodies.ndjson")
	for line := range bytes.Lines(text) {
		var g golden
		require.NoError(t, json.Unmarshal(line, &g), "%s", line)
		all = append(all, g)
	}
	require.Len(t, all, 97)
	return all
}

func TestBodiesAreRead(t *testing.T) {
	t.Parallel()
	for _, g := range bodies(t) {
		kind, body := g.call()
		events, err := chat.Decode(kind, body)
		if g.Unreadable {
			require.ErrorIs(t, err, chat.ErrUnreadable, "%s", body)
			continue
		}
		require.NoError(t, err, "%s: %s", g.What, body)
		require.Equal(t, g.Events, append([]chat.Event{}, events...), "%s: %s", g.What, body)
		if g.Key != nil {
			require.Equal(t, *g.Key, chat.Key(kind, body), "%s", body)
		}
		if g.SenderKey != "" {
			require.Equal(t, g.SenderKey, chat.SenderKey(kind, body), "%s", body)
		}
	}
}

func TestMessageOfAGroupIsOfAGroupHoweverTheNetworkSaysIt(t *testing.T) {
	t.Parallel()
	const address = `"120363023456789012@g.us"`
	for _, member := range []string{
		`"group_id":"G"`, `"group_id":7`, `"group_id":{"id":"G"}`, `"group_id":["G"]`, `"groupId":"G"`, `"GroupID":"G"`, `"group":{"id":"G"}`,
		`"is_group":true`, `"isGroup":true`, `"isGroupMsg":"true"`, `"chat":{"type":"supergroup"}`, `"recipient_type":"group"`,
		`"chat_id":` + address, `"context":{"group_id":"G"}`, `"sender":{"phone":"91","groupId":"G"}`, `"recipient":{"id":` + address + `}`,
	} {
		requireKind(t, chat.Group, member)
	}
	for _, member := range []string{
		`"group_id":null`, `"group_id":""`, `"group_id":false`, `"group_id":0`, `"group":{}`, `"group_id":[]`, `"isGroup":"false"`,
		`"recipient_type":"individual"`, `"text":{"body":` + address + `}`, `"payload":{"text":` + address + `,"group":"x"}`,
	} {
		requireKind(t, chat.Message, member)
	}
	for form, kind := range map[string]chat.Kind{
		"GroupId=G": chat.Group, "GroupSid=G": chat.Group, "IsGroup=true": chat.Group, "ChatId=1203@g.us": chat.Group,
		"IsGroup=false&GroupId=": chat.Message, "ProfileName=group": chat.Message,
	} {
		events, err := chat.Decode(formType, []byte("MessageSid=S&From=91&Body=1203@g.us&"+form))
		require.NoError(t, err)
		require.Equal(t, kind, events[0].Kind, form)
	}
}

// requireKind checks the kind of a message with a member, in each form of JSON.
func requireKind(t *testing.T, kind chat.Kind, member string) {
	t.Helper()
	for _, body := range []string{
		`{"entry":[{"changes":[{"value":{"messages":[{"from":"91","id":"1","type":"text",` + member + `}]}}]}]}`,
		`{"entry":[{"messaging":[{"sender":{"id":"9"},"recipient":{"id":"1"},"message":{"mid":"m","text":"x"},` + member + `}]}]}`,
		`{"type":"message","payload":{"id":"1","source":"91","type":"text",` + member + `}}`,
		`{"type":"message",` + member + `,"payload":{"id":"1","source":"91","type":"text"}}`,
	} {
		events, err := chat.Decode(jsonType, []byte(body))
		require.NoError(t, err, body)
		require.Equal(t, kind, events[0].Kind, body)
	}
}

func TestBytesThatAreNoTextAreReplaced(t *testing.T) {
	t.Parallel()
	events, err := chat.Decode(jsonType, []byte(`{"entry":[{"changes":[{"value":{"messages":[{"from":"91","id":"w1","type":"text",`+
		`"text":{"body":"`+"\xff"+`"}}]}}]}]}`))
	require.NoError(t, err)
	require.Equal(t, "\ufffd", events[0].Text)
	for _, text := range []string{"", "{", "\xff\xfe", "MessageSid=SM1&From=%2B919812345678"} {
		_, err := chat.Decode(jsonType, []byte(text))
		require.ErrorIs(t, err, chat.ErrUnreadable, text)
		require.Empty(t, chat.SenderKey(jsonType, []byte(text)))
		require.Empty(t, chat.Key(jsonType, []byte(text)))
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range bodies(f) {
		kind, body := g.call()
		f.Add(kind, body)
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		events, err := chat.Decode(kind, body)
		if err != nil {
			require.ErrorIs(t, err, chat.ErrUnreadable)
			require.Empty(t, events)
		}
		require.Equal(t, chat.Key(kind, body), chat.Key(kind, body)) //nolint:testifylint // the same body has the same key
	})
}
