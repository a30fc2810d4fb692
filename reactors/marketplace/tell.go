package marketplace

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/marketplace/enquiry"
	"bahi/reactors"
	"bahi/readmodels"
)

// telling is one notification.
type telling func(ctx context.Context, a asked) (enquiry.Note, error)

// noted is what became of one.
type noted struct {
	enquiry   uuid.UUID
	workspace uuid.UUID
	note      enquiry.Note
}

// tell does the notifications of a port, one after the other, and notes what became of all at once. Of several, one that fails goes on in a job of its own: nobody
// is told again because another could not be.
func (n *Notices) tell(ctx context.Context, port enquiry.Port, all []uuid.UUID, attempt int, do telling, alone func(Asked) reactors.Args) error {
	var (
		notes  []noted
		failed error
	)
	for _, id := range all {
		note, err := n.tellOne(ctx, port, id, attempt, do)
		switch {
		case ctx.Err() != nil: // the process stops, or takes too long; what was told is noted
			failed = errors.Join(failed, ctx.Err())
		case err != nil && len(all) > 1:
			failed = errors.Join(failed, n.Jobs.Add(ctx, alone(one(id))))
		case err != nil:
			return err
		}
		if note != nil {
			notes = append(notes, *note)
		}
		if ctx.Err() != nil {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellWithin)
	defer cancel()
	var noting errgroup.Group // the log writes them together
	for _, t := range notes {
		noting.Go(func() error { return n.note(ctx, t) })
	}
	return errors.Join(failed, noting.Wait())
}

// tellOne does one notification, unless it was done, and returns what became of it, nil for nothing.
func (n *Notices) tellOne(ctx context.Context, port enquiry.Port, id uuid.UUID, attempt int, do telling) (*noted, error) {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	a, err := n.load(ctx, id)
	if err != nil || a.Status == "" {
		return nil, err
	}
	before, err := commands.Load(ctx, n.Commands.Cached(), enquiry.NotificationKind, id.String())
	if err != nil || before.State.Of[port].Status == enquiry.Done {
		return nil, err
	}
	note := enquiry.Note{}
	if a.company.Name == "" {
		err = skip("the company was deleted")
	} else {
		note, err = do(readmodels.Past(ctx, a.position), a) // what came after the enquiry is not waited for
	}
	note.Port, note.Status, note.At = port, enquiry.Done, n.Commands.Now().UTC().Truncate(time.Microsecond)
	failed, isFinal := errors.AsType[ended](err)
	skipped, isSkipped := errors.AsType[skip](err)
	switch {
	case errors.Is(err, event.ErrErased), errors.Is(err, errGone):
		note = enquiry.Note{Notified: enquiry.Notified{Port: port, Status: enquiry.Skipped, At: note.At, Error: errGone.Error()}}
	case isSkipped:
		note.Status, note.Error = enquiry.Skipped, string(skipped)
	case isFinal:
		note.Status, note.Error = enquiry.Failed, failed.why
	case err != nil && attempt < policy.Attempts:
		return nil, err
	case err != nil:
		note.Status, note.Error = enquiry.Failed, "no try succeeded within a day"
	}
	return &noted{id, a.workspace, note}, nil
}

// note records what became of a notification.
func (n *Notices) note(ctx context.Context, t noted) error {
	req := commands.Request{Actor: actor.Actor{Type: "system", ID: "notices", Workspace: t.workspace}, Workspace: t.workspace}
	_, err := commands.Handle(ctx, n.Commands, req, enquiry.NotificationKind, t.enquiry.String(), t.note)
	if errors.Is(err, event.ErrErased) { // meanwhile
		t.note.Buyer, t.note.Said = "", ""
		_, err = commands.Handle(ctx, n.Commands, req, enquiry.NotificationKind, t.enquiry.String(), t.note)
	}
	return err
}
