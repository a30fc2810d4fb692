package wording_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/wording"
)

func TestTextsAreTidied(t *testing.T) {
	t.Parallel()
	for text, tidy := range map[string]string{" a\tb\r\nc ": "a\tb\r\nc", "<b>=1+1</b>": "<b>=1+1</b>", "વીંટી": "વીંટી", " ": "",
		"\u200b \u2060": "", "\u3164": "", "ab\u200dc": "ab\u200dc", "\u200e a\u200fb": "ab"} {
		got, err := wording.Normalise("name", text, 11)
		require.NoError(t, err)
		require.Equal(t, tidy, got)
	}
	for _, text := range []string{"a\x00b", "a\x1bb", "a\u202eb", "a\u2067b", "a\xffb", strings.Repeat("é", 12)} {
		_, err := wording.Normalise("name", text, 11)
		require.ErrorContains(t, err, "name: ", "%q", text)
	}
}

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
