package ops

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
	views "bahi/readmodels/ops"
)

// Builds is who builds projections again. Its errors are those of package readmodels/ops.
type Builds interface {
	// Rebuild asks for the next generation of a projection.
	Rebuild(ctx context.Context, name string, how Rebuild) error
	// Estimate returns what a rebuild would do, and does nothing.
	Estimate(ctx context.Context, name string) (views.Estimate, error)
	// Throttle bounds the events a second that the build under way folds; 0: no bound.
	Throttle(ctx context.Context, name string, perSecond int) error
	// Pause pauses the build; where none is under way, the projection itself.
	Pause(ctx context.Context, name string) error
	// Resume ends that.
	Resume(ctx context.Context, name string) error
	// Cancel ends the build and drops what it has made.
	Cancel(ctx context.Context, name string) error
	// Accept lets the build take the live generation's place though it differs.
	Accept(ctx context.Context, name string) error
	// Rollback reads the generation again that was read before, which is as current as the live one.
	Rollback(ctx context.Context, name string) error
	// Retry lets what is parked try its event again: the projection, its build, or a reactor of that name.
	Retry(ctx context.Context, name string) error
	// Skip lets what is parked pass over its event, which must be at the position. It answers where
	// in the log that is recorded.
	Skip(ctx context.Context, req commands.Request, name string, at event.Position, reason string) (event.Position, error)
}

// Rebuild is how a projection is built again.
type Rebuild struct {
	Throttle   int           // events a second; 0: as many as it can
	Partitions int           // that fold at once; 0: as many as fit the machine
	Accept     bool          // differences from the live tables are accepted
	Keep       time.Duration // how long the replaced generation follows on; negative: as long as the setting says
}

// ByProjection names a projection.
type ByProjection struct {
	Name string `path:"name" maxLength:"128" doc:"The projection's name"`
}

// known returns [views.ErrNoProjection] for a name that is none: what is asked of the builds may also be
// asked about reactors, which are not answered here.
func (r *Routes) known(name string) error {
	if _, known := r.Registry.Versions[name]; !known {
		return views.ErrNoProjection
	}
	return nil
}

// Projections registers what is read, and building it again.
func (r *Routes) Projections() {
	api.Handle(r.API, api.Op{
		ID: "list-projections", Method: "GET", Path: "/ops/projections", Summary: "List projections: how far they are, and what is being rebuilt",
		Tags: tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, _ *struct{}) (*api.Body[[]views.Projection], error) {
		return api.Answer(r.Registry.All(ctx))
	})
	api.Handle(r.API, api.Op{
		ID: "get-projection", Method: "GET", Path: "/ops/projections/{name}", Summary: "Get one projection",
		Tags: tags, Operator: true, StrictQuery: true,
	}, func(ctx context.Context, in *ByProjection) (*api.Body[views.Projection], error) {
		return api.Answer(r.Registry.One(ctx, in.Name))
	})
	r.rebuild()
	r.steer("pause-projection", "pause", "Let the rebuild stand still; without one, the projection", r.Builds.Pause)
	r.steer("resume-projection", "resume", "Let what was paused go on", r.Builds.Resume)
	r.steer("cancel-rebuild", "cancel", "End the rebuild and drop what it has made", r.Builds.Cancel)
	r.steer("accept-rebuild", "accept", "Let the rebuilt tables be read though they differ from the live ones", r.Builds.Accept)
	r.steer("rollback-projection", "rollback", "Read the generation again that was read before the last rebuild", r.Builds.Rollback)
	r.steer("retry-projection", "retry", "Let a parked projection, or its rebuild, try its event again", r.Builds.Retry)
	r.throttle()
	r.skip()
	r.progress()
}

// Begun is a projection whose rebuild was asked for, or what a rebuild would do.
type Begun struct{ answer any }

// MarshalJSON implements [json.Marshaler].
func (b Begun) MarshalJSON() ([]byte, error) { return json.Marshal(b.answer) }

// Schema implements huma's SchemaProvider.
func (Begun) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "The projection; with dry_run, and then under 200, the estimate",
		OneOf: []*huma.Schema{
			r.Schema(reflect.TypeFor[views.Projection](), true, ""), r.Schema(reflect.TypeFor[views.Estimate](), true, ""),
		},
	}
}

// Order is how a rebuild is asked for.
type Order struct {
	Throttle   *int `json:"throttle,omitempty" minimum:"1" maximum:"1000000000" doc:"The most events a second; absent: as many as it can"`
	Partitions *int `json:"partitions,omitempty" minimum:"1" maximum:"64" doc:"How many fill the tables at once; absent: as fits the machine"`
	Accept     bool `json:"accept_differences,omitempty" doc:"The new tables are to be read even if they differ from the live ones"`
	Keep       *int `json:"keep_seconds,omitempty" minimum:"0" maximum:"31536000" doc:"How long the replaced generation follows on, to go back to; absent: as the setting says"`
}

func (o *Order) rebuild() Rebuild {
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
		Body   Begun
	}
	api.Handle(r.API, api.Op{
		ID: "rebuild-projection", Method: "POST", Path: "/ops/projections/{name}/rebuild", Summary: "Build a projection anew, while the live one is read",
		Tags: tags, Operator: true, Status: http.StatusAccepted, StrictQuery: true, StrictBody: true,
	}, func(ctx context.Context, in *struct {
		ByProjection
		DryRun bool `query:"dry_run" doc:"Answer what it would take, and do nothing"`
		Body   *Order
	}) (*answer, error) {
		if err := r.known(in.Name); err != nil {
			return nil, err
		}
		if in.DryRun {
			estimate, err := r.Builds.Estimate(ctx, in.Name)
			return &answer{http.StatusOK, Begun{estimate}}, err
		}
		if err := r.Builds.Rebuild(ctx, in.Name, in.Body.rebuild()); err != nil {
			return nil, err
		}
		now, err := r.Registry.One(ctx, in.Name)
		return &answer{http.StatusAccepted, Begun{now}}, err
	})
}

// steer registers something that is done to one projection, which is answered as it is then.
func (r *Routes) steer(id, verb, summary string, do func(context.Context, string) error) {
	api.Handle(r.API, api.Op{
		ID: id, Method: "POST", Path: "/ops/projections/{name}/" + verb, Summary: summary, Tags: tags, Operator: true, Status: http.StatusOK,
	}, func(ctx context.Context, in *ByProjection) (*api.Body[views.Projection], error) {
		if err := r.known(in.Name); err != nil {
			return nil, err
		}
		if err := do(ctx, in.Name); err != nil {
			return nil, err
		}
		return api.Answer(r.Registry.One(ctx, in.Name))
	})
}

// Pace bounds a rebuild under way.
type Pace struct {
	PerSecond *int `json:"events_per_second" minimum:"1" maximum:"1000000000" doc:"The most events a second; null: as many as it can"`
}

func (r *Routes) throttle() {
	api.Handle(r.API, api.Op{
		ID: "throttle-rebuild", Method: "POST", Path: "/ops/projections/{name}/throttle", Summary: "Bound how fast the rebuild goes, or lift the bound",
		Tags: tags, Operator: true, Status: http.StatusOK, StrictBody: true,
	}, func(ctx context.Context, in *struct {
		ByProjection
		Body Pace
	}) (*api.Body[views.Projection], error) {
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
