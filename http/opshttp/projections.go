package opshttp

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/http/api"
	"bahi/readmodels/opsview"
)

// Builds rebuilds projections. It returns the errors of package readmodels/opsview.
type Builds interface {
	// Rebuild requests the next generation of a projection.
	Rebuild(ctx context.Context, name string, how Rebuild) error
	// Estimate returns the estimated cost of a rebuild.
	Estimate(ctx context.Context, name string) (opsview.Estimate, error)
	// Throttle limits the current build to the given number of events per second; 0: no limit.
	Throttle(ctx context.Context, name string, perSecond int) error
	// Steer executes a verb: pause and resume the build or, without a build, the projection; cancel the build and drop its tables; accept its
	// differences; rollback to the previous generation, which is as current as the live one; retry.
	Steer(ctx context.Context, name, verb string) error
	// Retry makes a parked projection, build or reactor try its event again.
	Retry(ctx context.Context, name string) error
	// Skip makes a parked projection or reactor skip its faulty event, which must be at the position. It returns the position of the event
	// that records the skip.
	Skip(ctx context.Context, req commands.Request, name string, at event.Position, reason string) (event.Position, error)
}

// Rebuild has the options of a rebuild.
type Rebuild struct {
	Throttle   int           // events per second; 0: unlimited
	Partitions int           // parts that fill in parallel; 0: chosen by the number of processors
	Accept     bool          // accept differences from the live tables
	Keep       time.Duration // time for which the replaced generation stays up to date; negative: the setting
}

// ByProjection identifies a projection.
type ByProjection struct {
	Name string `path:"name" maxLength:"128" doc:"The projection's name"`
}

// known returns [opsview.ErrNoProjection] for an unknown name. It excludes reactors, which Builds accepts too.
func (r *Routes) known(name string) error {
	if _, known := r.Registry.Versions[name]; !known {
		return opsview.ErrNoProjection
	}
	return nil
}

// Projections registers the operations on projections and their rebuilds.
func (r *Routes) Projections() {
	api.Handle(r.API, api.Op{
		ID: "list-projections", Method: "GET", Path: "/ops/projections", Summary: "List the projections with their positions and rebuilds",
		Tags: tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, _ *struct{}) (*api.Body[[]opsview.Projection], error) {
		return api.Answer(r.Registry.All(ctx))
	})
	api.Handle(r.API, api.Op{
		ID: "get-projection", Method: "GET", Path: "/ops/projections/{name}", Summary: "Read a projection",
		Tags: tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, in *ByProjection) (*api.Body[opsview.Projection], error) {
		return api.Answer(r.Registry.One(ctx, in.Name))
	})
	r.rebuild()
	r.steer("pause-projection", "pause", "Pause a rebuild, or a projection without a rebuild")
	r.steer("resume-projection", "resume", "Resume a paused rebuild or projection")
	r.steer("cancel-rebuild", "cancel", "Cancel a rebuild and drop its tables")
	r.steer("accept-rebuild", "accept", "Accept rebuilt tables that differ from the live ones")
	r.steer("rollback-projection", "rollback", "Roll back to the tables before the last rebuild")
	r.steer("retry-projection", "retry", "Retry the event of a parked projection or rebuild")
	r.throttle()
	r.skip()
	r.progress()
}

// begun is the response to a request for a rebuild: the projection, or the estimate.
type begun struct{ answer any }

// MarshalJSON implements [json.Marshaler].
func (b begun) MarshalJSON() ([]byte, error) { return json.Marshal(b.answer) }

// Schema implements huma's SchemaProvider.
func (begun) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "The projection; with dry_run, and status 200, the estimate",
		OneOf: []*huma.Schema{
			r.Schema(reflect.TypeFor[opsview.Projection](), true, ""), r.Schema(reflect.TypeFor[opsview.Estimate](), true, ""),
		},
	}
}

// order is the request for a rebuild.
type order struct {
	Throttle   *int `json:"throttle,omitempty" minimum:"1" maximum:"1000000000" doc:"Maximum number of events a second; absent: unlimited"`
	Partitions *int `json:"partitions,omitempty" minimum:"1" maximum:"64" doc:"Number of parts that fill the tables in parallel; absent: chosen by the number of processors"`
	Accept     bool `json:"accept_differences,omitempty" doc:"Make the new tables live even if they differ from the live ones"`
	Keep       *int `json:"keep_seconds,omitempty" minimum:"0" maximum:"31536000" doc:"Seconds for which the replaced generation is kept for a rollback; absent: the setting"`
}

func (o *order) rebuild() Rebuild {
	how := Rebuild{Keep: -1}
	if o == nil {
		return how
	}
	how.Accept = o.Accept
	if o.Throttle != nil {
		how.Throttle = *o.Throttle
	}
	if o.Partitions != nil {
		how.Partitions = *o.Partitions
	}
	if o.Keep != nil {
		how.Keep = time.Duration(*o.Keep) * time.Second
	}
	return how
}

func (r *Routes) rebuild() {
	type answer struct {
		Status int
		Body   begun
	}
	api.Handle(r.API, api.Op{
		ID: "rebuild-projection", Method: "POST", Path: "/ops/projections/{name}/rebuild",
		Summary: "Start a rebuild of a projection. Reads use the live tables until the rebuild ends.",
		Tags:    tags, Operator: true, Status: http.StatusAccepted, NoKey: true, StrictQuery: true, StrictBody: true,
	}, func(ctx context.Context, in *struct {
		ByProjection
		DryRun bool `query:"dry_run" doc:"Only estimate the rebuild"`
		Body   *order
	}) (*answer, error) {
		if err := r.known(in.Name); err != nil {
			return nil, err
		}
		if in.DryRun {
			estimate, err := r.Builds.Estimate(ctx, in.Name)
			return &answer{http.StatusOK, begun{estimate}}, err
		}
		if err := r.Builds.Rebuild(ctx, in.Name, in.Body.rebuild()); err != nil {
			return nil, err
		}
		now, err := r.Registry.One(ctx, in.Name)
		return &answer{http.StatusAccepted, begun{now}}, err
	})
}

// steer registers an operation on one projection, which responds with the projection.
func (r *Routes) steer(id, verb, summary string) {
	api.Handle(r.API, api.Op{
		ID: id, Method: "POST", Path: "/ops/projections/{name}/" + verb, Summary: summary, Tags: tags, Operator: true, Status: http.StatusOK,
		NoKey: true,
	}, func(ctx context.Context, in *ByProjection) (*api.Body[opsview.Projection], error) {
		if err := r.known(in.Name); err != nil {
			return nil, err
		}
		if err := r.Builds.Steer(ctx, in.Name, verb); err != nil {
			return nil, err
		}
		return api.Answer(r.Registry.One(ctx, in.Name))
	})
}

// Pace is the rate limit of a rebuild.
type Pace struct {
	PerSecond *int `json:"events_per_second" minimum:"1" maximum:"1000000000" doc:"Maximum number of events a second; null: unlimited"`
}

func (r *Routes) throttle() {
	api.Handle(r.API, api.Op{
		ID: "throttle-rebuild", Method: "POST", Path: "/ops/projections/{name}/throttle",
		Summary: "Limit the rate of a rebuild, or remove the limit",
		Tags:    tags, Operator: true, Status: http.StatusOK, NoKey: true, StrictBody: true,
	}, func(ctx context.Context, in *struct {
		ByProjection
		Body Pace
	}) (*api.Body[opsview.Projection], error) {
		if err := r.known(in.Name); err != nil {
			return nil, err
		}
		perSecond := 0
		if in.Body.PerSecond != nil {
			perSecond = *in.Body.PerSecond
		}
		if err := r.Builds.Throttle(ctx, in.Name, perSecond); err != nil {
			return nil, err
		}
		return api.Answer(r.Registry.One(ctx, in.Name))
	})
}
