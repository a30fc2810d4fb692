package messagingcmd

import (
	"context"
	"fmt"
	"strconv"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/contactlist"
)

// reference is a field with record ids.
type reference[S any] struct {
	kind    *event.Kind[S]
	field   string
	missing *fault.Error
	there   func(S) bool
}

// known returns a fault for each of the field's ids that is unknown in the request's workspace.
func known[S any](ctx context.Context, from commands.Source, req commands.Request, to reference[S], ids []int64) error {
	var wrong []error
	for i, id := range ids {
		l, err := commands.Load(ctx, from, to.kind, strconv.FormatInt(id, 10))
		switch {
		case err != nil:
			return err
		case l.Workspace != req.Workspace || !to.there(l.State):
			wrong = append(wrong, fault.Wrong(fmt.Sprintf("%s[%d]", to.field, i), to.missing.Detail))
		}
	}
	return fault.Join(wrong...)
}

// lists checks the lists of a contact.
func lists(ctx context.Context, from commands.Source, req commands.Request, ids []int64) error {
	isThere := func(s contactlist.State) bool { return s.Name != "" }
	return known(ctx, from, req, reference[contactlist.State]{contactlist.Kind, "listIds", contactlist.ErrNotFound, isThere}, ids)
}

// CreateContactList creates a list and adds its first contacts.
func CreateContactList(
	ctx context.Context, h *commands.Handler, req commands.Request, c contactlist.Create,
) (commands.Outcome[contactlist.State], error) {
	first := contactlist.Distinct(c.ContactIDs)
	return commands.Do(ctx, h, req, contactlist.Kind, func(ctx context.Context, tx *commands.Tx) error {
		_, wrong := c.Decide(contactlist.State{})
		isThere := func(s contact.State) bool { return s.Status != "" }
		unknown := known(ctx, tx, req, reference[contact.State]{contact.Kind, "contactIds", contact.ErrNotFound, isThere}, c.ContactIDs)
		if err := fault.Join(wrong, unknown); err != nil {
			return err
		}
		var join contact.Join
		newID := h.IDFromSeries(contactlist.Kind.Category(), 1)
		_, err := commands.DecideNew(ctx, tx, contactlist.Kind, newID, func(id string) event.Command[contactlist.State] {
			join.List = event.Number(id)
			return c
		})
		if err != nil || tx.DryRun() {
			return err
		}
		for _, id := range first {
			if _, err := commands.Decide(ctx, tx, contact.Kind, strconv.FormatInt(id, 10), join); err != nil {
				return err
			}
		}
		return nil
	})
}
