package opshttp_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/readmodels/opsview"
)

// nobody is an address without a listener: a free port could become another test's.
const nobody = "127.0.0.1:1"

func TestMailServerOutageDelaysNobody(t *testing.T) {
	t.Parallel()
	o := apptest.StartWithMailServer(t, nobody)
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration("asha@example.com")).Status(201)
	var first opsview.Job
	require.Eventually(t, func() bool {
		all := o.Jobs("kind=send_verification")
		if len(all) == 1 && all[0].LastError != nil && all[0].State != "running" {
			first = all[0]
		}
		return first.ID != 0
	}, time.Minute, 5*time.Millisecond)
	require.Contains(t, []string{"retryable", "available"}, first.State, "a short wait")
	require.True(t, first.ScheduledAt.After(first.CreatedAt), "the job is retried")
	require.Contains(t, *first.LastError, "connection refused")
	require.Greater(t, first.MaxAttempts, 5)
	var of map[string]string
	require.NoError(t, json.Unmarshal(first.Args, &of))
	require.Contains(t, of, "user_id")
	all := o.Operator().GET("/ops/jobs").Status(200)
	for _, personal := range []string{"asha@", "Asha", "Soni"} {
		require.NotContains(t, all.Text, personal)
	}
	var now opsview.Job
	o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", first.ID), nil).Status(200).JSON(&now)
	require.False(t, now.ScheduledAt.After(time.Now()))

	// Requests for another mail do not wait either.
	o.Anonymous().POST(apptest.Auth+"/login", map[string]string{"email": "asha@example.com", "password": apptest.GoodPassword}).Problem(403,
		"Email not verified")
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", `{"email":"asha@example.com"}`).Status(200)
	o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/cancel", first.ID), nil).Status(200)
}

func TestSilentMailServerDelaysNobody(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	called, end := make(chan struct{}), make(chan struct{})
	go func() {
		conn, err := silent.Accept()
		if err != nil {
			return
		}
		close(called)
		<-end
		_ = conn.Close()
	}()
	o := apptest.StartWithMailServer(t, silent.Addr().String())
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration("asha@example.com")).Status(201)
	<-called
	require.Len(t, o.Jobs("kind=send_verification&state=running"), 1)
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration("ravi@example.com")).Status(201)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	require.NoError(t, silent.Close())
	close(end)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(o.Jobs("kind=send_verification"), func(j opsview.Job) bool { return j.LastError != nil })
	}, time.Minute, 5*time.Millisecond)
}

func TestAUserWithTheOperatorsRightSeesJobs(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha := o.Person("asha@example.com")
	done := o.Jobs("kind=send_verification")
	require.Len(t, done, 1)
	require.NotContains(t, string(done[0].Args), "asha@")

	o.WaitJobs("send_verification")
	id := done[0].ID
	o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", id), nil).Problem(409, "The job is done")
	require.NoError(t, o.Sys.Accounts.Grant(t.Context(), o.Sys.ByOperator(o.Sys.Home), uuid.MustParse(asha.User.ID), true))
	require.Eventually(t, func() bool { return asha.GET("/ops/jobs").Response.StatusCode == http.StatusOK }, time.Minute, 5*time.Millisecond)
	require.Equal(t, true, asha.Me().Permissions["operator"])
}
