package opshttp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/readmodels/opsview"
)

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
