package messaging

import (
	"context"

	"bahi/domain/event"
	"bahi/domain/messaging/contactlist"
	"bahi/reactors"
)

// Lists finishes new lists whose process died before all their contacts had joined.
var Lists = reactors.Define("contact_lists",
	reactors.On(func(q *reactors.Queue, e event.Recorded[contactlist.Created]) error {
		if len(e.Data.Contacts) > 0 {
			q.Add(FinishList{List: e.StreamID()})
		}
		return nil
	}),
)

// FinishList has the first contacts of a list join it.
type FinishList struct {
	List string `json:"list"`
}

// Kind implements [reactors.Args].
func (FinishList) Kind() string { return "finish_contact_list" }

// ListWorkers returns the worker of lists.
func ListWorkers(finish func(ctx context.Context, list string) error) reactors.Workers {
	return reactors.Workers{reactors.Work(reactors.Policy{}, func(ctx context.Context, job reactors.Job[FinishList]) error {
		return finish(ctx, job.Args.List)
	})}
}
