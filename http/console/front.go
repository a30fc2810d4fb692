package console

import (
	"maps"
	"slices"
	"time"

	"bahi/domain/event"
	views "bahi/readmodels/ops"
)

// system is the overview of the whole system.
type system struct {
	Head        event.Position
	Recorded    time.Time // time of the head
	Projections []views.Projection
	Parked      []views.Parked
	Jobs        []jobCount
	Failed      int64 // discarded jobs
	Newest      []views.Event
	Kept        []keptMessages
	AllKept     int
	Verdict     verdict
}

// verdict says whether an operator has to act.
type verdict struct{ State, Text string }

// keptMessages is the number of kept messages of a port.
type keptMessages struct {
	Port  string
	Count int
}

// jobCount is the number of jobs in a state.
type jobCount struct {
	State string
	Count int64
}

const newestEvents = 8

// counted are the states of unfinished and failed jobs, in the order in which a job goes through them.
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
		s.Kept, s.AllKept = append(s.Kept, keptMessages{port, total}), s.AllKept+total
	}
	s.Verdict = s.judge()
	return s, nil
}

// judge returns the most urgent verdict.
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
		return verdict{"parked", things(len(s.Parked), "follower of the log has stopped", "followers of the log have stopped") + " at an event that cannot be applied."}
	case waiting > 0:
		return verdict{"differs", things(waiting, "rebuild differs", "rebuilds differ") + " from the live tables and needs your decision."}
	case s.Failed > 0:
		return verdict{"discarded", things(int(s.Failed), "job was discarded.", "jobs were discarded.")}
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
