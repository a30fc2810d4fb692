package main_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
)

// startRechecking serves a system whose streams of events check their callers' rights all the time.
func startRechecking(t *testing.T) *office {
	t.Helper()
	with := testSettings(t, testDatabase(t))
	with.Outside.Recheck, with.Outside.Streams = 10*time.Millisecond, 3
	return startAs(t, with)
}

const auditStream = "/audit/events/stream?category=bank"

func TestAStreamEndsWithTheRightToIt(t *testing.T) {
	t.Parallel()
	o := startRechecking(t)
	asha, ravi := o.person("asha@example.com"), o.person("ravi@example.com")
	asha.join(o, ravi, `{"audit":"read"}`)
	usha := o.person("usha@example.com")
	asha.join(o, usha, `{"audit":"read"}`)
	members := "/api/v1/workspaces/" + asha.workspace + "/members/"
	revoked, operators := o.key(asha.workspace, `{"audit":"read"}`), o.key(asha.workspace, `{"operator":true}`)
	kept := o.key(asha.workspace, `{"audit":"read"}`)
	again := o.signIn("asha@example.com", goodPassword)
	in := func(c *apitest.Client) *apitest.Client { return c.With("Bahi-Workspace", asha.workspace) }

	streams := map[string]*apitest.Stream{
		"of a revoked key":            o.bearer(revoked.Key).Stream(auditStream),
		"of a revoked operator's key": o.bearer(operators.Key).Stream(auditStream),
		"of a signed-out session":     o.bearer(again.Access).Stream(auditStream),
		"of a removed member":         in(ravi.Client).Stream(auditStream),
		"of changed permissions":      in(usha.Client).Stream(auditStream),
	}
	goesOn := o.bearer(kept.Key).Stream(auditStream)
	open(asha.Client, "HDFC")
	var e auditEvent
	for what, stream := range streams {
		name, _ := stream.Next(&e)
		require.Equal(t, "event", name, what)
	}
	goesOn.Next(&e)
	asha.DELETE("/api/v1/api-keys/" + revoked.ID).Status(204)
	o.operator().With("Bahi-Workspace", asha.workspace).DELETE("/api/v1/api-keys/" + operators.ID).Status(204)
	o.bearer(again.Access).POST("/api/v1/auth/logout", nil).Status(200)
	asha.DELETE(members + ravi.User.ID).Status(204)
	asha.PATCH(members+usha.User.ID, `{"permissions":{"ledger":"read","audit":"none"}}`).Status(200)

	for what, stream := range streams {
		name, _ := stream.Next(&e)
		require.Empty(t, name, "the stream %s is over", what)
	}
	account := open(asha.Client, "Axis")
	name, _ := goesOn.Next(&e)
	require.Equal(t, []string{"event", fmt.Sprintf("bank-%d", account)}, []string{name, e.Stream})
}

func TestAStreamEndsWhenItsCredentialExpires(t *testing.T) {
	t.Parallel()
	o := startRechecking(t)
	asha := o.person("asha@example.com")
	for what, until := range map[string]func(time.Duration) string{
		"key": func(in time.Duration) string {
			var k apiKey
			o.operator().POST("/api/v1/api-keys", map[string]any{
				"name": "short", "workspace_id": asha.workspace, "permissions": map[string]string{"audit": "read"}, "expires_at": time.Now().Add(in),
			}).Status(201).JSON(&k)
			return k.Key
		},
		"token": func(in time.Duration) string {
			return o.forge(asha.Access, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(in).Unix() })
		},
	} {
		response := o.listening(until(2 * time.Second))
		for lasts := 4 * time.Second; response.StatusCode != http.StatusOK; lasts *= 2 { // this machine was too slow
			response = o.listening(until(lasts))
		}
		_, err := io.Copy(io.Discard, response.Body)
		require.NoError(t, err, what)
	}
}

// listening asks for a stream that may be refused.
func (o *office) listening(token string) *http.Response {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.url+auditStream, nil)
	require.NoError(o.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.t, err)
	o.t.Cleanup(func() { response.Body.Close() })
	return response
}

func TestACallerHasFewStreamsAtOnce(t *testing.T) {
	t.Parallel()
	o := startRechecking(t)
	key, other := o.key(home, `{"audit":"read"}`).Key, o.key(home, `{"audit":"read"}`).Key
	first := o.listening(key)
	for range 2 {
		require.Equal(t, http.StatusOK, o.listening(key).StatusCode)
	}
	refused := o.bearer(key).GET(auditStream).Problem(429, "Too many event streams at once")
	require.Equal(t, "1", refused.Header("Retry-After"))
	require.Equal(t, http.StatusOK, o.listening(other).StatusCode)
	first.Body.Close()
	require.Eventually(t, func() bool { return o.listening(key).StatusCode == http.StatusOK }, time.Minute, 10*time.Millisecond)
}
