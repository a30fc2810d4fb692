package accessproj_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/apikey"
	"bahi/domain/access/plan"
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

func TestPlansAreAsTheProviderLastSaid(t *testing.T) {
	t.Parallel()
	reported := func(id, name, status string) projectiontest.Event {
		return projectiontest.Happened(plan.Kind, id, plan.Reported{CustomerKey: "k", Name: name, Status: status}, event.Meta{})
	}
	const one, two = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	tables := projectiontest.Run(t, accessproj.Plans, reported(one, "gold", "active"), reported(two, "", "past_due"),
		reported(one, "gold", "canceled"))
	require.Equal(t, []string{"(" + one + ",gold,canceled)", "(" + two + ",,past_due)"},
		tables.Rows(`select workspace_id, name, status from plan order by 1`))
}

func TestKeysAreListedWithoutWhatOpens(t *testing.T) {
	t.Parallel()
	home := uuid.MustParse("11111111-1111-4111-8111-111111111111")
	one, two := "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
	ends := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	created := func(id, name string, expires *time.Time) projectiontest.Event {
		return projectiontest.Happened(apikey.Kind, id, apikey.Created{
			By: "user:asha", Name: name, Workspace: home, SecretHash: []byte("the hash"), Permissions: actor.Permissions{Ledger: actor.Read},
			ExpiresAt: expires,
		}, event.Meta{Workspace: home})
	}
	tables := projectiontest.Run(t, accessproj.APIKeys,
		created(one, "till ₹", nil), created(two, "audit", &ends),
		projectiontest.Happened(apikey.Kind, one, apikey.Revoked{}, event.Meta{Workspace: home}))
	require.Equal(t, []string{
		`(` + one + `,` + home.String() + `,"till ₹",read,user:asha,,t)`,
		`(` + two + `,` + home.String() + `,audit,read,user:asha,"2030-01-02 03:04:05",)`,
	}, tables.Rows(`select id, workspace_id, name, permissions->>'ledger', created_by, expires_at at time zone 'UTC',
		revoked_at > created_at as revoked from api_key order by id`))
	require.Empty(t, tables.Rows(`select k from api_key k where k::text like '%hash%' or k::text like '%dGhlIGhhc2g%'`))
	for what, change := range map[string]string{
		"changed": `update api_key set name = 'till' where revoked_at is not null`, "lost": `delete from api_key where revoked_at is null`,
	} {
		tables.Exec(change)
		require.NotEmpty(t, tables.Examine(), what)
	}
}

func TestKeysThatAKeyMadeAreRevokedWithIt(t *testing.T) {
	t.Parallel()
	home := uuid.MustParse("11111111-1111-4111-8111-111111111111")
	id := func(n int) string { return fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", n) }
	happened := func(n int, e event.Event[apikey.State]) projectiontest.Event {
		return projectiontest.Happened(apikey.Kind, id(n), e, event.Meta{Workspace: home})
	}
	made := func(n int, by string) projectiontest.Event {
		return happened(n, apikey.Created{By: by, Name: "till", Workspace: home})
	}
	tables := projectiontest.Run(t, accessproj.APIKeys,
		made(1, "user:"+uuid.NewString()), made(2, "api_key:"+id(1)), made(3, "api_key:"+id(2)), made(4, "api_key:"+id(3)),
		made(5, "api_key:"+id(1)), made(6, "api_key:admin"),
		happened(3, apikey.Revoked{}), happened(2, apikey.Revoked{}), made(7, "api_key:"+id(2)), made(8, "api_key:"+id(7)),
	)
	require.Equal(t, []string{`(1,)`, `(2,2)`, `(3,3)`, `(4,3)`, `(5,)`, `(6,)`, `(7,7)`, `(8,8)`}, tables.Rows(`
		select right(k.id::text, 1), right(at.id::text, 1) from api_key k left join lateral (
			values ('2', (select revoked_at from api_key where id = '`+id(2)+`')), ('3', (select revoked_at from api_key where id = '`+id(3)+`')),
				(right(k.id::text, 1), k.created_at)
		) as at (id, moment) on at.moment = k.revoked_at order by k.id`))
	tables.Exec(`update api_key set revoked_at = null where parent_key_id = '` + id(3) + `'`)
	require.NotEmpty(t, tables.Examine())
}
