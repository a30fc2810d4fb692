package opshttp

import (
	"context"
	"reflect"
	"time"

	"bahi/http/api"
	"bahi/readmodels/opsview"
)

const (
	lookInterval = 200 * time.Millisecond // interval between reads of the registry: any process may write to it
	sendInterval = time.Second            // even without a change
)

// End is the end of a rebuild.
type End struct {
	State      string `json:"state" enum:"live,cancelled,none" doc:"Result; live: the new tables are live; cancelled: they were dropped; none: there was no rebuild"`
	Generation int    `json:"generation" doc:"The live generation"`
}

func (r *Routes) progress() {
	api.Stream(r.API, api.Op{
		ID: "watch-rebuild", Method: "GET", Path: "/ops/projections/{name}/progress",
		Summary: "Stream the progress of a rebuild until it ends",
		Tags:    tags, Operator: true, StrictQuery: true,
	}, map[string]any{"progress": opsview.Build{}, "end": End{}},
		func(ctx context.Context, in *ByProjection) (api.Source, error) {
			first, err := r.Registry.One(ctx, in.Name)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, send func(api.Event) error) error { return r.watch(ctx, first, send) }, nil
		})
}

// watch reports the progress of the current build. It does not report a later one.
func (r *Routes) watch(ctx context.Context, first opsview.Projection, send func(api.Event) error) error {
	if first.Build == nil {
		return send(api.Event{Data: End{State: "none", Generation: first.Generation}})
	}
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	var (
		now  = first
		sent opsview.Build
		at   time.Time
	)
	for now.Build != nil && now.Build.Generation == first.Build.Generation {
		if time.Since(at) >= sendInterval || !reflect.DeepEqual(sent, *now.Build) {
			sent, at = *now.Build, time.Now()
			if err := send(api.Event{Data: sent}); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		var err error
		if now, err = r.Registry.One(ctx, first.Name); err != nil {
			return err
		}
	}
	state := "cancelled"
	if now.Generation == first.Build.Generation || now.Kept != nil && now.Kept.Generation == first.Build.Generation {
		state = "live" // or live and already replaced
	}
	return send(api.Event{Data: End{State: state, Generation: now.Generation}})
}
