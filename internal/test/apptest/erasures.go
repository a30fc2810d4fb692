package apptest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/access/user"
	"bahi/internal/app"
)

// Erased requests a user's deletion, and waits for the erasure.
func (o *Server) Erased(p Person) {
	o.T.Helper()
	p.POST(Me+"/delete-request", nil).Status(200)
	id := uuid.MustParse(p.User.ID)
	require.Eventually(o.T, func() bool {
		l, err := commands.Load(o.T.Context(), o.Sys.Commands.Fresh(), user.Kind, id.String())
		require.NoError(o.T, err)
		return l.State.Erased
	}, time.Minute, 20*time.Millisecond)
}

// StartErasing serves a system that erases users without a grace.
func StartErasing(t *testing.T, adapt ...func(*app.System)) *Server {
	t.Helper()
	s := Settings(t, Database(t))
	s.Outside.Grace = new(time.Millisecond)
	return StartAs(t, s, adapt...)
}
