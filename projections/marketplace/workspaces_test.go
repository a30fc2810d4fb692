package marketplace_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/marketplace/workspace"
	"bahi/projections/marketplace"
	"bahi/projections/projectiontest"
)

func TestMembersAreThoseWhoBelong(t *testing.T) {
	t.Parallel()
	abroad := uuid.MustParse("22222222-2222-4222-8222-222222222222")
	in := func(id uuid.UUID, e event.Event[workspace.State]) projectiontest.Event {
		return projectiontest.Happened(workspace.Kind, id.String(), e, event.Meta{Workspace: id})
	}
	clerk, partner := actor.Permissions{Ledger: actor.Read}, actor.Permissions{Marketplace: actor.Write}
	invitation := uuid.New()
	tables := projectiontest.Run(t, marketplace.Workspaces,
		in(home, workspace.Made{Owner: asha}), in(abroad, workspace.Made{Owner: ravi}),
		in(home, workspace.Invited{Invitation: invitation, Email: event.NewPersonal("invitee-1", "ravi@example.org"), Permissions: clerk, ExpiresAt: due}),
		in(home, workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk}),
		in(home, workspace.Changed{User: ravi, From: clerk, To: partner}),
		in(abroad, workspace.Removed{User: ravi, Erased: true}),
		in(abroad, workspace.Joined{User: asha, Permissions: clerk}), in(abroad, workspace.Removed{User: asha}), in(abroad, workspace.Joined{User: asha, Permissions: partner}),
	)
	require.Equal(t, []string{
		`(` + home.String() + `,` + asha.String() + `,write,write)`,
		`(` + home.String() + `,` + ravi.String() + `,,write)`,
		`(` + abroad.String() + `,` + asha.String() + `,,write)`,
	}, tables.Rows(`select workspace_id, user_id, permissions->>'ledger', permissions->>'marketplace' from member order by workspace_id, user_id`))
	require.Empty(t, tables.Rows(`select from member m where m::text like '%@%'`))
	tables.Exec(`delete from member where user_id = '` + ravi.String() + `'`)
	require.NotEmpty(t, tables.Examine())
}
