package ledgerproj

import (
	"math"
	"math/big"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTotalsHoldMoreThan64Bits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(
			rapid.Int64(), rapid.Int64Range(-1000, 1000), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64}),
		)).Draw(t, "parts")
		var (
			sum  total
			want big.Int
		)
		for _, n := range parts {
			sum.add(n)
			want.Add(&want, big.NewInt(n))
		}
		require.Zero(t, want.Cmp(sum.big()), "%s, not %s", sum.big(), &want)
		doubled := sum
		doubled.plus(sum, 1)
		require.Zero(t, new(big.Int).Lsh(&want, 1).Cmp(doubled.big()))
		doubled.plus(sum, -1)
		require.Equal(t, sum, doubled)
		require.True(t, decimal.NewFromBigInt(&want, -2).Equal(decimal.RequireFromString((&cash{sum}).String())))
		require.True(t, decimal.NewFromBigInt(&want, -3).Equal(decimal.RequireFromString((&fine{sum}).String())))
		var c cash
		require.NoError(t, c.Scan(decimal.NewFromBigInt(&want, -2).String()))
		require.Equal(t, sum, c.total)
	})
}
