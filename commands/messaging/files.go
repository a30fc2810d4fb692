package messaging

import (
	"context"
	"errors"
	"strconv"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
)

// Files keeps the files that contacts send. A contact's are in the folder files/<subject>, which is deleted with the contact.
type Files interface {
	Put(ctx context.Context, key, contentType string, data []byte) error
	Delete(ctx context.Context, key string) error
}

// KeepFile fetches the file of a message, and keeps it. It passes over a message without one, and over one of a contact or channel that is gone.
func (f *Messages) KeepFile(ctx context.Context, id string) error {
	l, err := commands.Load(ctx, f.Commands.Fresh(), message.Kind, id)
	if err != nil || l.State.Ref.IsZero() {
		return err
	}
	s, err := commands.Reveal(ctx, f.Commands, l.State)
	if err != nil {
		return err
	}
	ref, err := s.Ref.Text()
	if errors.Is(err, event.ErrErased) {
		return nil
	}
	if err != nil {
		return err
	}
	stream := strconv.FormatInt(s.Channel, 10)
	of, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, stream)
	if err != nil || of.State.Type == "" {
		return err
	}
	account, err := f.account(ctx, stream, of.State)
	if err != nil {
		return err
	}
	data, kind, err := f.Networks.File(ctx, account, ref)
	if err != nil {
		return err
	}
	key := "files/" + s.Subject() + "/" + id
	if err := f.Files.Put(ctx, key, kind, data); err != nil {
		return err
	}
	who, err := commands.Load(ctx, f.Commands.Fresh(), contact.Kind, strconv.FormatInt(s.Contact, 10))
	if err == nil && who.State.Status == "" { // it was deleted meanwhile
		return f.Files.Delete(ctx, key)
	}
	if err == nil {
		req := commands.Request{Workspace: l.Workspace}
		_, err = commands.Handle(ctx, f.Commands, req, message.Kind, id, message.File{Key: key, ContentType: kind, Size: int64(len(data))})
	}
	return err
}
