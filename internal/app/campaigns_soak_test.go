//go:build soak

package app_test

import "testing"

// Each of 2,000 recipients gets one message, even those that the killed node had begun.
func TestEachOfManyRecipientsGetsOneMessageThoughANodeIsKilled(t *testing.T) {
	t.Parallel()
	surviveCampaign(t, 2000, 900, 100, true)
}
