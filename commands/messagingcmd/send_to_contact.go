package messagingcmd

import (
	"context"
	"errors"
	"maps"
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
	before, done, err := f.again(ctx, req)
	if done || err != nil {
		return before, err
	}
	out, err = f.deliver(ctx, req, before, func(ctx context.Context, tx *commands.Tx) (sending, error) {
		return f.compose(ctx, tx, id, b, before.State)
	}, admit)
	if p := b.Picture; p != nil && p.Key != "" && (out.ID == "" || out.Replayed) && before.State.File == "" { // no message refers to it
		if err := f.Files.Delete(context.WithoutCancel(ctx), p.Key); err != nil {
			f.Log.Warn("removing an unsent picture failed", "error", err)
		}
	}
	return out, err
}

// compose decides on a message to a contact. earlier is the message of an earlier request with the same key.
func (f *Messages) compose(
	ctx context.Context, tx *commands.Tx, id int64, b message.ToContact, earlier message.State,
) (s sending, err error) {
	to, err := commands.Load(ctx, tx, contact.Kind, strconv.FormatInt(id, 10))
	if err != nil {
		return s, err
	}
	if to.Workspace == tx.Workspace() && to.State.Into != 0 {
		return s, contact.MergedError(to.State.Into)
	}
	if to.Workspace != tx.Workspace() || to.State.Status == "" {
		return s, contact.ErrNotFound
	}
	who, err := commands.Reveal(ctx, f.Commands, to.State)
	if err != nil {
		return s, err
	}
	d, wrong := b.Draft()
	s.of, err = sender(ctx, tx, b.ChannelID)
	known := err == nil
	if d.To = reach(who, s.of.State.Type, b.ChannelID); errors.Is(err, channel.ErrNotFound) {
		err = fault.Wrong("channelId", channel.ErrNotFound.Detail)
	} else if known && d.To == "" {
		err = fault.Wrong("channelId", "The channel does not reach the contact")
	}
	if d.Template != 0 {
		t, unfilled := templateOf(ctx, tx, d.Template, b.TemplateParams)
		if known && t.Channel != 0 && t.Channel != b.ChannelID {
			unfilled = fault.Wrong("templateId", template.ErrNotFound.Detail)
		}
		if unfilled == nil {
			s.filled, d.Text, unfilled = fill(t, b.TemplateParams, who)
		}
		wrong = fault.Join(wrong, unfilled)
	}
	if err := fault.Join(wrong, err); err != nil {
		return s, err
	}
	if d.Picture != nil {
		d.Image, err = commands.Once(tx, "picture", func() (string, error) { return f.keepPicture(ctx, earlier, id, d.Picture) })
	}
	s.Queue = message.Queue{Draft: d, Contact: id}
	return s, err
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

// templateOf returns a template of the workspace, or all faults of the template and its values.
func templateOf(ctx context.Context, tx *commands.Tx, id int64, given template.Values) (template.State, error) {
	l, err := commands.Load(ctx, tx, template.Kind, strconv.FormatInt(id, 10))
	if err != nil {
		return l.State, err
	}
	var wrong error
	if l.Workspace != tx.Workspace() || l.State.Channel == 0 {
		l.State, wrong = template.State{}, fault.Wrong("templateId", template.ErrNotFound.Detail)
	} else if !l.State.Sendable() {
		wrong = fault.Wrong("templateId", "The network does not allow the template now")
	}
	return l.State, fault.Join(wrong, l.State.Check("templateParams", given))
}

// fill returns a template with its values, and the text for the contact.
func fill(t template.State, given template.Values, who contact.State) (*network.Filled, string, error) {
	filled, text := t.Filled(given, shown(who.Name.Shown()), shown(who.Phone.Shown()))
	var wrong []error
	values := maps.Clone(filled.Extras)
	for _, v := range filled.Body {
		values[v.Name] = v.Text
	}
	for _, place := range t.Places() {
		if values[place] == "" {
			wrong = append(wrong, fault.Wrong("templateParams."+place, "is empty: the contact has no phone"))
		}
	}
	return &filled, text, fault.Join(wrong...)
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
