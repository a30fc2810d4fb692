package wording_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

func TestNamesSoundAlikeInEveryScript(t *testing.T) {
	t.Parallel()
	for latin, others := range map[string][]string{
		"Ramesh Patel": {"रमेश पटेल", "રમેશ પટેલ"}, "Laxmi Jewellers": {"Lakshmi Jewellers"}, "Lakshmi": {"लक्ष्मी", "લક્ષ્મી", "Laxmee"},
		"Deepak Shah": {"दीपक शाह", "દીપક શાહ", "Dipak Shah"}, "Imran": {"इमरान", "ઇમરાન"}, "Vaishali": {"वैशाली"}, "Farid": {"फरीद", "Phareed"},
		"Jignesh Soni": {"જિગ્નેશ સોની"}, "Asha": {"आशा", "આશા"}, "Ambika": {"अंबिका"}, "Wazir": {"वज़ीर", "Vazeer"}, "Vijay": {"विजय", "વિજય"},
	} {
		for _, other := range others {
			require.Equal(t, wording.PhoneticKeys(latin), wording.PhoneticKeys(other), other)
			if wording.Indic(other) {
				require.Equal(t, 900, wording.Similarity(latin, other), "the same, but not for sure: %s", other)
				require.Equal(t, 900, wording.Similarity(other, latin), other)
			}
		}
	}
	require.Less(t, wording.Similarity("Suresh", "रमेश"), 400)
	require.Less(t, wording.Similarity("Imran", "इरफान"), 400)
	require.Greater(t, wording.Similarity("Ramesh Patel", "रमेश पटेलं"), 400, "nearly the same")
	require.Zero(t, wording.Similarity("Imran", "१२३"))
	require.Zero(t, wording.Similarity("", "रमेश"))
}
