package accessproj_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/apikey"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/internal/test/projectiontest"
	"bahi/projections/accessproj"
)

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
	tables.Exec(`update api_key set revoked_at = null where made_by = '` + id(3) + `'`)
	require.NotEmpty(t, tables.Examine())
}
