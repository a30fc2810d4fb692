package accessproj_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/internal/test/projectiontest"
	"bahi/projections/accessproj"
)

func TestMembersAreThoseWhoBelong(t *testing.T) {
	t.Parallel()
	abroad := uuid.MustParse("22222222-2222-4222-8222-222222222222")
	in := func(id uuid.UUID, e event.Event[workspace.State]) projectiontest.Event {
		return projectiontest.Happened(workspace.Kind, id.String(), e, event.Meta{Workspace: id})
	}
	clerk, partner := actor.Permissions{Ledger: actor.Read}, actor.Permissions{Marketplace: actor.Write}
	invitation := uuid.New()
	tables := projectiontest.Run(t, accessproj.Workspaces,
		in(home, workspace.Created{Owner: asha}), in(abroad, workspace.Created{Owner: ravi}),
		in(home, workspace.Invited{Invitation: invitation, Email: event.NewPersonal("invitee-1", "ravi@example.org"), Permissions: clerk,
			ExpiresAt: due}),
		in(home, workspace.Joined{Invitation: invitation, User: ravi, Permissions: clerk}),
		in(home, workspace.Changed{User: ravi, From: clerk, To: partner}),
		in(abroad, workspace.Removed{User: ravi, Erased: true}),
		in(abroad, workspace.Joined{User: asha, Permissions: clerk}), in(abroad, workspace.Removed{User: asha}),
		in(abroad, workspace.Joined{User: asha, Permissions: partner}),
	)
	require.Equal(t, []string{
		`(` + home.String() + `,` + asha.String() + `,write,write,0)`,
		`(` + home.String() + `,` + ravi.String() + `,,write,3)`,
		`(` + abroad.String() + `,` + asha.String() + `,,write,4)`,
	}, tables.Rows(`select workspace_id, user_id, permissions->>'ledger', permissions->>'marketplace', revision from member
		order by workspace_id, user_id`))
	require.Empty(t, tables.Rows(`select from member m where m::text like '%@%'`))
	tables.Exec(`delete from member where user_id = '` + ravi.String() + `'`)
	require.NotEmpty(t, tables.Examine())
}

func TestInvitationsAreKeptWithoutTheirAddresses(t *testing.T) {
	t.Parallel()
	one, two, three := uuid.MustParse("00000000-0000-4000-8000-000000000001"), uuid.MustParse("00000000-0000-4000-8000-000000000002"),
		uuid.MustParse("00000000-0000-4000-8000-000000000003")
	ends := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clerk := actor.Permissions{Ledger: actor.Read}
	happened := func(e event.Event[workspace.State]) projectiontest.Event {
		return projectiontest.Happened(workspace.Kind, home.String(), e, event.Meta{Workspace: home})
	}
	invited := func(id uuid.UUID, key string) projectiontest.Event {
		return happened(workspace.Invited{
			Invitation: id, By: "user:" + asha.String(), Email: event.NewPersonal(workspace.InvitationSubject(id), "ravi@example.org"),
			EmailKey:    key,
			Permissions: clerk, InvitedAt: ends.Add(-time.Hour), ExpiresAt: ends,
		})
	}
	tables := projectiontest.Run(t, accessproj.Workspaces,
		happened(workspace.Created{Owner: asha}), invited(one, "r"), invited(two, "r"), invited(three, "m"),
		happened(workspace.Withdrawn{Invitation: two}), happened(workspace.Joined{Invitation: one, User: ravi, Permissions: clerk}))
	at := "," + home.String() + ","
	require.Equal(t, []string{
		"(" + one.String() + at + `r,"2030-01-02 03:04:05",t)`,
		"(" + two.String() + at + `r,"2030-01-02 03:04:05",t)`,
		"(" + three.String() + at + `m,"2030-01-02 03:04:05",f)`,
	}, tables.Rows(`select id, workspace_id, email_key, expires_at at time zone 'UTC', ended_at is not null as ended from invitation
		order by id`))
	require.Empty(t, tables.Rows(`select i from invitation i where i::text like '%example%'`))
	tables.Erase(workspace.InvitationSubject(one))
	require.Empty(t, tables.Examine(), "an erased one changes nothing")
}
