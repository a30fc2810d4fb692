package reactors

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/projections"
)

// Args are the arguments of a job. Kind is its stored name (send_verification), which must not change. The fields hold only ids, never
// personal data or secrets, because jobs outlive both.
type Args = river.JobArgs

// Reactor decides which jobs follow from events.
type Reactor struct {
	Name  string // name of the reactor, its checkpoint, its metric and its argument
	types []string
	waits time.Duration // how long events wait for others
	on    map[reflect.Type]func(*Queue, event.Recorded[any]) error
}

// WithBatchDelay makes events wait up to a maximum for later ones, so that their jobs are added together. It suits jobs that are not
// urgent: adding many jobs together costs little more than adding one.
func (r *Reactor) WithBatchDelay(most time.Duration) *Reactor {
	r.waits = most
	return r
}

// Reaction handles events of one type.
type Reaction struct {
	event reflect.Type
	on    func(*Queue, event.Recorded[any]) error
}

// Define declares a reactor.
func Define(name string, reactions ...Reaction) *Reactor {
	r := &Reactor{Name: name, on: map[reflect.Type]func(*Queue, event.Recorded[any]) error{}}
	for _, reaction := range reactions {
		stored := domain.Catalogue.NamesOf(reaction.event)
		if r.on[reaction.event] != nil {
			panic(fmt.Sprintf("reactor %s handles %s twice", name, stored))
		}
		r.types, r.on[reaction.event] = append(r.types, stored...), reaction.on
	}
	return r
}

// On returns the reaction to events of one type. The reaction depends on the event alone and only adds jobs, so a replay adds the same
// ones.
func On[E any](react func(*Queue, event.Recorded[E])) Reaction {
	return Reaction{event: reflect.TypeFor[E](), on: func(q *Queue, r event.Recorded[any]) error {
		react(q, event.As[E](r))
		return nil
	}}
}

// OnID is [On] for events of streams with a UUID as their id. Any other id parks the reactor at the event until an operator has repaired
// the cause.
func OnID[E any](react func(q *Queue, id uuid.UUID, e event.Recorded[E])) Reaction {
	return Reaction{event: reflect.TypeFor[E](), on: func(q *Queue, r event.Recorded[any]) error {
		id, err := uuid.Parse(r.StreamID())
		if err == nil {
			react(q, id, event.As[E](r))
		}
		return err
	}}
}

// OnErasure returns the reactions to all events that request an erasure.
func OnErasure(react func(*Queue, event.Erasure)) (all []Reaction) {
	for _, t := range domain.Catalogue.Endings() {
		all = append(all, Reaction{event: t, on: func(q *Queue, r event.Recorded[any]) error {
			if ending, ok := r.Data.(event.ErasureTrigger); ok {
				react(q, ending.Erases(r.StreamID()))
			}
			return nil
		}})
	}
	return all
}

// Queue collects the jobs that follow from a batch of events.
type Queue struct {
	event  event.Recorded[any]
	jobs   []job
	joined map[string]int // index of the newest job of a kind that accepts more events
}

// Mergeable is implemented by arguments of a job for several events. Join adds the arguments of another job, or returns false if the job is
// full. The job has the first event's id.
type Mergeable interface {
	Args

	Join(other Args) (Args, bool)
}

type job struct {
	args Args
	from event.Recorded[any]
	at   time.Time // zero: immediately
}

// Add adds a job. The same job of the same event is added once: its kind, arguments and the event's id are its unique key, as long as River
// keeps the job.
func (q *Queue) Add(args Args) {
	if _, joins := args.(Mergeable); !joins {
		q.AddAt(time.Time{}, args)
		return
	}
	if at, there := q.joined[args.Kind()]; there {
		if into, ok := q.jobs[at].args.(Mergeable); ok {
			if all, taken := into.Join(args); taken {
				q.jobs[at].args = all
				return
			}
		}
	}
	if q.joined == nil {
		q.joined = map[string]int{}
	}
	q.joined[args.Kind()] = len(q.jobs)
	q.AddAt(time.Time{}, args)
}

// AddAt adds a job that is due at a time.
func (q *Queue) AddAt(at time.Time, args Args) {
	q.jobs = append(q.jobs, job{args: args, from: q.event, at: at})
}

// react writes the jobs that follow from the events and returns the number of new ones.
func (r *Reactor) react(ctx context.Context, jobs *Jobs, tx pgx.Tx, events []event.Recorded[any]) (added int, err error) {
	q := &Queue{}
	for _, e := range events {
		q.event = e
		if err := r.on[reflect.TypeOf(e.Data)](q, e); err != nil {
			return 0, fmt.Errorf("react to position %d: %w", e.Position, err)
		}
	}
	return jobs.insert(ctx, tx, q.jobs)
}

// follower returns the reactor for the runner of package projections.
func (r *Reactor) follower(jobs *Jobs) *projections.Reactor {
	return projections.React(r.Name, r.types, func(ctx context.Context, tx pgx.Tx, events []event.Recorded[any]) error {
		_, err := r.react(ctx, jobs, tx, events)
		return err
	}).WithBatchDelay(r.waits)
}

// fromEvent adds the event's id to arguments, which makes them unique.
type fromEvent struct {
	Args

	event uuid.UUID
}

// MarshalJSON returns the arguments with the event's id.
func (a fromEvent) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(a.Args)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", a.Kind(), err)
	}
	if _, taken := fields[eventField]; taken {
		return nil, fmt.Errorf("arguments of %s have a field %s already", a.Kind(), eventField)
	}
	fields[eventField] = json.RawMessage(`"` + a.event.String() + `"`)
	return json.Marshal(fields)
}

const eventField = "event_id"
