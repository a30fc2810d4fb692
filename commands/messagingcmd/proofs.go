package messagingcmd

import (
	"context"
	"errors"
	"strconv"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
)

// SignedFor returns the channel with the secret that signed a call for a sender at a chat network, or 0. It also returns whether the
// channel with the verified sender has a secret. It tries that channel first. Other channels may name the sender in their settings, but
// their secrets verify only calls to themselves.
func (f *Messages) SignedFor(ctx context.Context, sender string, signed func(secret string) bool) (id int64, guarded bool, err error) {
	known, found, err := f.ChannelOf(ctx, channel.Chat, sender)
	if err != nil {
		return 0, false, err
	}
	if found {
		s, secret, err := f.appSecret(ctx, known)
		if guarded = secret != "" && s.Settings.SenderID == sender; err != nil || guarded && signed(secret) {
			return known, guarded, err
		}
	}
	others, err := f.Known.Signing(ctx, sender)
	for _, other := range others {
		if err != nil || other == known {
			continue
		}
		var s channel.State
		var secret string
		if s, secret, err = f.appSecret(ctx, other); secret != "" && s.Settings.SenderID == sender && signed(secret) {
			return other, guarded, err
		}
	}
	return 0, guarded, err
}

func (f *Messages) appSecret(ctx context.Context, id int64) (s channel.State, secret string, err error) {
	if _, s, err = f.of(ctx, strconv.FormatInt(id, 10), channel.Chat); err != nil {
		return s, "", err
	}
	secret, err = f.shown(ctx, s.AppSecret.Value)
	return s, secret, err
}

const (
	maxSecrets = 500 // secrets that are tried on a body without a sender
	maxSigners = 10  // channels with one common secret
)

// SignedBy tries the app secrets of at most tried channels. It returns the channels whose secret signed a call, at most maxSigners.
func (f *Messages) SignedBy(ctx context.Context, tried int, signed func(secret string) bool) (signers []int64, err error) {
	ids, err := f.Known.WithAppSecret(ctx, min(tried, maxSecrets))
	for _, id := range ids {
		if err != nil || len(signers) == maxSigners {
			break
		}
		var secret string
		if _, secret, err = f.appSecret(ctx, id); secret != "" && signed(secret) {
			signers = append(signers, id)
		}
	}
	return signers, err
}

// SenderOf returns the sender of a channel in calls, or "" for a deleted channel.
func (f *Messages) SenderOf(ctx context.Context, id int64) (string, error) {
	_, s, err := f.of(ctx, strconv.FormatInt(id, 10), channel.Chat)
	return s.Settings.SenderID, err
}

// Unconfirmed returns the channels with an unverified sender or app.
func (f *Messages) Unconfirmed(ctx context.Context, sender, app string) ([]int64, error) {
	return f.Known.Unconfirmed(ctx, sender, app)
}

// AnyChat reports whether the deployment has a channel of the chat network.
func (f *Messages) AnyChat(ctx context.Context) (bool, error) { return f.Known.AnyChat(ctx) }

// Together reports whether two channels belong to one workspace.
func (f *Messages) Together(ctx context.Context, one, other int64) (bool, error) {
	a, err := f.atHand(ctx, one)
	if err != nil {
		return false, err
	}
	b, err := f.atHand(ctx, other)
	return a.Workspace == b.Workspace && a.State.Type != "" && b.State.Type != "", err
}

// HookToken returns the token of telegram's calls to a channel, or "" for another type.
func (f *Messages) HookToken(ctx context.Context, id string) (string, error) {
	there, _, err := f.of(ctx, id, channel.Telegram)
	if err != nil || !there {
		return "", err
	}
	return f.hookToken(ctx, id)
}

// hookToken derives the token from the channel's id and a key of the vault, so that it is not stored.
func (f *Channels) hookToken(ctx context.Context, id string) (string, error) {
	return f.Commands.Hash(ctx, "telegram-hook", []byte(id))
}

// ConsumerSecret returns the secret of a twitter channel and the id of its own user, or "".
func (f *Messages) ConsumerSecret(ctx context.Context, id string) (secret, user string, err error) {
	_, s, err := f.of(ctx, id, channel.Twitter)
	if err == nil {
		secret, err = f.shown(ctx, s.ConsumerSecret.Value)
	}
	return secret, s.Settings.UserID, err
}

// of returns a channel if it has the type.
func (f *Messages) of(ctx context.Context, id, kind string) (there bool, s channel.State, err error) {
	if number, wrong := strconv.ParseInt(id, 10, 64); wrong != nil || strconv.FormatInt(number, 10) != id {
		return false, s, nil //nolint:nilerr // an invalid number is no channel
	}
	l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, id)
	if err != nil || l.State.Type != kind {
		return false, s, err
	}
	return true, l.State, nil
}

// shown decrypts a secret. It returns "" for none and for an erased one.
func (f *Messages) shown(ctx context.Context, s event.Secret) (string, error) {
	text, err := f.Secrets.OpenValue(ctx, s.Sealed)
	if errors.Is(err, event.ErrErased) {
		return "", nil
	}
	return text, err
}
