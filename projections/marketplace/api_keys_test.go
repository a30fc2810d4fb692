package marketplace_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/marketplace/apikey"
	"bahi/projections/marketplace"
	"bahi/projections/projectiontest"
)

func TestKeysAreListedWithoutWhatOpens(t *testing.T) {
	t.Parallel()
	home := uuid.MustParse("11111111-1111-4111-8111-111111111111")
	one, two := "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
	ends := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	created := func(id, name string, expires *time.Time) projectiontest.Event {
		return projectiontest.Happened(apikey.Kind, id, apikey.Created{
			By: "user:asha", Name: name, Workspace: home, SecretHash: []byte("the hash"), Permissions: actor.Permissions{Ledger: actor.Read}, ExpiresAt: expires,
		}, event.Meta{Workspace: home})
	}
	tables := projectiontest.Run(t, marketplace.APIKeys,
		created(one, "till ₹", nil), created(two, "audit", &ends),
		projectiontest.Happened(apikey.Kind, one, apikey.Revoked{}, event.Meta{Workspace: home}))
	require.Equal(t, []string{
		`(` + one + `,` + home.String() + `,"till ₹",read,user:asha,,t)`,
		`(` + two + `,` + home.String() + `,audit,read,user:asha,"2030-01-02 03:04:05",)`,
	}, tables.Rows(`select id, workspace_id, name, permissions->>'ledger', created_by, expires_at at time zone 'UTC', revoked_at > created_at as revoked from api_key order by id`))
	require.Empty(t, tables.Rows(`select k from api_key k where k::text like '%hash%' or k::text like '%dGhlIGhhc2g%'`))
	for what, change := range map[string]string{
		"changed": `update api_key set name = 'till' where revoked_at is not null`, "lost": `delete from api_key where revoked_at is null`,
	} {
		tables.Exec(change)
		require.NotEmpty(t, tables.Examine(), what)
	}
}
