// Package messagingcmd has those messaging commands that require more than load, decide, append.
package messagingcmd

import (
	"context"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/network"
	"bahi/domain/person"
)

// phones claims each phone for one contact of a workspace.
var phones = unique.Field[contact.State]{
	Records: contact.Kind, Claims: contact.Phones, Key: func(s contact.State) string { return s.PhoneKey }, Has: reachedBy,
	Name: "phone", Taken: "Another contact has this phone",
}

// name sets the name of the phone's claim. It sets none for an unreadable phone.
func name(ctx context.Context, h *commands.Handler, workspace uuid.UUID, r *contact.Addresses) (err error) {
	number, _ := person.ParseE164("phone", r.Phone.Value)
	number, r.Respelt = network.Spelling(number)
	r.PhoneKey, err = unique.Key(ctx, h, contact.Phones, workspace[:], []byte(number))
	return err
}

// AddContact creates a contact in the request's workspace.
func AddContact(ctx context.Context, h *commands.Handler, req commands.Request, c contact.Add) (out commands.Outcome[contact.State],
	err error) {
	if err := name(ctx, h, req.Workspace, &c.Addresses); err != nil {
		return out, err
	}
	return commands.Do(ctx, h, req, contact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		_, wrong := c.Decide(contact.State{})
		if err := fault.Join(wrong, lists(ctx, tx, req, c.ListIDs)); err != nil {
			return err
		}
		_, err := phones.DecideNew(ctx, tx, c.PhoneKey, h.IDFromSeries(contact.Kind.Category(), 1), func(id string) event.Command[contact.State] {
			c.ID = id
			return c
		})
		return err
	})
}

// EditContact changes the fields of a contact that the command contains.
func EditContact(ctx context.Context, h *commands.Handler, req commands.Request, c contact.Edit) (out commands.Outcome[contact.State],
	err error) {
	if err := name(ctx, h, req.Workspace, &c.Addresses); err != nil {
		return out, err
	}
	var phone *string // nil: unchanged
	if c.Phone.Present() {
		phone = &c.PhoneKey
	}
	return commands.Do(ctx, h, req, contact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		l, err := commands.Load(ctx, tx, contact.Kind, c.ID)
		if err != nil {
			return err
		}
		if l.Workspace == req.Workspace && l.State.Status != "" { // lists of other workspaces stay hidden
			_, wrong := c.Decide(l.State)
			if err := fault.Join(wrong, lists(ctx, tx, req, c.ListIDs.Value)); err != nil {
				return err
			}
		}
		return phones.Decide(ctx, tx, c.ID, phone, c)
	})
}

// DeleteContact deletes a contact and the contacts merged into it. It releases the phone. The key is destroyed soon after.
func DeleteContact(ctx context.Context, h *commands.Handler, req commands.Request, id string) (commands.Outcome[contact.State], error) {
	return commands.Do(ctx, h, req, contact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		l, err := commands.Load(ctx, tx, contact.Kind, id)
		if err != nil {
			return err
		}
		if err := phones.Decide(ctx, tx, id, new(""), contact.Delete{}); err != nil {
			return err
		}
		return forget(ctx, tx, l.State.Absorbed)
	})
}
