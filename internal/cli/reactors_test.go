package cli_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

func TestReactorsAreListedAndReplayedOnlyByName(t *testing.T) {
	t.Parallel()
	database := apptest.Database(t)
	conn := pgtest.Connect(t, database)
	pgtest.Exec(t, conn, `
		insert into account.mailed_token (subject_id, kind, number, token_sha256, issued_at, expires_at)
		select gen_random_uuid(), 'verify', 1, sha256(at::bytea), now(), at::timestamptz from unnest(array['2025-01-01', '2999-01-01']) at`)
	o := apptest.StartOn(t, database)
	require.Eventually(t, func() bool { // the start sweeps expired rows
		left := pgtest.Value[int](t, conn, `select count(*) from account.mailed_token`)
		return left == 1
	}, time.Minute, 20*time.Millisecond)
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration("asha@example.com")).Status(201)
	require.Eventually(t, func() bool { return len(o.Jobs("kind=send_verification")) == 1 }, time.Minute, 5*time.Millisecond)
	out := o.Done(t, "reactors", "list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Equal(t, []string{"REACTOR", "STATE", "POSITION", "LAG", "ERROR"}, strings.Fields(lines[0]))
	require.Len(t, lines, 1+len(app.AllReactors()))
	listed := strings.Fields(lines[1])
	require.Equal(t, []string{"accounts", "live"}, listed[:2])
	position, err := strconv.ParseInt(listed[2], 10, 64)
	require.NoError(t, err)
	require.Positive(t, position)
	o.Denied(t, `bahi: there is no reactor "nonsense"`, "reactors", "replay", "nonsense", "--after", "0")
	_, wrong, status := apptest.Attached(t, o, "reactors", "replay", "nonsense")
	require.NotEqual(t, 0, status)
	require.Contains(t, wrong, "--after")
	o.Denied(t, `bahi: there is no reactor "nonsense"`, "reactors", "retry", "nonsense")
	for args, why := range map[string]string{"reactors retry accounts": "bahi: The projection is not parked",
		"feed retry": "bahi: The projection is not parked"} {
		o.Denied(t, why, strings.Fields(args)...)
	}
}
