//go:build soak

package app_test

import "testing"

// Each of 10,000 parties gets its statement once, and each answer counts once.
func TestEachOfManyPartiesIsAskedOnceThoughTheProgramIsKilled(t *testing.T) {
	t.Parallel()
	surviveConfirmation(t, 10_000, 3, 100)
}
