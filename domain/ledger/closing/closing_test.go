package closing_test

import (
	"testing"

	"bahi/domain/ledger/closing"
)

// The digests were computed by sha256sum from the text that docs/books.md specifies.
func TestDigest(t *testing.T) {
	t.Parallel()
	three := []closing.Balance{
		{Ledger: "bullion", Account: 100, Cash: 999_999_999_999_999, Fine: -999_999_999_999},
		{Ledger: "karigar", Account: 12, Fine: 91_600, Rows: 1},
		{Ledger: "bank", Account: 7, Cash: -150_050, Rows: 3},
	}
	for want, of := range map[string][]closing.Balance{
		"7b58d1b1e45b3156162d8306b919e54b3f53575dce580bbc45f18b92de624fe6": nil,
		"4b0e4dc91374b227fe14b6ef94558d0342bc1424df6186ca51d1d66e72150bc1": {{Ledger: "bank", Account: 1}},
		"9e54fe6491013a3b76c0abe549b22a1b776537b2102f5d894c6c33cee99089e6": three,
	} {
		if got := closing.Digest(of); got != want {
			t.Errorf("the digest of %+v is %s, want %s", of, got, want)
		}
	}
	if three[0].Account != 100 {
		t.Error("Digest changes the order of its argument")
	}
	for name, changed := range map[string]closing.Balance{
		"ledger": {"bullion", 7, -150_050, 0, 3}, "account": {"bank", 8, -150_050, 0, 3}, "cash": {"bank", 7, -150_051, 0, 3},
		"fine": {"bank", 7, -150_050, 1, 3}, "rows": {"bank", 7, -150_050, 0, 4},
	} {
		if closing.Digest([]closing.Balance{three[0], three[1], changed}) == closing.Digest(three) {
			t.Errorf("the digest does not depend on the %s", name)
		}
	}
}
