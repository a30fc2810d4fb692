package messaging

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/contactlist"
)

// known returns a fault for each id of a field that names no record of the request's workspace.
func known[S any](ctx context.Context, h *commands.Handler, req commands.Request, kind *event.Kind[S], field, missing string, there func(S) bool, ids []int64) error {
	var wrong []error
	for i, id := range ids {
		l, err := commands.Load(ctx, h.Fresh(), kind, strconv.FormatInt(id, 10))
		switch {
		case err != nil:
			return err
		case l.Workspace != req.Workspace || !there(l.State):
			wrong = append(wrong, fault.Fields(fault.Field{Field: fmt.Sprintf("%s[%d]", field, i), Message: missing}))
		}
	}
	return fault.Join(wrong...)
}

// lists checks the lists that a contact is to be in.
func lists(ctx context.Context, h *commands.Handler, req commands.Request, ids []int64) error {
	return known(ctx, h, req, contactlist.Kind, "listIds", contactlist.ErrNotFound.Detail, func(s contactlist.State) bool { return s.Name != "" }, ids)
}

// CreateContactList makes a list, then puts its first contacts into it. A repetition of the request puts in who is missing.
func CreateContactList(ctx context.Context, h *commands.Handler, req commands.Request, c contactlist.Create) (out commands.Outcome[contactlist.State], err error) {
	_, done, err := commands.Earlier(ctx, h, req, contactlist.Kind)
	if err != nil {
		return out, err
	}
	if !done {
		_, wrong := c.Decide(contactlist.State{})
		unknown := known(ctx, h, req, contact.Kind, "contactIds", contact.ErrNotFound.Detail, func(s contact.State) bool { return s.Status != "" }, c.ContactIDs)
		if err := fault.Join(wrong, unknown); err != nil {
			return out, err
		}
	}
	out, err = commands.Create(ctx, h, req, contactlist.Kind, h.Numbered(contactlist.Kind.Category(), 1), c)
	if err != nil {
		return out, err
	}
	list, _ := strconv.ParseInt(out.ID, 10, 64) // we gave it
	for _, id := range out.State.Contacts {
		_, err := commands.Handle(ctx, h, req.FollowUp(), contact.Kind, strconv.FormatInt(id, 10), contact.Join{List: list})
		if err != nil && !errors.Is(err, contact.ErrNotFound) { // deleted since
			return out, err
		}
	}
	return out, nil
}

// FinishContactList puts the first contacts of a list into it whose streams have not moved since it was made: the process died before they joined. What has
// happened to the others is newer.
func FinishContactList(ctx context.Context, h *commands.Handler, id string) error {
	of, err := commands.Load(ctx, h.Fresh(), contactlist.Kind, id)
	if err != nil {
		return err
	}
	list, _ := strconv.ParseInt(id, 10, 64) // we gave it
	for _, first := range of.State.Contacts {
		stream := strconv.FormatInt(first, 10)
		l, err := commands.Load(ctx, h.Fresh(), contact.Kind, stream)
		if err != nil {
			return err
		}
		if l.State.Status == "" || l.Position > of.Position {
			continue
		}
		_, err = commands.Handle(ctx, h, commands.Request{Workspace: of.Workspace, IfMatch: &l.Revision}, contact.Kind, stream, contact.Join{List: list})
		if err != nil && !errors.Is(err, commands.ErrStale) && !errors.Is(err, contact.ErrNotFound) {
			return err
		}
	}
	return nil
}
