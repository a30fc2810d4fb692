//go:build soak

package webhooks_test

import "testing"

func TestFiveThousandCallsHaveTheEffectsOfTheDistinctOnes(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.work()
	burst(t, r, 1000, 5) // the list has at most 1,000
}
