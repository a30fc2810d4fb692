package session_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/session"
	"bahi/internal/test/eventtest"
)

func TestASession(t *testing.T) {
	t.Parallel()
	asha := uuid.New()
	none := eventtest.Given(t, session.Kind)
	none.Case("it begins").When(session.Begin{User: asha, By: session.ByPassword}).Then(session.SignedIn{User: asha, By: "password"})
	none.Case("a missing session does not end").When(session.End{}).ThenNothing()

	begun := none.And(session.SignedIn{User: asha, By: session.ByProvider})
	require.Equal(t, session.State{User: asha}, begun.State())
	begun.Case("it begins once").When(session.Begin{User: asha, By: session.ByPassword}).ThenNothing()
	begun.Case("it ends").When(session.End{}).Then(session.SignedOut{User: asha})

	ended := begun.And(session.SignedOut{User: asha})
	require.Equal(t, session.State{User: asha, Ended: true}, ended.State())
	ended.Case("it ends once").When(session.End{}).ThenNothing()
	ended.Case("it does not begin again").When(session.Begin{User: asha, By: session.ByPassword}).ThenNothing()
}
