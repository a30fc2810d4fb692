package messaging

import (
	"context"
	"errors"
	"strconv"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
)

// SignedFor returns the channel of a sender at a chat network whose own secret has signed a call, 0 for none. The channel that is known to have
// the sender goes first; others may name the sender in their settings, and prove calls to themselves alone.
func (f *Messages) SignedFor(ctx context.Context, sender string, signed func(secret string) bool) (int64, error) {
	known, found, err := f.ChannelOf(ctx, channel.Chat, sender)
	if err != nil {
		return 0, err
	}
	if found {
		if ok, err := f.signs(ctx, known, sender, signed); ok || err != nil {
			return known, err
		}
	}
	others, err := f.Known.Signing(ctx, sender)
	for _, id := range others {
		if err != nil || id == known {
			continue
		}
		var ok bool
		if ok, err = f.signs(ctx, id, sender, signed); ok {
			return id, err
		}
	}
	return 0, err
}

// signs reports whether the own secret of a sender's channel has signed a call.
func (f *Messages) signs(ctx context.Context, id int64, sender string, signed func(secret string) bool) (bool, error) {
	_, s, err := f.of(ctx, strconv.FormatInt(id, 10), channel.Chat)
	if err != nil || s.Settings.SenderID != sender {
		return false, err
	}
	secret, err := f.shown(ctx, s.AppSecret.Value)
	return secret != "" && signed(secret), err
}

// SenderOf returns what calls name a channel by, "" for a channel that is gone.
func (f *Messages) SenderOf(ctx context.Context, id int64) (string, error) {
	_, s, err := f.of(ctx, strconv.FormatInt(id, 10), channel.Chat)
	return s.Settings.SenderID, err
}

// Unconfirmed returns the channels that wait for a sender or an app to be known as theirs.
func (f *Messages) Unconfirmed(ctx context.Context, sender, app string) ([]int64, error) {
	return f.Known.Unconfirmed(ctx, sender, app)
}

// HookToken returns what telegram sends with the updates of a channel, "" for a channel that is none of it.
func (f *Messages) HookToken(ctx context.Context, id string) (string, error) {
	there, _, err := f.of(ctx, id, channel.Telegram)
	if err != nil || !there {
		return "", err
	}
	return f.hookToken(ctx, id)
}

// hookToken follows from the channel's id and a key of the vault, so that nothing has to keep it.
func (f *Channels) hookToken(ctx context.Context, id string) (string, error) {
	return f.Commands.Hash(ctx, "telegram-hook", []byte(id))
}

// ConsumerSecret returns the secret of a twitter channel and the id of its own user, "" for none.
func (f *Messages) ConsumerSecret(ctx context.Context, id string) (secret, user string, err error) {
	_, s, err := f.of(ctx, id, channel.Twitter)
	if err == nil {
		secret, err = f.shown(ctx, s.ConsumerSecret.Value)
	}
	return secret, s.Settings.UserID, err
}

// of returns a channel of a type; there: it is one.
func (f *Messages) of(ctx context.Context, id, kind string) (there bool, s channel.State, err error) {
	if number, wrong := strconv.ParseInt(id, 10, 64); wrong != nil || strconv.FormatInt(number, 10) != id {
		return false, s, nil //nolint:nilerr // what is no number is no channel
	}
	l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, id)
	if err != nil || l.State.Type != kind {
		return false, s, err
	}
	return true, l.State, nil
}

// shown opens a secret, "" for none and for one that is forgotten.
func (f *Messages) shown(ctx context.Context, s event.Secret) (string, error) {
	text, err := f.Secrets.Show(ctx, s.Sealed)
	if errors.Is(err, event.ErrErased) {
		return "", nil
	}
	return text, err
}
