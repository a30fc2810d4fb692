package claim_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/claim"
	"bahi/domain/event/eventtest"
)

var (
	asha, ravi = uuid.MustParse("aaaaaaaa-0000-4000-8000-000000000001"), uuid.MustParse("bbbbbbbb-0000-4000-8000-000000000002")
	noon       = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	later      = noon.Add(time.Hour)
	kolkata    = time.FixedZone("IST", 19800)
)

func TestAnAddress(t *testing.T) {
	t.Parallel()
	free := eventtest.Given(t, claim.Email)
	free.Case("who comes first has it, since a moment in UTC").
		When(claim.Take{User: asha, Now: noon.In(kolkata)}).Then(claim.Claimed{User: asha, Since: noon})
	free.Case("nobody gives up what is nobody's").When(claim.Release{User: asha}).ThenNothing()
	free.Case("nor does nobody").When(claim.Release{}).ThenNothing()

	hers := free.And(claim.Claimed{User: asha, Since: noon})
	require.Equal(t, claim.State{User: asha, Since: noon}, hers.State())
	hers.Case("it is nobody else's").When(claim.Take{User: ravi, Now: later}).ThenFails(claim.ErrTaken)
	hers.Case("nor is it when a third one was forsaken").When(claim.Take{User: ravi, Now: later, Forsaken: uuid.New()}).ThenFails(claim.ErrTaken)
	hers.Case("unless it was forsaken").When(claim.Take{User: ravi, Now: later, Forsaken: asha}).Then(claim.Claimed{User: ravi, Since: later})
	hers.Case("she may claim it anew").When(claim.Take{User: asha, Now: later}).Then(claim.Claimed{User: asha, Since: later})
	hers.Case("nobody else gives it up").When(claim.Release{User: ravi}).ThenNothing()
	hers.Case("she gives it up").When(claim.Release{User: asha}).Then(claim.Released{User: asha})

	given := hers.And(claim.Released{User: asha})
	require.Equal(t, claim.State{}, given.State())
	given.Case("what was given up is free").When(claim.Take{User: ravi, Now: later}).Then(claim.Claimed{User: ravi, Since: later})
	given.Case("and is given up once").When(claim.Release{User: asha}).ThenNothing()
}

func TestAnIdentity(t *testing.T) {
	t.Parallel()
	free := eventtest.Given(t, claim.Identity)
	free.Case("who comes first has it").
		When(claim.Take{User: asha, Now: noon, Kind: claim.AnIdentity}).Then(claim.IdentityClaimed{User: asha, Since: noon})
	hers := free.And(claim.IdentityClaimed{User: asha, Since: noon})
	require.Equal(t, claim.State{User: asha, Since: noon}, hers.State())
	hers.Case("it is nobody else's").When(claim.Take{User: ravi, Now: later, Kind: claim.AnIdentity}).ThenFails(claim.ErrTaken)
	hers.Case("unless it was forsaken").
		When(claim.Take{User: ravi, Now: later, Forsaken: asha, Kind: claim.AnIdentity}).Then(claim.IdentityClaimed{User: ravi, Since: later})
	hers.Case("she gives it up").When(claim.Release{User: asha, Kind: claim.AnIdentity}).Then(claim.IdentityReleased{User: asha})
	hers.Case("nobody else does").When(claim.Release{User: ravi, Kind: claim.AnIdentity}).ThenNothing()
	require.Equal(t, claim.State{}, hers.And(claim.IdentityReleased{User: asha}).State())
}
