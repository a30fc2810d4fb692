//go:build soak

package webhooks_test

import "testing"

func TestFiveThousandCallsHaveTheEffectsOfTheDistinctOnes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work()
	burst(t, r, 1250, 4)
}
