package opshttp

import (
	"context"

	"bahi/http/api"
	"bahi/readmodels/opsview"
)

// Queue is the queue of jobs. It returns the errors of package readmodels/opsview.
type Queue interface {
	// Retry makes a waiting or discarded job due at once.
	Retry(ctx context.Context, id int64) error
	// Cancel cancels an unfinished job.
	Cancel(ctx context.Context, id int64) error
}

// byJob identifies a job.
type byJob struct {
	ID int64 `path:"job_id" minimum:"1" doc:"The job's id"`
}

// Jobs registers the operations on jobs.
func (r *Routes) Jobs() {
	api.Handle(r.API, api.Op{
		ID: "list-jobs", Method: "GET", Path: "/ops/jobs", Summary: "List the waiting, completed and failed jobs",
		Tags: tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		State    string `query:"state" enum:"available,pending,scheduled,running,retryable,completed,cancelled,discarded" doc:"Only this state"`
		Kind     string `query:"kind" maxLength:"128" doc:"Only this kind"`
		Page     int    `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
		PageSize int    `query:"page_size" default:"50" minimum:"1" maximum:"1000" doc:"Jobs per page"`
	}) (*struct {
		Total int64 `header:"X-Total-Count"`
		Body  []opsview.Job
	}, error) {
		page, total, err := r.Views.Jobs(ctx, opsview.Selection{State: in.State, Kind: in.Kind, Page: in.Page, PageSize: in.PageSize})
		if err != nil {
			return nil, err
		}
		return &struct {
			Total int64 `header:"X-Total-Count"`
			Body  []opsview.Job
		}{total, page}, nil
	})
	r.change("retry-job", "retry", "Run a waiting or discarded job now", r.Queue.Retry)
	r.change("cancel-job", "cancel", "Cancel a job. A running job is interrupted.", r.Queue.Cancel)
}

// change registers an operation on one job, which responds with the job.
func (r *Routes) change(id, verb, summary string, do func(context.Context, int64) error) {
	api.Handle(r.API, api.Op{
		ID: id, Method: "POST", Path: "/ops/jobs/{job_id}/" + verb, Summary: summary, Tags: tags, Operator: true, Status: 200, NoKey: true,
	}, func(ctx context.Context, in *byJob) (*api.Body[opsview.Job], error) {
		if err := do(ctx, in.ID); err != nil {
			return nil, err
		}
		return api.Answer(r.Views.Job(ctx, in.ID))
	})
}
