package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/http/ops"
	views "bahi/readmodels/ops"
)

// phaseDiffers is the phase of a build that waits for its differences to be accepted.
const phaseDiffers = "differs"

// mostReason is in characters.
const mostReason = 500

func (v *visit) projections() (page, error) {
	all, err := v.Projections.All(v.r.Context())
	return page{template: "projections", title: "Projections", body: all, live: true}, err
}

func (v *visit) projectionsLive() (page, error) {
	all, err := v.Projections.All(v.r.Context())
	return page{template: "projections", part: "live", body: all}, err
}

// oneProjection is a projection with the possible actions.
type oneProjection struct {
	views.Projection

	Parked []views.Parked // of the projection or its build
	Can    actions
	Said   string // for the part that screen readers announce
	Spoken bool   // announce that part again
	Moved  bool   // the possible actions have changed since the page was loaded
}

// actions are the possible actions.
type actions struct {
	Rebuild, Throttle, Pause, Resume, Cancel, Accept, Rollback, Retry bool
}

// Shape identifies the possible actions and the shown state, so that a page can tell whether it is outdated.
func (p oneProjection) Shape() string {
	return fmt.Sprint(p.Can, p.State, p.Generation, p.Build != nil && p.Build.Phase == phaseDiffers, len(p.Parked))
}

func (v *visit) one() (p oneProjection, err error) {
	ctx := v.r.Context()
	if p.Projection, err = v.Projections.One(ctx, v.r.PathValue("name")); err != nil {
		return p, err
	}
	parked, err := v.Projections.Parked(ctx)
	if err != nil {
		return p, err
	}
	for _, follower := range parked {
		if follower.Name == p.Name && follower.Kind != "reactor" {
			p.Parked = append(p.Parked, follower)
		}
	}
	build := p.Build
	p.Can = actions{
		Rebuild: build == nil && p.Generation != 0, Rollback: build == nil && p.Kept != nil, Retry: len(p.Parked) > 0,
		Pause:  build == nil && p.State != "paused" && p.Generation != 0 || build != nil && !build.Paused && build.Phase != phaseDiffers,
		Resume: build == nil && p.State == "paused" || build != nil && build.Paused,
		Cancel: build != nil && p.Generation != 0, Throttle: build != nil && build.Phase != phaseDiffers,
		Accept: build != nil && build.Phase == phaseDiffers,
	}
	p.Said = said(p.Projection)
	return p, nil
}

// said describes the projection in a sentence that changes rarely enough to be read aloud.
func said(p views.Projection) string {
	b := p.Build
	switch {
	case b != nil && b.Error != nil:
		return fmt.Sprintf("The rebuild of %s has stopped because of an error.", p.Name)
	case b != nil && b.Phase == phaseDiffers:
		return fmt.Sprintf("The rebuild of %s differs from the live tables and needs your decision.", p.Name)
	case b != nil && b.Paused:
		return fmt.Sprintf("The rebuild of %s is paused at %d percent.", p.Name, int(b.Percent))
	case b != nil && b.Phase == "filling":
		return fmt.Sprintf("The rebuild of %s: %d percent filled.", p.Name, int(b.Percent)/10*10)
	case b != nil:
		return fmt.Sprintf("The rebuild of %s: %s.", p.Name, b.Phase)
	case p.State == "live":
		return fmt.Sprintf("%s is live at generation %d.", p.Name, p.Generation)
	default:
		return fmt.Sprintf("%s is %s.", p.Name, p.State)
	}
}

func (v *visit) projection() (page, error) {
	p, err := v.one()
	return page{template: "projection", title: p.Name, body: p, live: p.Build != nil}, err
}

func (v *visit) projectionLive() (page, error) {
	p, err := v.one()
	query := v.r.URL.Query()
	p.Spoken, p.Moved = query.Get("said") != p.Said, query.Get("shape") != p.Shape()
	return page{template: "projection", part: "live-answer", body: p}, err
}

// estimated is a rebuild before it is requested.
type estimated struct {
	views.Projection

	Estimate views.Estimate
}

func (v *visit) estimate() (page, error) {
	ctx := v.r.Context()
	p, err := v.Projections.One(ctx, v.r.PathValue("name"))
	if err != nil {
		return page{}, err
	}
	e, err := v.Builds.Estimate(ctx, p.Name)
	return page{template: "rebuild", title: "Rebuild " + p.Name, body: estimated{p, e}}, err
}

// builds are the actions on a projection, by the last part of their address.
func (c *Console) builds() map[string]func(*visit) (string, error) {
	simple := func(word string, do func(v *visit, name string) error) func(*visit) (string, error) {
		return func(v *visit) (string, error) {
			name := v.r.PathValue("name")
			return projectionDone(name, word), do(v, name)
		}
	}
	return map[string]func(*visit) (string, error){
		"rebuild": simple("rebuild", func(v *visit, name string) error {
			throttle, err := v.perSecond()
			if err != nil {
				return err
			}
			return c.Builds.Rebuild(v.r.Context(), name, ops.Rebuild{Throttle: throttle, Accept: v.r.PostFormValue("accept") != "", Keep: -1})
		}),
		"throttle": simple("throttle", func(v *visit, name string) error {
			throttle, err := v.perSecond()
			if err != nil {
				return err
			}
			return c.Builds.Throttle(v.r.Context(), name, throttle)
		}),
		"pause":    simple("pause", func(v *visit, name string) error { return c.Builds.Pause(v.r.Context(), name) }),
		"resume":   simple("resume", func(v *visit, name string) error { return c.Builds.Resume(v.r.Context(), name) }),
		"cancel":   simple("cancel", func(v *visit, name string) error { return c.Builds.Cancel(v.r.Context(), name) }),
		"accept":   simple("accept", func(v *visit, name string) error { return c.Builds.Accept(v.r.Context(), name) }),
		"rollback": simple("rollback", func(v *visit, name string) error { return c.Builds.Rollback(v.r.Context(), name) }),
		"retry":    simple("retry", func(v *visit, name string) error { return c.Builds.Retry(v.r.Context(), name) }),
		"skip":     simple("skip", (*visit).skip),
	}
}

func projectionDone(name, word string) string {
	return Path + "/projections/" + url.PathEscape(name) + "?done=" + word
}

// perSecond parses the limit of a rebuild; 0 for an empty field.
func (v *visit) perSecond() (int, error) {
	text := strings.TrimSpace(v.r.PostFormValue("throttle"))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 32)
	if err != nil || n < 1 {
		return 0, fault.Fields(fault.Field{Field: "throttle", Message: "expected a number of events a second, at least 1, or nothing for no limit"})
	}
	return int(n), nil
}

// skip makes a follower of the log skip the event at which it stopped.
func (v *visit) skip(name string) error {
	position, err := strconv.ParseUint(v.r.PostFormValue("position"), 10, 63)
	reason := strings.TrimSpace(v.r.PostFormValue("reason"))
	switch {
	case err != nil:
		return fault.Fields(fault.Field{Field: "position", Message: "expected a position of the log"})
	case reason == "":
		return fault.Fields(fault.Field{Field: "reason", Message: "is required: an auditor will ask for it"})
	case len([]rune(reason)) > mostReason:
		return fault.Fields(fault.Field{Field: "reason", Message: fmt.Sprintf("at most %d characters", mostReason)})
	}
	_, err = v.Builds.Skip(v.r.Context(), api.Request(v.r.Context()), name, event.Position(position), reason)
	return err
}
