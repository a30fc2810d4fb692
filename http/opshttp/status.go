package opshttp

import (
	"context"
	"time"

	"bahi/domain/event"
	"bahi/http/api"
	"bahi/readmodels/opsview"
)

// Status reports whether the deployment needs an operator.
type Status struct {
	Needs      []need           `json:"needs" doc:"Problems that need an operator, most urgent first"`
	Head       event.Position   `json:"head" doc:"Position of the newest event"`
	RecordedAt *time.Time       `json:"recorded_at" doc:"Time of the newest event; null for an empty log"`
	Jobs       map[string]int64 `json:"jobs" doc:"Number of unfinished and discarded jobs by state"`
	Outbox     map[string]int   `json:"outbox" doc:"Number of messages in the outbox, by port; mail is absent if a mail server is configured"`
}

// need is a kind of problems that need an operator.
type need struct {
	What  string `json:"what" enum:"parked,differs,discarded,webhooks,retryable,paused" doc:"Kind of the problem; differs: a rebuild waits for a decision"`
	Count int64  `json:"count" doc:"Number of problems of the kind"`
}

// Status registers the overview of the deployment.
func (r *Routes) Status() {
	api.Handle(r.API, api.Op{
		ID: "get-status", Method: "GET", Path: "/ops/status",
		Summary: "Read the status of the deployment. An empty list needs means that nothing needs an operator.",
		Tags:    tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, _ *struct{}) (*api.Body[Status], error) { return api.Answer(r.status(ctx)) })
}

func (r *Routes) status(ctx context.Context) (s Status, err error) {
	head, recorded, err := (&opsview.Events{DB: r.Views.DB}).Head(ctx)
	if err != nil {
		return s, err
	}
	if s.Head = head; head > 0 {
		s.RecordedAt = &recorded
	}
	if s.Jobs, err = r.Views.Unfinished(ctx); err != nil {
		return s, err
	}
	_, unhandled, err := r.Views.Webhooks(ctx, opsview.WebhookSelection{Verdict: "parked", Page: 1, PageSize: 1})
	if err != nil {
		return s, err
	}
	parked, err := r.Registry.Parked(ctx)
	if err != nil {
		return s, err
	}
	all, err := r.Registry.All(ctx)
	if err != nil {
		return s, err
	}
	var differs, paused int64
	for _, p := range all {
		if p.Build != nil && p.Build.Phase == "differs" {
			differs++
		}
		if p.State == "paused" || p.Build != nil && p.Build.Paused {
			paused++
		}
	}
	s.Needs = []need{}
	for _, n := range []need{
		{"parked", int64(len(parked))},
		{"differs", differs},
		{"discarded", s.Jobs["discarded"]},
		{"webhooks", unhandled},
		{"retryable", s.Jobs["retryable"]},
		{"paused", paused},
	} {
		if n.Count > 0 {
			s.Needs = append(s.Needs, n)
		}
	}
	s.Outbox = map[string]int{}
	for port, from := range r.Captured {
		if _, s.Outbox[port], err = from(ctx, 0, 1); err != nil {
			return s, err
		}
	}
	return s, nil
}
