package http_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
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
	var made apptest.ApiKey
	a.JSON(&made)
	require.Equal(t, "Till 1", made.Name)
	require.Equal(t, o.Home, made.WorkspaceID)
	require.Regexp(t, `^bahi_[0-9a-f]{32}_[A-Za-z0-9_-]{43}$`, made.Key)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	till := apitest.New(t, o.URL, made.Key)
	apptest.Open(till, "HDFC")

	list := owner.GET("/api/v1/api-keys").Status(200)
	require.NotContains(t, list.Text, made.Key[38:], "the secret is shown once")
	var keys []apptest.ApiKey
	list.JSON(&keys)
	require.Len(t, keys, 2)
	require.Equal(t, []string{master.ID, made.ID}, []string{keys[0].ID, keys[1].ID})
	require.Equal(t, []string{"api_key:admin", "api_key:" + master.ID}, []string{keys[0].CreatedBy, keys[1].CreatedBy})
	require.Equal(t, keys[1].CreatedBy, made.CreatedBy)
	require.Nil(t, keys[1].RevokedAt)

	// Another workspace knows nothing of them.
	foreigner := apitest.New(t, o.URL, o.Key(o.Abroad, `{"marketplace":"write"}`).Key)
	foreigner.DELETE("/api/v1/api-keys/"+made.ID).Problem(404, "API key not found")
	require.NotContains(t, foreigner.GET("/api/v1/api-keys").Status(200).Text, made.ID)

	owner.DELETE("/api/v1/api-keys/" + made.ID).Status(204).None()
	till.GET("/banks").Problem(401, "Not authenticated")
	owner.DELETE("/api/v1/api-keys/"+made.ID).Problem(404, "API key not found")
	owner.DELETE("/api/v1/api-keys/"+uuid.NewString()).Problem(404, "API key not found")
	owner.DELETE("/api/v1/api-keys/x").Status(422)
	owner.GET("/api/v1/api-keys").Status(200).JSON(&keys)
	require.NotNil(t, keys[1].RevokedAt)

	// Also the one that asks, and with it what it made.
	owner.POST("/api/v1/api-keys", `{"name":"Till 2","permissions":{"ledger":"write","marketplace":"write"}}`).Status(201).JSON(&made)
	second := apitest.New(t, o.URL, made.Key)
	second.POST("/api/v1/api-keys", `{"name":"Till 3","permissions":{"ledger":"write"}}`).Status(201).JSON(&made)
	third := apitest.New(t, o.URL, made.Key)
	third.GET("/banks").Status(200)
	owner.DELETE("/api/v1/api-keys/" + master.ID).Status(204)
	for _, gone := range []*apitest.Client{owner, second, third} {
		gone.GET("/api/v1/api-keys").Problem(401, "Not authenticated")
	}
	keys = nil
	o.Operator().With("Bahi-Workspace", o.Home).GET("/api/v1/api-keys").Status(200).JSON(&keys)
	require.Len(t, keys, 4)
	for _, k := range keys {
		require.NotNil(t, k.RevokedAt, k.Name)
	}
}

func TestAKeyIsNotShownAgainToWhoRepeatsTheRequest(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	keyed := o.Operator().With("Idempotency-Key", o.Home)
	const body = `{"name":"Till","permissions":{"ledger":"write"}}`
	var first, again apptest.ApiKey
	keyed.POST("/api/v1/api-keys", body).Status(201).JSON(&first)
	a := keyed.POST("/api/v1/api-keys", body).Status(201)
	a.JSON(&again)
	require.Equal(t, "true", a.Header("Idempotency-Replayed"))
	require.Equal(t, first.ID, again.ID)
	require.NotEmpty(t, first.Key)
	require.Empty(t, again.Key)
	apitest.New(t, o.URL, first.Key).GET("/banks").Status(200)
}

func TestAKeyGivesNoMoreThanItHas(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	owner := apitest.New(t, o.URL, o.Key(o.Home, `{"ledger":"read","marketplace":"write"}`).Key)
	const more = "A key cannot have more permissions than its maker"
	for _, permissions := range []string{`{"ledger":"write"}`, `{"ledger":"read","audit":"read"}`, `{"operator":true}`,
		`{"messaging":"read"}`} {
		owner.POST("/api/v1/api-keys", `{"name":"k","permissions":`+permissions+`}`).Problem(403, more)
	}
	owner.POST("/api/v1/api-keys", `{"name":"k","permissions":{"ledger":"read"},"workspace_id":"`+o.Abroad+`"}`).
		Problem(403, "Only an operator makes keys for another workspace")
	owner.POST("/api/v1/api-keys", `{"name":"k","permissions":{"ledger":"read"},"workspace_id":"`+o.Home+`"}`).Status(201)
	for body, wrong := range map[string][2]string{
		`{"name":"","permissions":{"ledger":"read"}}`: {"name", "must not be empty"},
		`{"permissions":{"ledger":"read"}}`:           {"name", "is required"},
		`{"name":"k"}`:                                {"permissions", "is required"},
		`{"name":"k","permissions":{}}`:               {"permissions", "at least one is needed"},
		`{"name":"k","permissions":{"ledger":"all"}}`: {"permissions.ledger", "expected one of none, read, write"},
		`{"name":"k","permissions":{"ledger":"read"},"expires_at":"2020-01-01T00:00:00Z"}`: {"expires_at", "must be in the future"},
		`{"name":"k","permissions":{"ledger":"read"},"expires_at":"tomorrow"}`: {"expires_at",
			"expected a moment such as 2025-03-31T09:15:00Z"},
		`{"name":"` + strings.Repeat("k", 101) + `","permissions":{"ledger":"read"}}`: {"name", "at most 100 characters"},
	} {
		owner.POST("/api/v1/api-keys", body).Problem(422, "Validation error", wrong[0], wrong[1])
	}
	var made apptest.ApiKey
	// other areas ignore what they do not know
	owner.POST("/api/v1/api-keys", `{"name":"k","permissions":{"ledger":"read"},"colour":"red"}`).Status(201).JSON(&made)
}

func TestAKeyEndsWhenItExpires(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	var (
		expires time.Time
		guest   *apitest.Client
	)
	for life, opened := 2*time.Second, false; !opened; life *= 2 { // until it is made and used before its end, however busy the machine is
		var made apptest.ApiKey
		expires = time.Now().Add(life)
		a := o.Operator().POST("/api/v1/api-keys",
			map[string]any{"name": "k", "permissions": map[string]string{"ledger": "read"}, "expires_at": expires})
		if a.Response.StatusCode == http.StatusCreated {
			a.JSON(&made)
			guest = apitest.New(t, o.URL, made.Key)
			a = guest.GET("/banks")
		}
		if opened = time.Now().Before(expires); opened {
			a.Status(200)
		}
	}
	require.Eventually(t, func() bool { return guest.GET("/banks").Response.StatusCode == http.StatusUnauthorized }, time.Minute,
		50*time.Millisecond)
	require.False(t, time.Now().Before(expires))
	guest.GET("/banks").Problem(401, "Not authenticated")
}

func TestTheOperatorsKeyIsWhateverTheOperatorSays(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	handler := o.Api("a word of the operator's")
	for bearer, status := range map[string]int{"a word of the operator's": 200, "a word of the operator": 401, apptest.OperatorKey: 401,
		"": 401} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/banks", nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		a := httptest.NewRecorder()
		handler.ServeHTTP(a, r)
		require.Equal(t, status, a.Code, bearer)
	}
}
