package storetest

import (
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Goroutines counts those that bear a label of pprof, which all that one starts have from it.
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
