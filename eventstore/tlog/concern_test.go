package tlog

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Other verifiers decode the whole object into a map.
func TestTheAccountOfARowIsThatOfTheDecodedObject(t *testing.T) {
	for _, object := range []string{
		`{"account":7}`, `{"account": 7 }`, `{"account":7,"Account":8}`, `{"Account":8}`, `{"account":7,"account":8}`, `{"acc\u006funt":7}`,
		`{"a":{"account":1},"account":7,"b":[{"account":2}]}`, `{"account":"7"}`, `{"account":{"account":7}}`, `{"account":null}`, `{}`, ``,
		`null`, `7`, `[{"account":7}]`, `{"account":7`, `{"account":7}x`, `{"account":7}{}`, `{"account":7},`, `{"account":07}`, `{"account":7,}`,
		`{"account" 7}`, "{\"account\":7,\"\xff\":1}", "{\"\xff\":1,\"account\":7}", ` {"account":7} `, `{"account":7e0}`,
	} {
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(object), &members) != nil {
			members = nil
		}
		require.Equal(t, string(members["account"]), accountOf([]byte(object)), object)
	}
}
