package opshttp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/http/opshttp"
	"bahi/internal/test/apptest"
	"bahi/readmodels/accessview"
	"bahi/readmodels/opsview"
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

type people map[string]actor.Permissions

func (p people) Authenticate(_ context.Context, bearer string) (actor.Actor, error) {
	may, known := p[bearer]
	if !known {
		return actor.Actor{}, fault.New(fault.Unauthorized, "Not authenticated")
	}
	return actor.Actor{Type: "api_key", ID: bearer, Permissions: may}, nil
}

func TestJobsAreListedNewestFirstInPages(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	r.sql(`insert into river.river_job (kind, state, args, attempt, max_attempts, finalized_at)
		select 'greet', 'completed', jsonb_build_object('account', n), 1, 12, now() from generate_series(1, 3) n`)
	r.sql(`insert into river.river_job (kind, state, args, attempt, max_attempts, finalized_at, errors)
		select 'call', 'discarded', '{}', 1, 1, now(), array[jsonb_build_object('error', repeat('no ', 1000))] from generate_series(1, 3)`)
	list := func(query string) (jobs []opsview.Job, total string) {
		a := r.operator().GET("/ops/jobs" + query).Status(200).JSON(&jobs)
		return jobs, a.Header("X-Total-Count")
	}
	all, total := list("")
	require.Equal(t, "6", total)
	for i := 1; i < len(all); i++ {
		require.Less(t, all[i].ID, all[i-1].ID)
	}
	for page := range 3 {
		some, total := list(fmt.Sprintf("?page=%d&page_size=2", page+1))
		require.Equal(t, "6", total)
		require.Equal(t, all[2*page:2*page+2], some)
	}
	none, total := list("?page=9")
	require.Empty(t, none)
	require.Equal(t, "6", total)
	_, total = list("?kind=greet&page_size=1&state=completed")
	require.Equal(t, "3", total)
	_, total = list("?kind=nothing")
	require.Equal(t, "0", total)

	require.Len(t, *all[0].LastError, 500, "an error is cut")
	done := all[5]
	require.Equal(t, []any{"greet", 1, 12, (*string)(nil)}, []any{done.Kind, done.Attempt, done.MaxAttempts, done.LastError})
	require.JSONEq(t, `{"account":1}`, string(done.Args))
	require.False(t, done.FinishedAt.Before(done.CreatedAt))
	r.operator().GET("/ops/jobs?kin=greet").Status(422)
}

func TestOperatorReadsKeptMails(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Person("asha@example.com")
	var page []opshttp.Message
	a := o.Operator().GET("/ops/outbox?port=mail").Status(200).JSON(&page)
	require.Equal(t, "1", a.Header("X-Total-Count"))
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Len(t, page, 1)
	require.Equal(t, []string{"asha@example.com", apptest.VerifySubject}, []string{page[0].To, page[0].Subject})
	require.Equal(t, strings.ReplaceAll(o.Mails("asha@example.com", apptest.VerifySubject)[0], "\r\n", "\n"), page[0].Text)
	require.True(t, strings.HasSuffix(page[0].ID, ".eml"))
	for query, total := range map[string]string{
		"mail&page_size=1&page=2": "1", "mail&page=1000000000&page_size=1000": "1", "chat": "0", "crm": "0",
	} {
		none := o.Operator().GET("/ops/outbox?port=" + query).Status(200).Body(`[]`)
		require.Equal(t, total, none.Header("X-Total-Count"), query)
	}
	o.Operator().GET("/ops/outbox").Status(422)
}

func TestMain(m *testing.M) { apptest.Main(m) }
