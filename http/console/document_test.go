package console

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func text(spans []piece) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

func TestDocumentsKeepTheirOrderAndTheirDigits(t *testing.T) {
	t.Parallel()
	want := []string{
		`{`, `  "z": 12.50,`, `  "a": [`, `    1,`, `    "<b> & \"c\"",`, `    null,`, `    true`, `  ],`, `  "none": {},`, `  "empty": []`, `}`,
	}
	require.Equal(t, want, strings.Split(text(spans([]byte(`{"z":12.50,"a":[1,"<b> & \"c\"",null,true],"none":{},"empty":[]}`))), "\n"))
	require.Equal(t, "no JSON", text(spans([]byte("no JSON"))))
}

func TestDocumentRoundTrips(t *testing.T) {
	t.Parallel()
	leaf := rapid.OneOf(rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(), rapid.Just(any(nil)))
	rapid.Check(t, func(t *rapid.T) {
		document := map[string]any{
			"list": rapid.SliceOf(leaf).Draw(t, "list"), "map": rapid.MapOf(rapid.String(), leaf).Draw(t, "map"),
		}
		data, err := json.Marshal(document)
		require.NoError(t, err)
		require.JSONEq(t, string(data), text(spans(data)))
	})
}

func TestSealedValuesStaySealed(t *testing.T) {
	t.Parallel()
	got := spans([]byte(`{"email":{"sealed":1,"class":"personal","subject":"user-1","key":1,"box":"QVNIQQ=="},"list":[{"sealed":1,"class":"secret","subject":"channel-2","key":1,"box":"eA=="}]}`))
	require.Contains(t, got, piece{"sealed", "sealed: personal, of user-1"})
	require.Contains(t, got, piece{"sealed", "sealed: secret, of channel-2"})
	require.NotContains(t, text(got), "QVNIQQ")
}

func TestChangesAreListedByField(t *testing.T) {
	t.Parallel()
	before := []byte(`{"date":"2025-03-01","in_entries":[{"amount":10,"description":"sale"}],"out_entries":[]}`)
	after := []byte(`{"date":"2025-03-02","in_entries":[{"amount":10.50},{"amount":2}],"out_entries":[]}`)
	require.Equal(t, []change{
		{"date", "2025-03-01", "2025-03-02"}, {"in_entries[0].amount", "10", "10.50"}, {"in_entries[1].amount", "", "2"}, {"in_entries[0].description", "sale", ""},
	}, changes(before, after))
	require.Equal(t, []change{{"date", "", "2025-03-01"}}, changes(nil, []byte(`{"date":"2025-03-01"}`)))
	require.Equal(t, []change{{"date", "2025-03-01", ""}}, changes([]byte(`{"date":"2025-03-01"}`), nil))
	require.Empty(t, changes(before, before))
	require.Empty(t, changes(nil, nil))
}
