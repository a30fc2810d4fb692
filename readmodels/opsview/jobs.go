// Package opsview reads the data for operators. The data are of all workspaces, so only operators may see them.
package opsview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/fault"
)

// The refusals about jobs.
var (
	ErrNoJob    = fault.New(fault.NotFound, "Job not found")
	ErrJobRuns  = fault.New(fault.Conflict, "The job is running")
	ErrJobDone  = fault.New(fault.Conflict, "The job is done")
	ErrJobEnded = fault.New(fault.Conflict, "The job has ended")
)

// Job is a job in responses.
type Job struct {
	ID          int64           `json:"id" doc:"ID of the job"`
	Kind        string          `json:"kind" doc:"Kind of the job"`
	State       string          `json:"state" enum:"available,pending,scheduled,running,retryable,completed,cancelled,discarded" doc:"State"`
	Attempt     int             `json:"attempt" doc:"Attempts so far, the running one included"`
	MaxAttempts int             `json:"max_attempts" doc:"Maximum number of attempts"`
	CreatedAt   time.Time       `json:"created_at" doc:"Time when the job was created"`
	ScheduledAt time.Time       `json:"scheduled_at" doc:"Time before which the job does not run"`
	FinishedAt  *time.Time      `json:"finished_at" doc:"Time when the job ended; null: not yet"`
	LastError   *string         `json:"last_error" doc:"Error of the last failed attempt, truncated"`
	Report      *string         `json:"report" doc:"Report of the job's result"`
	Args        json.RawMessage `json:"args" doc:"IDs of the job's records"`
}

// Selection selects jobs.
type Selection struct {
	State    string // "": all
	Kind     string // "": all
	Page     int    // from 1
	PageSize int
}

// maxError is the maximum number of characters of a shown error.
const maxError = 500

// Jobs reads the queue of jobs from River's tables.
type Jobs struct {
	DB *pgxpool.Pool
}

// Jobs returns a page of jobs, newest first, and the number of jobs on all pages.
func (j *Jobs) Jobs(ctx context.Context, sel Selection) (page []Job, total int64, err error) {
	from := `from river.river_job where true`
	if sel.State != "" {
		from += ` and state = @state::text::river.river_job_state`
	}
	if sel.Kind != "" {
		from += ` and kind = @kind`
	}
	if page, total, err = listed[Job](ctx, j.DB, jobColumns, from, `id desc`, pgx.NamedArgs{
		"state": sel.State, "kind": sel.Kind, "limit": sel.PageSize, "skip": int64(sel.Page-1) * int64(sel.PageSize),
	}); err != nil {
		return nil, 0, fmt.Errorf("list jobs: %w", err)
	}
	return page, total, nil
}

// listed returns at most @limit rows after the first @skip, and the number of all rows, in one snapshot.
func listed[T any](ctx context.Context, db *pgxpool.Pool, columns, from, order string, args pgx.NamedArgs) (page []T, total int64,
	err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select count(*) `+from, args).Scan(&total); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `select `+columns+` `+from+` order by `+order+` limit @limit offset @skip`, args)
		page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return err
	})
	return page, total, err
}

// only returns the only row of a query. Without a row it returns missing.
func only[T any](rows pgx.Rows, missing error) (T, error) {
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[T])
	if errors.Is(err, pgx.ErrNoRows) {
		err = missing
	}
	return found, err
}

// Unfinished returns the number of jobs that are unfinished or were discarded, by state.
func (j *Jobs) Unfinished(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	rows, _ := j.DB.Query(ctx, `
		select state::text, count(*) from river.river_job where state not in ('completed', 'cancelled') group by state`)
	var (
		state string
		count int64
	)
	if _, err := pgx.ForEachRow(rows, []any{&state, &count}, func() error { counts[state] = count; return nil }); err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	return counts, nil
}

// Job returns one job, or [ErrNoJob].
func (j *Jobs) Job(ctx context.Context, id int64) (Job, error) {
	rows, _ := j.DB.Query(ctx, `select `+jobColumns+` from river.river_job where id = $1`, id)
	return only[Job](rows, ErrNoJob)
}

var jobColumns = fmt.Sprintf(`id, kind, state::text, attempt, max_attempts, created_at, scheduled_at, finalized_at,
	left(errors[cardinality(errors)]->>'error', %d), metadata->>'output', args`, maxError)
