package audit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"=1+1", "+1", "-1", "@A1", ";=1+1", "\t=1", "\r=1", "\n=1", "\uFEFF=1", "＝1", "＋1", "－1", "＠A1", "；=1", "="} {
		require.Equal(t, "'"+text, cell(text))
	}
	for _, text := range []string{"", "Rent", "a=b", "दुकान", "'=1", "1", "\xff=1"} {
		require.Equal(t, text, cell(text))
	}
}
