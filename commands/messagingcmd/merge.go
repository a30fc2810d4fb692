package messagingcmd

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/network"
)

// living returns the contact itself, or the older one into which it was merged.
func living(ctx context.Context, from commands.Source, id int64) (int64, error) {
	for {
		l, err := commands.Load(ctx, from, contact.Kind, strconv.FormatInt(id, 10))
		if err != nil || l.State.Into == 0 {
			return id, err
		}
		id = l.State.Into
	}
}

// met handles the first report of a phone for a contact that had only a network's id. It sets the phone, or merges the contact with the
// contact that has the phone. A contact with a different phone or id of the network is another person.
func (f *Messages) met(ctx context.Context, tx *commands.Tx, workspace uuid.UUID, of, id int64, phone string) (int64, error) {
	other, theirs, err := f.owner(ctx, tx, workspace, phone)
	switch {
	case err != nil:
		return 0, err
	case other != 0 && theirs.SenderAt(of).IsZero():
		return f.merge(ctx, tx, workspace, min(id, other), max(id, other))
	case other != 0:
		return id, nil
	}
	return id, f.setPhone(ctx, tx, workspace, id, phone)
}

// merge merges two contacts of the same person. The older one stays (CONTRACT.md N10).
func (f *Messages) merge(ctx context.Context, tx *commands.Tx, workspace uuid.UUID, keep, other int64) (int64, error) {
	id, its := strconv.FormatInt(keep, 10), strconv.FormatInt(other, 10)
	var both [2]contact.State
	for i, stream := range []string{id, its} {
		l, err := commands.Load(ctx, tx, contact.Kind, stream)
		if err == nil {
			both[i], err = commands.Reveal(ctx, f.Commands, l.State)
		}
		if err != nil {
			return 0, err
		}
	}
	theirs := both[1]
	absorb := contact.Absorb{ID: id, Contact: other, Other: theirs, Name: shown(both[0].Name.Shown())}
	if _, err := commands.Decide(ctx, tx, contact.Kind, id, absorb); err != nil {
		return 0, err
	}
	if _, err := commands.Decide(ctx, tx, contact.Kind, its, contact.MergeInto{Into: keep}); err != nil {
		return 0, err
	}
	if phone := shown(theirs.Phone.Shown()); phone != "" && both[0].PhoneKey == "" {
		if err := f.setPhone(ctx, tx, workspace, keep, phone); err != nil {
			return 0, err
		}
	}
	for _, s := range theirs.Senders {
		s.InClear = shown(s.ID.Shown())
		field := senders(s.Key)
		if s.Channel == 0 {
			field = spelt(s.Key)
		}
		if err := identify(ctx, tx, field, keep, s); err != nil {
			return 0, err
		}
	}
	return keep, nil
}

// alike records that the network's phone differs from the phone of the sent message. Both are spellings of one number (CONTRACT.md R4). If
// each has a contact, alike merges the contacts.
func (f *Messages) alike(ctx context.Context, req commands.Request, id int64, phone, as string) error {
	one, _ := network.Spelling(phone)
	if other, _ := network.Spelling(network.Phone(as)); id == 0 || other == "" || other == one || network.Phone(phone) == "" {
		return nil
	}
	_, err := commands.Do(ctx, f.Commands, req.FollowUp(), contact.Kind, func(ctx context.Context, tx *commands.Tx) error {
		keep, err := living(ctx, tx, id)
		if err != nil {
			return err
		}
		other, _, err := f.owner(ctx, tx, req.Workspace, as)
		if err == nil && other != 0 && other != keep {
			keep, err = f.merge(ctx, tx, req.Workspace, min(keep, other), max(keep, other))
		}
		if err != nil {
			return err
		}
		for _, spelling := range []string{phone, as} {
			key, err := f.phoneKey(ctx, req.Workspace, spelling)
			if err != nil {
				return err
			}
			l, err := commands.Load(ctx, tx, contact.Kind, strconv.FormatInt(keep, 10))
			if err == nil && l.State.PhoneKey != key {
				err = identify(ctx, tx, spelt(key), keep, contact.Sender{Key: key, InClear: spelling})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// spelt claims another spelling of a phone for one contact of a workspace. The spelling is not a sender of a channel.
func spelt(key string) unique.Field[contact.State] {
	f := senders(key)
	f.Claims, f.Has = contact.Phones, reachedBy
	return f
}

// forget erases merged contacts, and the contacts that were merged into them.
func forget(ctx context.Context, tx *commands.Tx, ids []int64) error {
	for _, id := range ids {
		stream := strconv.FormatInt(id, 10)
		l, err := commands.Load(ctx, tx, contact.Kind, stream)
		if err == nil {
			_, err = commands.Decide(ctx, tx, contact.Kind, stream, contact.Forget{})
		}
		if err == nil {
			err = forget(ctx, tx, l.State.Absorbed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
