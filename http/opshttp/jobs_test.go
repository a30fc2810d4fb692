package opshttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/http/api"
	"bahi/http/opshttp"
	"bahi/internal/test/apitest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/reactors"
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

type greet struct {
	Account string `json:"account"`
}

func (greet) Kind() string { return "greet" }

type call struct {
	Account string `json:"account"`
}

func (call) Kind() string { return "call" }

// office is a server, with a reactor that greets and calls the owners of new accounts.
type office struct {
	t    *testing.T
	pool *pgxpool.Pool
	url  string
}

func start(t *testing.T, accounts int) *office {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	store, err := postgres.Open(t.Context(), pool, log)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	long := strings.Repeat("no ", 1000)
	jobs, err := reactors.NewJobs(t.Context(), reactors.Config{Pool: pool, Now: time.Now, Log: log, Workers: reactors.Workers{
		reactors.Work(reactors.Policy{}, func(context.Context, reactors.Job[greet]) error { return nil }),
		reactors.Work(reactors.Policy{Attempts: 1}, func(context.Context, reactors.Job[call]) error { return errors.New(long) }),
	}})
	require.NoError(t, err)
	t.Cleanup(jobs.Close)
	for range accounts {
		e, err := bank.Ledger.Accounts.Encode(uuid.New(), book.AccountOpened{Name: "SBI"}, event.Meta{})
		require.NoError(t, err)
		_, err = store.Append(t.Context(), eventstore.To("bank-"+uuid.NewString(), eventstore.NoStream, e))
		require.NoError(t, err)
	}
	reactor := reactors.Define("greeter", reactors.On(func(q *reactors.Queue, e event.Recorded[book.AccountOpened]) error {
		q.Add(greet{Account: e.StreamID()})
		q.AddAt(e.At.Add(time.Second/2), call{Account: e.StreamID()})
		return nil
	}))
	_, err = reactors.NewRunner(store, pool, jobs, log).Replay(t.Context(), reactor, 0, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- jobs.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })

	a := api.New(api.Config{Credentials: []api.Credential{{Authenticator: people{"operator": {Operator: true}}}}})
	(&opshttp.Routes{API: a, Views: &opsview.Jobs{DB: pool}, Queue: jobs}).Jobs()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return &office{t: t, pool: pool, url: server.URL}
}

func (o *office) as(who string) *apitest.Client { return apitest.New(o.t, o.url, who) }

// list returns a page of jobs.
func (o *office) list(query string) (jobs []opsview.Job, total string) {
	o.t.Helper()
	a := o.as("operator").GET("/ops/jobs" + query).Status(200).JSON(&jobs)
	return jobs, a.Header("X-Total-Count")
}

func (o *office) until(query string, count int) []opsview.Job {
	o.t.Helper()
	var jobs []opsview.Job
	require.Eventually(o.t, func() bool { jobs, _ = o.list(query); return len(jobs) == count }, time.Minute, 20*time.Millisecond, query)
	return jobs
}

func TestJobsAreListedNewestFirstInPages(t *testing.T) {
	t.Parallel()
	o := start(t, 3)
	done := o.until("?kind=greet&state=completed", 3)
	failed := o.until("?kind=call&state=discarded", 3)[0]
	require.Len(t, *failed.LastError, 500, "an error is cut")
	o.as("operator").POST("/ops/jobs/1099511627776/retry", nil).Problem(404, "Job not found")
	all, total := o.list("")
	require.Equal(t, "6", total)
	for i := 1; i < len(all); i++ {
		require.Less(t, all[i].ID, all[i-1].ID)
	}
	for page := range 3 {
		some, total := o.list(fmt.Sprintf("?page=%d&page_size=2", page+1))
		require.Equal(t, "6", total)
		require.Equal(t, all[2*page:2*page+2], some)
	}
	none, total := o.list("?page=9")
	require.Empty(t, none)
	require.Equal(t, "6", total)
	_, total = o.list("?kind=greet&page_size=1")
	require.Equal(t, "3", total)
	_, total = o.list("?kind=nothing")
	require.Equal(t, "0", total)

	j := done[0]
	require.Equal(t, 1, j.Attempt)
	require.Equal(t, 12, j.MaxAttempts)
	require.Nil(t, j.LastError)
	require.False(t, j.FinishedAt.Before(j.CreatedAt))
	var args struct{ Account, EventID uuid.UUID }
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(j.Args), "event_id", "EventID")), &args))
	require.NotEqual(t, uuid.Nil, args.Account)
	require.NotEqual(t, uuid.Nil, args.EventID)
	for _, query := range []string{"?state=lost", "?page=0", "?page_size=1001", "?page_size=x", "?kin=greet"} {
		o.as("operator").GET("/ops/jobs" + query).Status(422)
	}
}
