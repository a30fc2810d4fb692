package storetest

import (
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Goroutines counts the goroutines with a pprof label, which a goroutine passes on to those that it starts.
func Goroutines(t testing.TB, label string) (count int) {
	t.Helper()
	var text strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	for _, m := range regexp.MustCompile(`(?m)^(\d+) @.*\n# labels: .*`+label).FindAllStringSubmatch(text.String(), -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		count += n
	}
	return count
}
