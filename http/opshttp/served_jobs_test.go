package opshttp_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
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
	now := apitest.Read[opsview.Job](o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", first.ID), nil).Status(200))
	require.False(t, now.ScheduledAt.After(time.Now()))
	o.Operator().GET("/ops/outbox?port=mail").Status(200).Body(`[]`) // a configured provider keeps nothing

	// Requests for another mail do not wait either.
	o.Anonymous().POST(apptest.Auth+"/login", map[string]string{"email": "asha@example.com", "password": apptest.GoodPassword}).Problem(403,
		"Email not verified")
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", `{"email":"asha@example.com"}`).Status(200)
	o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/cancel", first.ID), nil).Status(200)
}
