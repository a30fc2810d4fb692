package ledgerview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/readmodels/ledgerview"
)

func TestAnEntryIsReadInWords(t *testing.T) {
	t.Parallel()
	for entry, words := range map[string]string{
		`{"amount":12.5}`: "",
		`{"item_name":"पायल","weight":100,"touch":92,"computed":["fine_weight"]}`:    "पायल, weight 100, touch 92",
		`{"weight":1,"description":"a_b, \"c\""}`:                                    `a_b, "c", weight 1`,
		`{"kind":"rate_cut","fine_weight":10,"rate":172500.5,"rate_unit":"per_10g"}`: "rate cut, fine weight 10, rate 1,72,500.5, per 10g",
		`{"description":"bill 1250000","making_charge":1250}`:                        "bill 1250000, making charge 1,250",
		`{"kind":"rate_cut","amount":70000,"counter":true}`:                          "rate cut, counter",
		`{"kind":"metal","item_name":"bar_kind","fine_weight":0.001,"amount":70000}`: "bar_kind, metal, fine weight 0.001",
	} {
		require.Equal(t, words, ledgerview.Words([]byte(entry)))
	}
}
