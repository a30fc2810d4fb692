// Package spec has exhaustive models of three basic protocols: the commit of a group of appends, the move of a projection's pointer, and a
// lease. Each names the functions that it models. Every state that any order of steps reaches is checked.
package spec

import (
	"fmt"
	"strings"
)

// LeaseDescribes are the functions that [Lease] models.
var LeaseDescribes = map[string][]string{
	"commands/lease/lease.go":                   {"While", "keep"},
	"reactors/messagingreact/lease.go":          {"WithLease"},
	"reactors/messagingreact/answer_message.go": {"answer"},
	"commands/do.go":                            {"Do"},
}

// Lease models the lease under which one job of all nodes answers a contact. The database measures the lease's end by its own clock. A job
// measures the end from the time of its request. Requests and responses take any time. A job that is paused while its lease ends does one
// more step when it continues. That step has an Idempotency-Key, so the message still gets one reply.
type Lease struct {
	Without string // an omitted step, to check that the rules detect it
}

const (
	leaseFor  = 2
	leaseEnds = 6 // of time

	// The phases of a job.
	waits   = 0
	asks    = 1 // its request is in transit
	granted = 2 // its response is in transit
	denied  = 3
	works   = 4
	stopped = 5
)

// LeaseState is a state of [Lease].
type LeaseState struct {
	Now, Holder, Until int8
	Replies            int8
	J                  [2]struct {
		Phase, Sent, Deadline int8
		Net                   int8 // of a renewal: 1 in transit, 2 granted, 3 denied
		Asked                 int8 // when it was sent
		Paused, Acts          bool // Acts: it has checked that it may act, and will
	}
}

// Model returns the model.
func (c Lease) Model() Model[LeaseState] {
	return Model[LeaseState]{Next: c.next, Broken: c.broken, Final: func(LeaseState) bool { return true }}
}

func (c Lease) next(s LeaseState, to func(string, LeaseState)) {
	if s.Now < leaseEnds {
		n := s
		n.Now++
		to("time passes", n)
	}
	for i := range s.J {
		if s.J[i].Phase < works {
			c.acquire(s, i, to)
		} else {
			c.work(s, i, to)
		}
	}
}

func (c Lease) deadline(sent, now int8) int8 {
	if c.Without == "sent" { // counts from the response
		return now + leaseFor
	}
	return sent + leaseFor
}

func (c Lease) acquire(s LeaseState, i int, to func(string, LeaseState)) {
	move := func(what string, phase int8, change func(n *LeaseState)) {
		n := s
		n.J[i].Phase = phase
		if change != nil {
			change(&n)
		}
		to(fmt.Sprintf("%d %s", i+1, what), n)
	}
	switch s.J[i].Phase {
	case waits:
		move("asks", asks, func(n *LeaseState) { n.J[i].Sent = s.Now })
	case asks:
		if s.Holder == 0 || s.Until < s.Now {
			move("gets the lease", granted, func(n *LeaseState) { n.Holder, n.Until = int8(i+1), s.Now+leaseFor })
		} else {
			move("does not get the lease", denied, nil)
		}
	case granted:
		move("begins", works, func(n *LeaseState) { n.J[i].Deadline = c.deadline(s.J[i].Sent, s.Now) })
	case denied:
		move("waits", waits, nil)
	}
}

// owns reports whether a job assumes that it has the lease.
func (c Lease) owns(s LeaseState, i int) bool {
	j := s.J[i]
	return j.Phase == works && !j.Paused && (s.Now < j.Deadline || c.Without == "deadline" && j.Net > 0)
}

func (c Lease) work(s LeaseState, i int, to func(string, LeaseState)) {
	j := s.J[i]
	move := func(what string, change func(n *LeaseState)) {
		n := s
		change(&n)
		to(fmt.Sprintf("%d %s", i+1, what), n)
	}
	if j.Net == 1 { // the database gets it even if the job has stopped
		move("is renewed or not", func(n *LeaseState) {
			if n.J[i].Net = 3; s.Holder == int8(i+1) {
				n.J[i].Net, n.Until = 2, s.Now+leaseFor
			}
		})
	}
	switch {
	case j.Paused:
		move("continues", func(n *LeaseState) { n.J[i].Paused = false })
		return
	case j.Acts: // whatever the time is then
		move("replies", func(n *LeaseState) {
			if n.J[i].Acts = false; s.Replies == 0 || c.Without == "key" {
				n.Replies++
			}
			n.J[i].Phase = stopped
		})
	}
	if j.Phase != works {
		return
	}
	if !c.owns(s, i) {
		if !j.Acts {
			move("stops", func(n *LeaseState) { n.J[i].Phase = stopped })
		}
		return
	}
	move("is paused", func(n *LeaseState) { n.J[i].Paused = true })
	switch j.Net {
	case 0:
		move("asks for more time", func(n *LeaseState) { n.J[i].Net, n.J[i].Asked = 1, s.Now })
	case 2:
		move("has more time", func(n *LeaseState) { n.J[i].Net, n.J[i].Deadline = 0, c.deadline(j.Asked, s.Now) })
	case 3:
		move("has lost the lease", func(n *LeaseState) { n.J[i].Net, n.J[i].Phase = 0, stopped })
	}
	if !j.Acts {
		move("decides to reply", func(n *LeaseState) { n.J[i].Acts = true })
	}
}

func (c Lease) broken(s LeaseState) string {
	switch {
	case c.owns(s, 0) && c.owns(s, 1):
		return "two jobs have the lease"
	case s.Replies > 1:
		return "a message has two replies"
	}
	return ""
}

// Model is a protocol with its faults. A state is a value without pointers.
type Model[S comparable] struct {
	Start S
	// Next calls to with each possible next state, and the name of the step.
	Next func(s S, to func(step string, next S))
	// Broken returns the rule that a state breaks, or "".
	Broken func(S) string
	// Final reports whether a state without a next state is an end. Otherwise it is a deadlock.
	Final func(S) bool
}

// maxStates limits a model. More states mean a mistake.
const maxStates = 5_000_000

// Explore visits all states in order of distance. It returns their number, and an error with the shortest path to a state that breaks a
// rule.
func Explore[S comparable](m Model[S]) (states int, err error) {
	type way struct {
		from int
		step string
	}
	known, all, ways := map[S]bool{m.Start: true}, []S{m.Start}, []way{{-1, "start"}}
	fails := func(at int, why string) error {
		var steps []string
		for i := at; i >= 0; i = ways[i].from {
			steps = append([]string{fmt.Sprintf("%s: %+v", ways[i].step, all[i])}, steps...)
		}
		return fmt.Errorf("%s\n%s", why, strings.Join(steps, "\n"))
	}
	for i := 0; i < len(all); i++ {
		if why := m.Broken(all[i]); why != "" {
			return len(all), fails(i, why)
		}
		moves := false
		m.Next(all[i], func(step string, next S) {
			moves = true
			if !known[next] {
				known[next] = true
				all, ways = append(all, next), append(ways, way{i, step})
			}
		})
		if !moves && !m.Final(all[i]) {
			return len(all), fails(i, "deadlock")
		}
		if len(all) > maxStates {
			return len(all), fmt.Errorf("there are more than %d states", maxStates)
		}
	}
	return len(all), nil
}
