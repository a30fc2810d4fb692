// Package ops reads what operators look at. It spans workspaces, so only operators may see it.
package opsview

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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
	ScheduledAt time.Time       `json:"scheduled_at" doc:"Not done before"`
	FinishedAt  *time.Time      `json:"finished_at" doc:"Time when the job ended; null: not yet"`
	LastError   *string         `json:"last_error" doc:"Error of the last failed attempt, truncated"`
	Report      *string         `json:"report" doc:"Report of what it has done, or could not do"`
	Args        json.RawMessage `json:"args" doc:"Ids that the job is about"`
}

// Selection selects jobs.
type Selection struct {
	State    string // "": all
	Kind     string // "": all
	Page     int    // from 1
	PageSize int
}

// maxError limits the characters of a shown error.
const maxError = 500

// Jobs reads the queue of jobs from River's tables.
type Jobs struct {
	DB *pgxpool.Pool
}

// Jobs returns a page of jobs, newest first, and the number of jobs on all pages.
func (j *Jobs) Jobs(ctx context.Context, sel Selection) (page []Job, total int64, err error) {
	var (
		where []string
		args  []any
	)
	for _, filter := range []struct{ condition, value string }{
		{`state = $%d::text::river.river_job_state`, sel.State}, {`kind = $%d`, sel.Kind},
	} {
		if filter.value != "" {
			args = append(args, filter.value)
			where = append(where, fmt.Sprintf(filter.condition, len(args)))
		}
	}
	from := ` from river.river_job`
	if len(where) > 0 {
		from += ` where ` + strings.Join(where, ` and `)
	}
	err = pgx.BeginTxFunc(ctx, j.DB, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select count(*)`+from, args...).Scan(&total); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, fmt.Sprintf(`select `+jobColumns+from+` order by id desc limit %d offset %d`,
			sel.PageSize, int64(sel.Page-1)*int64(sel.PageSize)), args...)
		page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Job])
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list jobs: %w", err)
	}
	return page, total, nil
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
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Job])
	switch {
	case err != nil:
		return Job{}, fmt.Errorf("read job %d: %w", id, err)
	case len(found) == 0:
		return Job{}, ErrNoJob
	default:
		return found[0], nil
	}
}

var jobColumns = fmt.Sprintf(`id, kind, state::text, attempt, max_attempts, created_at, scheduled_at, finalized_at,
	left(errors[cardinality(errors)]->>'error', %d), metadata->>'output', args`, maxError)
