package http_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestAKeyIsMadeListedAndRevoked(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	master := o.Key(o.Home, `{"ledger":"write","marketplace":"write"}`)
	owner := apitest.New(t, o.URL, master.Key)
	a := owner.POST("/api/v1/api-keys", `{"name":" Till 1 ","permissions":{"ledger":"write"}}`).Status(201)
	made := apitest.Read[apptest.ApiKey](a)
	require.Equal(t, "Till 1", made.Name)
	require.Equal(t, o.Home, made.WorkspaceID)
	require.Regexp(t, `^bahi_[0-9a-f]{32}_[A-Za-z0-9_-]{43}$`, made.Key)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	till := apitest.New(t, o.URL, made.Key)
	apptest.Open(till, "HDFC")

	list := owner.GET("/api/v1/api-keys").Status(200)
	require.NotContains(t, list.Text, made.Key[38:], "the secret is shown once")
	keys := apitest.Read[[]apptest.ApiKey](list)
	require.Len(t, keys, 2)
	require.Equal(t, []string{master.ID, made.ID}, []string{keys[0].ID, keys[1].ID})
	require.Equal(t, []string{"api_key:admin", "api_key:" + master.ID}, []string{keys[0].CreatedBy, keys[1].CreatedBy})
	require.Equal(t, keys[1].CreatedBy, made.CreatedBy)
	require.Nil(t, keys[1].RevokedAt)

	// Another workspace does not see these keys.
	foreigner := apitest.New(t, o.URL, o.Key(o.Abroad, `{"marketplace":"write"}`).Key)
	require.NotContains(t, foreigner.GET("/api/v1/api-keys").Status(200).Text, made.ID)

	owner.DELETE("/api/v1/api-keys/" + made.ID).Status(204).None()
	till.GET("/banks").Problem(401, "Not authenticated")
	owner.DELETE("/api/v1/api-keys/"+made.ID).Problem(404, "API key not found")
	owner.GET("/api/v1/api-keys").Status(200).JSON(&keys)
	require.NotNil(t, keys[1].RevokedAt)
}
