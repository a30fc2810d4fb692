package readme

import (
	"strings"
	"testing"

	"bahi/internal/test/worktest"

	"github.com/stretchr/testify/require"
)

func TestTheREADMEIsReadInAFewMinutes(t *testing.T) {
	t.Parallel()
	text := worktest.File(t, "../../README.md")
	require.Less(t, len(strings.Fields(string(text))), 900, "words")
	for _, guide := range []string{"client", "auditor", "operating"} { // one for each reader; developers have CONTRIBUTING.md
		require.Contains(t, string(text), "docs/"+guide+".md")
		require.FileExists(t, "../../docs/"+guide+".md")
	}
	require.Contains(t, string(text), "CONTRIBUTING.md")
}
