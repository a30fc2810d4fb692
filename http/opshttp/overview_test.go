package opshttp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/opshttp"
	"bahi/internal/test/apptest"
	"bahi/readmodels/accessview"
)

func TestOperatorListsAllWorkspaces(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha, ravi := o.Person("asha@example.com"), o.Person("ravi@example.com")
	asha.Join(o, ravi, `{"ledger":"read"}`)
	asha.POST("/api/v1/companies", `{"name":"Asha's Silver"}`).Status(201)
	o.Key(apptest.Home, `{"ledger":"read"}`)

	var all []accessview.Workspace
	list := func(query string) (names []string) {
		t.Helper()
		a := o.Operator().GET("/ops/workspaces" + query).Status(200)
		a.JSON(&all)
		for _, w := range all {
			name := w.ID.String()
			if w.Name != nil {
				name = *w.Name
			}
			names = append(names, name)
		}
		return names
	}
	require.ElementsMatch(t, []string{"Asha's Silver", "Asha Soni", apptest.Home}, list(""))
	require.Equal(t, []string{"Asha's Silver"}, list("?q=SILVER"))
	require.Equal(t, asha.Workspace, all[0].ID.String())
	require.Equal(t, []any{"asha@example.com", int64(2)}, []any{*all[0].OwnerEmail, all[0].Members})
	require.Equal(t, []string{"Asha Soni"}, list("?q=ravi@"))
	require.Equal(t, []string{apptest.Home}, list("?q="+apptest.Home))
	require.Nil(t, all[0].OwnerEmail)
	require.Empty(t, list("?q=nobody"))
	require.Len(t, list("?page_size=2&page=2"), 1)
	require.Equal(t, "3", o.Operator().GET("/ops/workspaces?page_size=1").Status(200).Header("X-Total-Count"))
	o.Operator().GET("/ops/workspaces?colour=red").Status(422)
}

func TestStatusTellsWhatNeedsAnOperator(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Person("asha@example.com")
	o.WaitJobs("send_verification")
	var s opshttp.Status
	status := func() (needs []string) {
		t.Helper()
		s = opshttp.Status{}
		o.Operator().GET("/ops/status").Status(200).JSON(&s)
		for _, n := range s.Needs {
			require.Positive(t, n.Count)
			needs = append(needs, n.What)
		}
		return needs
	}
	require.Empty(t, status())
	require.EqualValues(t, o.Head(), s.Head)
	require.NotNil(t, s.RecordedAt)
	require.Equal(t, 1, s.Outbox["mail"])

	for _, state := range []string{"retryable", "discarded"} {
		o.Sql(`insert into river.river_job (state, kind, args, max_attempts, scheduled_at, finalized_at) values
			($1::text::river.river_job_state, 'send_verification', '{}', 5, now() + interval '1 day',
				case when $1::text = 'discarded' then now() end)`, state)
	}
	o.Order("pause", "")
	o.Sql(`insert into inbox.call (id, endpoint, key_hash, received_at, content_type, verdict, settled_at)
		values (gen_random_uuid(), 'social', '', now(), 'application/json', 'parked', now())`)
	require.Equal(t, "discarded webhooks retryable paused", strings.Join(status(), " "))
	require.EqualValues(t, 1, s.Jobs["retryable"])
	o.Order("resume", "")
	require.NotContains(t, status(), "paused")
}
