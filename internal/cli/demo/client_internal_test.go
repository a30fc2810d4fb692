package demo

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/readmodels"
)

func TestAWriteThatCameTooEarlyIsSentAgain(t *testing.T) {
	t.Parallel()
	var asked int
	c := client{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			http.Error(w, readmodels.ErrNotYet.Error(), http.StatusServiceUnavailable)
		}
	})}
	require.NoError(t, c.call(t.Context(), http.MethodPost, "/bullion-ledger/1/row/1/void", `{}`, nil))
	require.Equal(t, 2, asked)
}

func TestNamesOfTheLargestDemoAreShortAndDifferent(t *testing.T) {
	t.Parallel()
	for _, name := range []func(int) string{house, bankAccount} {
		seen := map[string]bool{}
		for n := range Sizes["large"] / 100 {
			require.LessOrEqual(t, len(name(n)), 60)
			require.False(t, seen[name(n)], name(n))
			seen[name(n)] = true
		}
	}
}
