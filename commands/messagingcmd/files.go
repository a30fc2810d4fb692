package messagingcmd

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
)

// files stores the files of conversations. A contact's files are in the folder files/<subject>, which is deleted with
// the contact.
type files interface {
	URL(ctx context.Context, key string, lasts time.Duration) (string, error)
	Put(ctx context.Context, key, contentType string, data []byte) error
	Delete(ctx context.Context, key string) error
}

// StoreFile fetches and stores the file of a message. It ignores messages without a file, and messages of a deleted contact or channel.
func (f *Messages) StoreFile(ctx context.Context, id string) error {
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
	key := fileOf(s, id)
	if err := f.Files.Put(ctx, key, kind, data); err != nil {
		return err
	}
	who, err := commands.Load(ctx, f.Commands.Fresh(), contact.Kind, strconv.FormatInt(s.Contact, 10))
	if err != nil {
		return err
	}
	gone := who.State.Status == "" && who.State.Into == 0 // the contact was deleted meanwhile
	if !gone {
		out, err := commands.Handle(ctx, f.Commands, commands.Request{Workspace: l.Workspace}, message.Kind, id,
			message.StoreFile{Key: key, ContentType: kind, Size: int64(len(data))})
		if err != nil {
			return err
		}
		gone = out.State.Revoked
	}
	if gone {
		return f.Files.Delete(ctx, key)
	}
	return nil
}

// pictureLink is the lifetime of the link from which networks fetch a sent picture.
const pictureLink = 7 * 24 * time.Hour

// keepPicture stores a picture for a contact unless an earlier attempt did, and returns a link to it.
func (f *Messages) keepPicture(ctx context.Context, earlier message.State, id int64, p *message.Picture) (link string, err error) {
	if p.Key = earlier.File; p.Key == "" {
		p.Key = fileOf(message.State{Contact: id}, uuid.NewString())
		if err := f.Files.Put(ctx, p.Key, p.Type, p.Bytes); err != nil {
			return "", err
		}
	}
	return f.Files.URL(ctx, p.Key, pictureLink)
}

// fileOf returns the key of a file of a message.
func fileOf(s message.State, id string) string { return "files/" + s.Subject() + "/" + id }
