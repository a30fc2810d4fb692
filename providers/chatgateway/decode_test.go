package chatgateway_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/worktest"
	"bahi/providers/chatgateway"
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
	Dialect    chatgateway.Dialect
	Key        *string
	SenderKey  string
	Unreadable bool
	Events     []chatgateway.Event
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
	require.Len(t, all, 95)
	return all
}

func TestBodiesAreRead(t *testing.T) {
	t.Parallel()
	for _, g := range bodies(t) {
		kind, body := g.call()
		events, err := chatgateway.Decode(kind, body)
		if g.Unreadable {
			require.ErrorIs(t, err, chatgateway.ErrUnreadable, "%s", body)
			continue
		}
		require.NoError(t, err, "%s: %s", g.What, body)
		require.Equal(t, g.Events, append([]chatgateway.Event{}, events...), "%s: %s", g.What, body)
		if g.Dialect != "" {
			dialect, err := chatgateway.Detect(kind, body)
			require.NoError(t, err)
			require.Equal(t, g.Dialect, dialect)
		}
		if g.Key != nil {
			require.Equal(t, *g.Key, chatgateway.Key(kind, body), "%s", body)
		}
		if g.SenderKey != "" {
			require.Equal(t, g.SenderKey, chatgateway.SenderKey(kind, body), "%s", body)
		}
	}
}

func TestBytesThatAreNoTextAreReplaced(t *testing.T) {
	t.Parallel()
	events, err := chatgateway.Decode(jsonType, []byte(`{"entry":[{"changes":[{"value":{"messages":[{"from":"91","id":"w1","type":"text",`+
		`"text":{"body":"`+"\xff"+`"}}]}}]}]}`))
	require.NoError(t, err)
	require.Equal(t, "\ufffd", events[0].Text)
	for _, text := range []string{"", "{", "\xff\xfe", "MessageSid=SM1&From=%2B919812345678"} {
		_, err := chatgateway.Decode(jsonType, []byte(text))
		require.ErrorIs(t, err, chatgateway.ErrUnreadable, text)
		require.Empty(t, chatgateway.SenderKey(jsonType, []byte(text)))
		require.Empty(t, chatgateway.Key(jsonType, []byte(text)))
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range bodies(f) {
		kind, body := g.call()
		f.Add(kind, body)
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		events, err := chatgateway.Decode(kind, body)
		if err != nil {
			require.ErrorIs(t, err, chatgateway.ErrUnreadable)
			require.Empty(t, events)
		}
		require.Equal(t, chatgateway.Key(kind, body), chatgateway.Key(kind, body)) //nolint:testifylint // the same body has the same key
	})
}
