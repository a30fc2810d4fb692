package demo

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWriteThatIsUnavailableIsSentAgainByItsKey(t *testing.T) {
	t.Parallel()
	var keys []string
	c := client{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) == 1 {
			http.Error(w, "It took too long, try again", http.StatusServiceUnavailable)
		}
	})}
	require.NoError(t, c.call(t.Context(), http.MethodPost, "/bullion-ledger/1/row/1/void", `{}`, nil))
	require.Len(t, keys, 2)
	require.NotEmpty(t, keys[0])
	require.Equal(t, keys[0], keys[1])
}

func TestNamesOfTheLargestDemoAreShortAndDifferent(t *testing.T) {
	t.Parallel()
	for _, name := range []func(int) string{house, bankAccount} {
		seen := map[string]bool{}
		for n := range sizes["large"] / 100 {
			require.LessOrEqual(t, len(name(n)), 60)
			require.False(t, seen[name(n)], name(n))
			seen[name(n)] = true
		}
	}
}
