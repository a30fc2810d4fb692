package wording_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/wording"
)

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
