package messagingcmd

import (
	"context"
	"errors"
	"strconv"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
)

// SendTo sends a message to a contact over a channel of any type. Otherwise it is like [Messages.Send].
func (f *Messages) SendTo(
	ctx context.Context, req commands.Request, id int64, b message.ToContact, admit func(channel int64) error,
) (out commands.Outcome[message.State], err error) {
	if out, done, err := f.again(ctx, req); done || err != nil {
		return out, err
	}
	to, err := commands.Load(ctx, f.Commands.Fresh(), contact.Kind, strconv.FormatInt(id, 10))
	if err != nil {
		return out, err
	}
	if to.Workspace == req.Workspace && to.State.Into != 0 {
		return out, contact.MergedError(to.State.Into)
	}
	if to.Workspace != req.Workspace || to.State.Status == "" {
		return out, contact.ErrNotFound
	}
	d, wrong := b.Draft()
	of, err := f.channel(ctx, req, b.ChannelID)
	if errors.Is(err, channel.ErrNotFound) {
		err = fault.Fields(fault.Field{Field: "channelId", Message: channel.ErrNotFound.Detail})
	}
	if err := fault.Join(wrong, err); err != nil {
		return out, err
	}
	who, err := commands.Reveal(ctx, f.Commands, to.State)
	if err != nil {
		return out, err
	}
	if d.To = reach(who, of.State.Type, d.Channel); d.To == "" {
		return out, fault.Fields(fault.Field{Field: "channelId", Message: "The channel does not reach the contact"})
	}
	var filled *network.Filled
	if d.Template != 0 {
		if filled, d.Text, err = f.fill(ctx, req, d, b.TemplateParams, who); err != nil {
			return out, err
		}
	}
	if d.Picture == nil {
		return f.deliver(ctx, req, of, message.Queue{Draft: d, Contact: id}, filled, admit)
	}
	earlier := out.State
	if d.Image, err = f.keepPicture(ctx, earlier, id, d.Picture); err != nil {
		return out, err
	}
	out, err = f.deliver(ctx, req, of, message.Queue{Draft: d, Contact: id}, nil, admit)
	if (out.ID == "" || out.Replayed) && earlier.File == "" { // no message refers to the picture
		if err := f.Files.Delete(context.WithoutCancel(ctx), d.Picture.Key); err != nil {
			f.Log.Warn("removing an unsent picture failed", "error", err)
		}
	}
	return out, err
}

// reach returns the contact's address on a channel, or "".
func reach(who contact.State, kind string, of int64) string {
	switch kind {
	case channel.Gmail:
		return shown(who.Email.Shown())
	case channel.Chat:
		if phone := shown(who.Phone.Shown()); phone != "" {
			return phone
		}
	}
	return shown(who.SenderAt(of).Shown())
}

func shown(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// fill returns a template of the channel with its values, and the text for the contact.
func (f *Messages) fill(ctx context.Context, req commands.Request, d message.Draft, given template.Values,
	who contact.State) (*network.Filled, string, error) {
	l, err := commands.Load(ctx, f.Commands.Fresh(), template.Kind, strconv.FormatInt(d.Template, 10))
	if err != nil {
		return nil, "", err
	}
	if l.Workspace != req.Workspace || l.State.Channel != d.Channel {
		return nil, "", fault.Fields(fault.Field{Field: "templateId", Message: template.ErrNotFound.Detail})
	}
	if !l.State.Sendable() {
		return nil, "", fault.Fields(fault.Field{Field: "templateId", Message: "The network does not allow the template now"})
	}
	if err := l.State.Check("templateParams", given); err != nil {
		return nil, "", err
	}
	filled, text := l.State.Filled(given, shown(who.Name.Shown()), shown(who.Phone.Shown()))
	return &filled, text, nil
}

// Read records that users have read up to a message of a contact, 0 for the newest. It returns the position of the
// event.
func (f *Messages) Read(ctx context.Context, req commands.Request, id, upTo int64) (out commands.Outcome[message.State], err error) {
	if upTo == 0 {
		if upTo, err = f.Known.LastHeard(ctx, req.Workspace, id); err != nil {
			return out, err
		}
		if upTo == 0 { // the request's key records that there was no message, so a retry does not mark later ones
			return commands.Handle(ctx, f.Commands, req, message.Kind, "0", message.MarkNoneRead{})
		}
	}
	stream := strconv.FormatInt(upTo, 10)
	l, err := commands.Load(ctx, f.Commands.Fresh(), message.Kind, stream)
	if err != nil {
		return out, err
	}
	who := int64(0)
	if l.Workspace == req.Workspace {
		if who, err = living(ctx, f.Commands.Fresh(), l.State.Contact); err != nil {
			return out, err
		}
	}
	if who != id {
		return out, fault.Fields(fault.Field{Field: "messageId", Message: message.ErrNotFound.Detail})
	}
	return commands.Handle(ctx, f.Commands, req, message.Kind, stream, message.MarkRead{Contact: id})
}
