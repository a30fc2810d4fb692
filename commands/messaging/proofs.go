package messaging

import (
	"context"
	"errors"
	"strconv"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
)

// AppSecret returns the secret that signs what a chat network sends to the channel with an identity, "" for none.
func (f *Messages) AppSecret(ctx context.Context, identity string) (string, error) {
	id, found, err := f.ChannelOf(ctx, channel.Chat, identity)
	if err != nil || !found {
		return "", err
	}
	_, s, err := f.of(ctx, strconv.FormatInt(id, 10), channel.Chat)
	if err != nil || s.Settings.SenderID != identity {
		return "", err
	}
	return f.shown(ctx, s.AppSecret.Value)
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
