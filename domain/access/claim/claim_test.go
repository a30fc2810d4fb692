package claim_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/internal/test/eventtest"
)

// The stored form of claims names users and never changes.
func TestClaimsAreStoredAsTheyWere(t *testing.T) {
	t.Parallel()
	asha, ravi := uuid.New(), uuid.New()
	noon := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	for value, c := range map[*claims.Value]struct{ claimed, released event.Event[claims.State] }{
		&claim.Email:    {claim.Claimed{User: asha, Since: noon}, claim.Released{User: asha}},
		&claim.Identity: {claim.IdentityClaimed{User: asha, Since: noon}, claim.IdentityReleased{User: asha}},
	} {
		free := eventtest.Given(t, value.Kind)
		free.Case("the first user has it, since a moment in UTC").
			When(claims.Claim{Value: *value, Holder: asha.String(), Now: noon.In(time.FixedZone("IST", 19800))}).Then(c.claimed)
		free.Case("a free value cannot be released").When(claims.Release{Value: *value, Holder: asha.String()}).ThenNothing()
		require.Equal(t, uuid.Nil, claim.Holder(free.State()))
		hers := free.And(c.claimed)
		require.Equal(t, claims.State{Holder: asha.String(), Since: noon}, hers.State())
		require.Equal(t, asha, claim.Holder(hers.State()))
		hers.Case("another user cannot release it").When(claims.Release{Value: *value, Holder: ravi.String()}).ThenNothing()
		hers.Case("the holder can release it").When(claims.Release{Value: *value, Holder: asha.String()}).Then(c.released)
		require.Equal(t, claims.State{}, hers.And(c.released).State())
	}
}
