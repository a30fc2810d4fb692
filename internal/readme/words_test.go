package readme

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheREADMEIsReadInAFewMinutes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Less(t, len(strings.Fields(string(text))), 900, "words")
	for _, guide := range []string{"client", "auditor", "operating"} { // one for each reader; developers have CONTRIBUTING.md
		require.Contains(t, string(text), "docs/"+guide+".md")
		require.FileExists(t, "../../docs/"+guide+".md")
	}
	require.Contains(t, string(text), "CONTRIBUTING.md")
}
