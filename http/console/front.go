package console

import (
	"maps"
	"slices"
	"time"

	"bahi/domain/event"
	views "bahi/readmodels/ops"
)

// system is all of it at a glance.
type system struct {
	Head        event.Position
	Recorded    time.Time // the head
	Elsewhere   bool      // the head is not how many events there are
	Projections []views.Projection
	Parked      []views.Parked
	Jobs        []jobCount
	Failed      int64 // jobs that were given up
	Newest      []views.Event
	Kept        []keptMessages
	Verdict     verdict
}

// verdict is whether somebody has to do something.
type verdict struct{ State, Text string }

// keptMessages is how many messages of a port were kept.
type keptMessages struct {
	Port  string
	Count int
}

// jobCount is how many jobs there are of a state.
type jobCount struct {
	State string
	Count int64
}

const newestEvents = 8

// counted are the states of jobs that have not ended well, in the order in which a job goes through them.
var counted = []string{"available", "scheduled", "running", "retryable", "discarded"}

func (v *visit) front() (page, error) {
	s, err := v.system()
	return page{template: "front", title: "Overview", body: s, live: true}, err
}

func (v *visit) frontLive() (page, error) {
	s, err := v.system()
	return page{template: "front", part: "live", body: s}, err
}

func (v *visit) system() (s system, err error) {
	s.Elsewhere = v.Elsewhere
	ctx := v.r.Context()
	if s.Head, s.Recorded, err = v.Events.Head(ctx); err != nil {
		return s, err
	}
	if s.Projections, err = v.Projections.All(ctx); err != nil {
		return s, err
	}
	if s.Parked, err = v.Projections.Parked(ctx); err != nil {
		return s, err
	}
	for _, state := range counted {
		_, total, err := v.Jobs.Jobs(ctx, views.Selection{State: state, Page: 1, PageSize: 1})
		if err != nil {
			return s, err
		}
		s.Jobs = append(s.Jobs, jobCount{state, total})
		if state == "discarded" {
			s.Failed = total
		}
	}
	found, err := v.Events.Search(ctx, views.Filter{}, newestEvents)
	if err != nil {
		return s, err
	}
	s.Newest = found.Events
	for _, port := range slices.Sorted(maps.Keys(v.Captured)) {
		_, total, err := v.Captured[port].Captured(ctx, 0, 1)
		if err != nil {
			return s, err
		}
		s.Kept = append(s.Kept, keptMessages{port, total})
	}
	s.Verdict = s.judge()
	return s, nil
}

// judge names the most pressing thing.
func (s system) judge() verdict {
	building, paused, waiting := 0, 0, 0
	for _, p := range s.Projections {
		if p.Build != nil || p.State == "building" {
			building++
		}
		if p.State == "paused" || p.Build != nil && p.Build.Paused {
			paused++
		}
		if p.Build != nil && p.Build.Phase == phaseDiffers {
			waiting++
		}
	}
	switch {
	case len(s.Parked) > 0:
		return verdict{"parked", things(len(s.Parked), "follower of the log stands still", "followers of the log stand still") + " at an event that cannot be applied."}
	case waiting > 0:
		return verdict{"differs", things(waiting, "rebuild differs", "rebuilds differ") + " from what is read, and waits for you to decide."}
	case s.Failed > 0:
		return verdict{"discarded", things(int(s.Failed), "job was given up.", "jobs were given up.")}
	case paused > 0:
		return verdict{"paused", things(paused, "projection is paused.", "projections are paused.")}
	case building > 0:
		return verdict{"building", things(building, "projection is being built.", "projections are being built.")}
	default:
		return verdict{"live", "All is well. Every projection follows the log."}
	}
}

func things(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + more
}
