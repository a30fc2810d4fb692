package app

import (
	"cmp"
	"context"
	"errors"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/subscriber"
	"bahi/eventstore"
	"bahi/http/opshttp"
	"bahi/projections"
	"bahi/reactors/feedreact"
	"bahi/readmodels/opsview"
)

// Builds lets operators rebuild projections, on any process.
type Builds struct{ System *System }

var _ opshttp.Builds = Builds{}

// with calls do on the projection of a name.
func (b Builds) with(name string, do func(*projections.Projection) error) error {
	p, known := ProjectionNamed(name)
	if !known {
		return opsview.ErrNoProjection
	}
	return do(p)
}

func (s *System) How(r opshttp.Rebuild) projections.BuildOptions {
	how := projections.BuildOptions{Throttle: r.Throttle, Partitions: r.Partitions, Accept: r.Accept, Keep: r.Keep}
	if how.Keep < 0 {
		how.Keep = s.Settings.Keep
	}
	return how
}

// Rebuild implements ops.Builds.
func (b Builds) Rebuild(ctx context.Context, name string, how opshttp.Rebuild) error {
	return b.with(name, func(p *projections.Projection) error {
		build := b.System.Build(p)
		build.How = b.System.How(how)
		err := build.Request(ctx)
		b.System.Runner.Ask()
		return err
	})
}

// Estimate implements ops.Builds.
func (b Builds) Estimate(ctx context.Context, name string) (e opsview.Estimate, err error) {
	err = b.with(name, func(p *projections.Projection) error {
		found, err := b.System.Build(p).Estimate(ctx)
		e = opsview.Estimate{Events: found.Events, Rate: float64(found.Rate), Bytes: found.Bytes}
		if found.Rate > 0 {
			filling := float64(e.Events) / float64(found.Rate)
			e.Seconds = filling + cmp.Or(found.Then.Seconds(), filling)
		}
		return err
	})
	return e, err
}

// Throttle implements ops.Builds.
func (b Builds) Throttle(ctx context.Context, name string, perSecond int) error {
	return b.with(name, func(p *projections.Projection) error { return projections.Throttle(ctx, b.System.Pool, p, perSecond) })
}

// Steer implements ops.Builds.
func (b Builds) Steer(ctx context.Context, name, verb string) error {
	return b.with(name, func(p *projections.Projection) error {
		switch pool := b.System.Pool; verb {
		case "pause":
			return projections.Pause(ctx, pool, p)
		case "resume":
			return projections.Resume(ctx, pool, p)
		case "cancel":
			return b.System.Build(p).Cancel(ctx)
		case "accept":
			return projections.Accept(ctx, pool, p)
		case "rollback":
			defer b.System.Runner.Ask()
			return b.System.Build(p).Rollback(ctx, b.System.Settings.Keep)
		default: // retry
			return b.Retry(ctx, name)
		}
	})
}

// Retry implements ops.Builds. If a projection and a reactor have the same name, the parked one tries again.
func (b Builds) Retry(ctx context.Context, name string) error {
	err := b.with(name, func(p *projections.Projection) error {
		err := projections.Retry(ctx, b.System.Pool, p)
		b.System.Runner.Ask()
		return err
	})
	if !reacts(name) || err != nil && !errors.Is(err, projections.ErrNotParked) && !errors.Is(err, opsview.ErrNoProjection) {
		return err
	}
	also := projections.RetryReactor(ctx, b.System.Pool, name)
	if err == nil && errors.Is(also, projections.ErrNotParked) {
		return nil
	}
	return also
}

// reacts reports whether the name is a reactor's or the feed's.
func reacts(name string) bool {
	_, err := ReactorNamed(name)
	return err == nil || name == feedreact.Name
}

// Skip implements ops.Builds. If a projection and a reactor of one name are parked at the event, the projection skips it first.
func (b Builds) Skip(ctx context.Context, req commands.Request, name string, at event.Position, reason string) (event.Position, error) {
	p, projects := ProjectionNamed(name)
	if !projects && !reacts(name) {
		return 0, opsview.ErrNoProjection
	}
	version, err := 0, error(projections.ErrNotParked)
	if projects {
		version, err = p.Version, projections.ParkedAt(ctx, b.System.Pool, p, at)
	}
	if reacts(name) && errors.Is(err, projections.ErrNotParked) {
		version, err = 0, projections.ReactorParkedAt(ctx, b.System.Pool, name, at)
	}
	if errors.Is(err, projections.ErrNotParked) {
		return 0, opsview.ErrOtherEvent
	}
	if err != nil {
		return 0, err
	}
	skip := subscriber.Skip{Version: version, Position: at, Reason: reason}
	for e, err := range b.System.Store.ReadAll(ctx, at+1, eventstore.Backwards) {
		if err != nil {
			return 0, err
		}
		skip.EventID, skip.Type = e.ID, e.Type
		break
	}
	done, err := commands.Handle(ctx, b.System.Commands, req, subscriber.Kind, name, skip)
	if err != nil {
		return 0, err
	}
	if err := b.Retry(ctx, name); err != nil && !errors.Is(err, projections.ErrNotParked) { // another request has cleared the parked state
		return done.Position, err
	}
	return done.Position, nil
}
