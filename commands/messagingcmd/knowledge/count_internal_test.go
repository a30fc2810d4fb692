package knowledge

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWordsThatAreSimilarHaveATrigramInCommonThatIsSought(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		grams := trigrams{7, map[string]int64{}}
		one := rapid.StringMatching(`[abc]{1,12}`).Draw(t, "one")
		other := rapid.StringMatching(`[abc]{1,12}`).Draw(t, "other")
		sought := grams.seekers(other)
		common, of := alikeness(one, other)
		if 100*common >= similar*of && !slices.ContainsFunc(grams.seekers(one), func(key int64) bool { return slices.Contains(sought, key) }) {
			t.Fatalf("%s is not found by %s", other, one)
		}
	})
}

func TestParagraphsAreThoseOfTheExpression(t *testing.T) {
	t.Parallel()
	cut := func(parts []string) (kept []string) {
		for _, part := range parts {
			if part = strings.TrimSpace(part); part != "" {
				kept = append(kept, part)
			}
		}
		return kept
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[a \t\n\f]{0,30}").Draw(t, "text")
		require.Equal(t, cut(regexp.MustCompile(`\n[ \t]*(?:\n[ \t]*)+|\f`).Split(text, -1)), cut(slices.Collect(paragraphs(text))))
	})
}
