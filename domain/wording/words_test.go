package wording_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/wording"
)

func TestWordsAreFoldedInEveryScript(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"asha", "sons", "2nd", "élodie", "વીંટી", "strasse"},
		wording.Words("ASHA & Sons' 2nd", "asha Élodie વીંટી", "Straße"))
	require.Empty(t, wording.Words("- | & !", ""))
	require.Len(t, wording.Words(strings.Repeat("a", 99))[0], 40)
	require.Equal(t, []string{"  વ", " વી", "વી "}, wording.Grams("વી"))
	distinct, grams := wording.VocabularyOf([]string{"ab", "x7", "ab"})
	require.Equal(t, []string{"ab"}, distinct, "words with digits are not learnt, and none is twice")
	require.Equal(t, []string{"  a\n ab\nab "}, grams)
	rapid.Check(t, func(t *rapid.T) {
		for _, word := range wording.Words(rapid.String().Draw(t, "text")) {
			require.NotEmpty(t, word)
			require.Len(t, wording.Words(word), 1, "a word is one word")
		}
	})
}

func TestTermsAreStemmedForPostgres(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"rs", "1250", "22k", "पायलें"}, slices.Collect(wording.Terms("₹१२५०, 22K पायलें")))
	require.Equal(t, "7/rings:1 7/ring:1A 7/having:2 7/22ks:3 7/पायलें:4 ", wording.Vector(7, "Rings having 22Ks पायलें"))
	require.Equal(t, "(7/rings|7/ring)&(7/gold)", wording.Query(7, []string{"rings", "ring"}, []string{"gold"}))
	for term, stem := range map[string]string{"relational": "relat", "having": "having", "élodies": "élodies", "": ""} {
		require.Equal(t, stem, wording.Stem(term))
	}
	require.True(t, wording.IsStop("having"))
	require.False(t, wording.IsStop("gold"))
}

func TestSimilarWordsHaveARareTrigramInCommon(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.StringMatching(`[abc]{1,12}`).Draw(t, "one")
		other := rapid.StringMatching(`[abc]{1,12}`).Draw(t, "other")
		percentage := rapid.IntRange(1, 100).Draw(t, "percentage")
		grams := wording.Grams(other)
		common, all := wording.Common([]string{one}, []string{other})
		if 100*common >= percentage*all && !slices.ContainsFunc(wording.RareGrams(one, percentage), func(gram string) bool {
			return slices.Contains(grams, gram)
		}) {
			t.Fatalf("%s is not found by %s", other, one)
		}
	})
}
