package http_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// The streams of events of this system check their callers' rights all the time.
func TestStreamsOfEvents(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.Recheck, with.Outside.Streams = 10*time.Millisecond, 3
	o := apptest.StartAs(t, with)
	t.Run("a stream ends with the right to it", func(t *testing.T) { endsWithTheRight(t, o) })
	t.Run("a caller has few streams at once", func(t *testing.T) { areLimited(t, o) })
}

func endsWithTheRight(t *testing.T, o *apptest.Server) {
	t.Helper()
	asha, ravi := o.Person("asha@example.com"), o.Person("ravi@example.com")
	asha.Join(o, ravi, `{"audit":"read"}`)
	usha := o.Person("usha@example.com")
	asha.Join(o, usha, `{"audit":"read"}`)
	members := "/api/v1/workspaces/" + asha.Workspace + "/members/"
	revoked, operators := o.Key(asha.Workspace, `{"audit":"read"}`), o.Key(asha.Workspace, `{"operator":true}`)
	kept := o.Key(asha.Workspace, `{"audit":"read"}`)
	again := o.SignIn("asha@example.com", apptest.GoodPassword)
	in := func(c *apitest.Client) *apitest.Client { return c.With("Bahi-Workspace", asha.Workspace) }

	streams := map[string]*apitest.Stream{
		"of a revoked key":            o.Bearer(revoked.Key).Stream(apptest.AuditStream),
		"of a revoked operator's key": o.Bearer(operators.Key).Stream(apptest.AuditStream),
		"of a signed-out session":     o.Bearer(again.Access).Stream(apptest.AuditStream),
		"of a removed member":         in(ravi.Client).Stream(apptest.AuditStream),
		"of changed permissions":      in(usha.Client).Stream(apptest.AuditStream),
	}
	goesOn := o.Bearer(kept.Key).Stream(apptest.AuditStream)
	apptest.Open(asha.Client, "HDFC")
	var e apptest.AuditEvent
	for what, stream := range streams {
		name, _ := stream.Next(&e)
		require.Equal(t, "event", name, what)
	}
	goesOn.Next(&e)
	asha.DELETE("/api/v1/api-keys/" + revoked.ID).Status(204)
	o.Operator().With("Bahi-Workspace", asha.Workspace).DELETE("/api/v1/api-keys/" + operators.ID).Status(204)
	o.Bearer(again.Access).POST("/api/v1/auth/logout", nil).Status(200)
	asha.DELETE(members + ravi.User.ID).Status(204)
	asha.PATCH(members+usha.User.ID, `{"permissions":{"ledger":"read","audit":"none"}}`).Status(200)

	for what, stream := range streams {
		name, _ := stream.Next(&e)
		require.Empty(t, name, "the stream %s is over", what)
	}
	account := apptest.Open(asha.Client, "Axis")
	name, _ := goesOn.Next(&e)
	require.Equal(t, []string{"event", fmt.Sprintf("bank-%d", account)}, []string{name, e.Stream})
}

func areLimited(t *testing.T, o *apptest.Server) {
	t.Helper()
	key, other := o.Key(apptest.Home, `{"audit":"read"}`).Key, o.Key(apptest.Home, `{"audit":"read"}`).Key
	first := listening(o, key)
	for range 2 {
		require.Equal(t, http.StatusOK, listening(o, key).StatusCode)
	}
	refused := o.Bearer(key).GET(apptest.AuditStream).Problem(429, "Too many event streams at once")
	require.Equal(t, "1", refused.Header("Retry-After"))
	require.Equal(t, http.StatusOK, listening(o, other).StatusCode)
	first.Body.Close()
	require.Eventually(t, func() bool { return listening(o, key).StatusCode == http.StatusOK }, time.Minute, 10*time.Millisecond)
}
