package marketplacereact

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/messaging/message"
	"bahi/providers/chat"
	"bahi/reactors"
	"bahi/readmodels"
)

// sendOne is one notification.
type sendOne func(ctx context.Context, at *readmodels.At, a asked) (enquiry.Note, error)

// deliveryResult is the result of a notification.
type deliveryResult struct {
	enquiry   uuid.UUID
	workspace uuid.UUID
	note      enquiry.Note
}

// sendAll sends the notifications of a port one after the other, and records all results at once. If there are several, a failing one
// continues in a job of its own, so that the others are not sent again.
func (n *Notices) sendAll(ctx context.Context, port enquiry.Port, all []uuid.UUID, attempt int, do sendOne,
	alone func(EnquiryBatch) reactors.Args) error {
	var (
		notes  []deliveryResult
		failed error
	)
	for _, id := range all {
		note, err := n.notifyOne(ctx, port, id, attempt, do)
		switch {
		case ctx.Err() != nil: // the process stops, or takes too long; finished notifications are recorded
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()
	// the log writes them together
	return errors.Join(failed, commands.InParallel(len(notes), func(nth int) error { return n.note(ctx, notes[nth]) }))
}

// notifyOne sends one notification, unless it was sent, and returns its result, or nil for none.
func (n *Notices) notifyOne(ctx context.Context, port enquiry.Port, id uuid.UUID, attempt int, do sendOne) (*deliveryResult, error) {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	a, err := n.load(ctx, id)
	if err != nil || a.Status == "" {
		return nil, err
	}
	before, err := commands.Load(ctx, n.Commands.Cached(), enquiry.NotificationKind, id.String())
	// a receipt may have reported the result
	if is := before.State.Of[port].Status; err != nil || is == enquiry.Done || is == enquiry.Failed && port == enquiry.Chat {
		return nil, err
	}
	note := enquiry.Note{}
	if a.company.Name == "" {
		err = skip("the company was deleted")
	} else {
		note, err = do(ctx, new(readmodels.At).AsKnownAt(a.position), a) // reads need not be newer than the enquiry
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
	return &deliveryResult{id, a.workspace, note}, nil
}

// note records the result of a notification.
func (n *Notices) note(ctx context.Context, t deliveryResult) error {
	req := commands.Request{Actor: actor.Actor{Type: "system", ID: "notices", Workspace: t.workspace}, Workspace: t.workspace}
	_, err := commands.Handle(ctx, n.Commands, req, enquiry.NotificationKind, t.enquiry.String(), t.note)
	if errors.Is(err, event.ErrErased) { // meanwhile
		t.note.Buyer, t.note.Said = "", ""
		_, err = commands.Handle(ctx, n.Commands, req, enquiry.NotificationKind, t.enquiry.String(), t.note)
	}
	return err
}

// Receipt records the chat network's delivery receipt for a notification. It ignores an unknown or erased enquiry.
func (n *Notices) Receipt(ctx context.Context, id uuid.UUID, r message.Receipt) error {
	note := enquiry.Note{Notified: enquiry.Notified{Port: enquiry.Chat, Status: enquiry.Done,
		At: n.Commands.Now().UTC().Truncate(time.Microsecond)}}
	switch r.Status {
	case message.Sent:
	case message.Delivered, message.Read, "played":
		note.Delivered = true
	case message.NotSent:
		note.Status, note.Error = enquiry.Failed, chat.Reported(r.Code).Error()
	default:
		return nil
	}
	a, err := n.load(ctx, id)
	if err != nil || a.Status == "" {
		return err
	}
	l, err := n.letter(a)
	if errors.Is(err, errGone) {
		return nil
	}
	before, err := commands.Load(ctx, n.Commands.Cached(), enquiry.NotificationKind, id.String())
	if err != nil {
		return err
	}
	if before.State.Of[enquiry.Chat].Status == "" { // we have not received the network's response
		note.To, note.Buyer = a.company.Profile.Phone.Value, a.Buyer
		if note.Said, err = text("chat", l); err != nil {
			return err
		}
	}
	return n.note(ctx, deliveryResult{id, a.workspace, note})
}
