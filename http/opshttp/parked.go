package opshttp

import (
	"context"
	"net/http"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/readmodels/opsview"
)

// ByParked identifies a parked projection or reactor.
type ByParked struct {
	Name string `path:"name" maxLength:"128" doc:"Name of a projection or reactor"`
}

// Skip identifies an event to skip.
type Skip struct {
	Position event.Position `json:"position" minimum:"1" doc:"Position of the faulty event, so that no other event is skipped by mistake"`
	Reason   string         `json:"reason" minLength:"1" maxLength:"500" doc:"Reason; recorded in the log"`
}

// Parked registers the operations on parked projections and reactors.
func (r *Routes) Parked() {
	api.Handle(r.API, api.Op{
		ID: "list-parked", Method: "GET", Path: "/ops/parked", Summary: "List the parked projections and reactors with their errors",
		Tags: tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, _ *struct{}) (*api.Body[[]opsview.Parked], error) {
		return api.Answer(r.Registry.Parked(ctx))
	})
	api.Handle(r.API, api.Op{
		ID: "retry-parked", Method: "POST", Path: "/ops/parked/{name}/retry", Summary: "Retry the event of a parked projection or reactor",
		Tags: tags, Operator: true, Status: http.StatusOK, NoKey: true,
	}, func(ctx context.Context, in *ByParked) (*api.Body[[]opsview.Parked], error) {
		if err := r.Builds.Retry(ctx, in.Name); err != nil {
			return nil, err
		}
		return api.Answer(r.Registry.Parked(ctx))
	})
	api.Handle(r.API, api.Op{
		ID: "skip-parked", Method: "POST", Path: "/ops/parked/{name}/skip", Summary: "Skip the event of a parked projection or reactor",
		Tags: tags, Operator: true, Status: http.StatusOK, NoKey: true, StrictBody: true,
	}, func(ctx context.Context, in *struct {
		ByParked
		Body Skip
	}) (*api.Body[[]opsview.Parked], error) {
		if err := r.passOver(ctx, in.Name, in.Body); err != nil {
			return nil, err
		}
		return api.Answer(r.Registry.Parked(ctx))
	})
}

// skip registers skip-parked for projections.
func (r *Routes) skip() {
	api.Handle(r.API, api.Op{
		ID: "skip-event", Method: "POST", Path: "/ops/projections/{name}/skip",
		Summary: "Skip the event of a parked projection or rebuild",
		Tags:    tags, Operator: true, Status: http.StatusOK, NoKey: true, StrictBody: true,
	}, func(ctx context.Context, in *struct {
		ByProjection
		Body Skip
	}) (*api.Body[opsview.Projection], error) {
		if err := r.known(in.Name); err != nil {
			return nil, err
		}
		if err := r.passOver(ctx, in.Name, in.Body); err != nil {
			return nil, err
		}
		return api.Answer(r.Registry.One(ctx, in.Name))
	})
}

func (r *Routes) passOver(ctx context.Context, name string, what Skip) error {
	reason := strings.TrimSpace(what.Reason)
	if reason == "" {
		return fault.Wrong("reason", "must not be empty")
	}
	recorded, err := r.Builds.Skip(ctx, api.Request(ctx), name, what.Position, reason)
	if err != nil {
		return err
	}
	api.SetWriteHeaders(ctx, recorded, false)
	return nil
}
