package messaging

import (
	"context"
	"errors"
	"strconv"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
)

// living returns the contact that a contact is now: another one, older, where it was merged.
func living(ctx context.Context, h *commands.Handler, id int64) (int64, error) {
	for {
		l, err := commands.Load(ctx, h.Fresh(), contact.Kind, strconv.FormatInt(id, 10))
		if err != nil || l.State.Into == 0 {
			return id, err
		}
		id = l.State.Into
	}
}

// met returns the contact that a network knows by an id, and now with a phone: it learns the phone, and is merged with the contact who has it. A contact of
// whom another phone or another id of the network is known is another person.
func (f *Messages) met(ctx context.Context, req commands.Request, of, id int64, who contact.State, phone string, err error) (int64, error) {
	if err != nil || phone == "" || who.PhoneKey != "" {
		return id, err
	}
	other, theirs, err := f.owner(ctx, req.Workspace, phone)
	switch {
	case err != nil:
		return 0, err
	case other != 0 && theirs.SenderAt(of).IsZero():
		return f.merge(ctx, req, min(id, other), max(id, other))
	case other != 0:
		return id, nil
	}
	_, err = EditContact(ctx, f.Commands, req, contact.Edit{ID: strconv.FormatInt(id, 10), Reach: contact.Reach{Phone: patch.Set(phone)}})
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Code == "phone_taken" { // since; the next message merges them
		err = nil
	}
	return id, err
}

// merge makes one contact of two, who are the same person: the older one stays (CONTRACT.md N10). After a crash, the next message of the person goes on with it.
func (f *Messages) merge(ctx context.Context, req commands.Request, keep, other int64) (int64, error) {
	id, its := strconv.FormatInt(keep, 10), strconv.FormatInt(other, 10)
	var both [2]contact.State
	for i, stream := range []string{id, its} {
		l, err := commands.Load(ctx, f.Commands.Fresh(), contact.Kind, stream)
		if err == nil {
			both[i], err = commands.Reveal(ctx, f.Commands, l.State)
		}
		if err != nil {
			return 0, err
		}
	}
	theirs := both[1]
	if _, err := commands.Handle(ctx, f.Commands, req, contact.Kind, id, contact.Absorb{ID: id, Contact: other, Other: theirs, Name: shown(both[0].Name.Shown())}); err != nil {
		return 0, err
	}
	if _, err := commands.Handle(ctx, f.Commands, req, contact.Kind, its, contact.MergeInto{Into: keep}); err != nil {
		return 0, err
	}
	if phone := shown(theirs.Phone.Shown()); phone != "" && both[0].PhoneKey == "" {
		if _, err := EditContact(ctx, f.Commands, req, contact.Edit{ID: id, Reach: contact.Reach{Phone: patch.Set(phone)}}); err != nil {
			return 0, err
		}
	}
	for _, s := range theirs.Senders {
		s.InClear = shown(s.ID.Shown())
		field := senders(s.Key)
		if s.Channel == 0 {
			field = spelt(s.Key)
		}
		if _, err := field.Handle(ctx, f.Commands, req, id, &s.Key, contact.Identify{Sender: s, Contact: id}); err != nil {
			return 0, err
		}
	}
	return keep, nil
}

// alike notes that a network knows a contact, to whom a message went by a phone, by another one: both are spellings of one number
// (CONTRACT.md R4). Where each has a
// contact, they are merged.
func (f *Messages) alike(ctx context.Context, req commands.Request, id int64, phone, as string) error {
	one, _ := network.Spelling(phone)
	if other, _ := network.Spelling(network.Phone(as)); id == 0 || other == "" || other == one || network.Phone(phone) == "" {
		return nil
	}
	req = req.FollowUp()
	keep, err := living(ctx, f.Commands, id)
	if err != nil {
		return err
	}
	other, err := f.holder(ctx, req.Workspace, as)
	if err == nil && other != 0 && other != keep {
		keep, err = f.merge(ctx, req, min(keep, other), max(keep, other))
	}
	if err != nil {
		return err
	}
	stream := strconv.FormatInt(keep, 10)
	for _, spelling := range []string{phone, as} {
		key, err := f.phoneKey(ctx, req.Workspace, spelling)
		if err != nil {
			return err
		}
		l, err := commands.Load(ctx, f.Commands.Fresh(), contact.Kind, stream)
		if err != nil || l.State.PhoneKey == key || l.State.SenderKey(key) != "" {
			if err != nil {
				return err
			}
			continue
		}
		s := contact.Sender{Key: key, InClear: spelling}
		if _, err := spelt(key).Handle(ctx, f.Commands, req, stream, &key, contact.Identify{Sender: s, Contact: stream}); err != nil {
			return err
		}
	}
	return nil
}

// spelt lets one contact of a workspace have a further spelling of its phone. It is a sender of no channel.
func spelt(key string) unique.Field[contact.State] {
	f := senders(key)
	f.Claims = contact.Phones
	return f
}

// forget forgets contacts that were merged, and those that were merged into them.
func forget(ctx context.Context, h *commands.Handler, req commands.Request, ids []int64) error {
	for _, id := range ids {
		stream := strconv.FormatInt(id, 10)
		l, err := commands.Load(ctx, h.Fresh(), contact.Kind, stream)
		if err != nil {
			return err
		}
		if err := forget(ctx, h, req, l.State.Absorbed); err != nil {
			return err
		}
		if _, err := commands.Handle(ctx, h, req.FollowUp(), contact.Kind, stream, contact.Forget{}); err != nil {
			return err
		}
	}
	return nil
}
