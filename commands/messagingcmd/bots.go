package messagingcmd

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botsource"
	"bahi/domain/messaging/botwebhook"
	"bahi/domain/messaging/channel"
)

// blobs store the bytes of files and pages.
type blobs interface {
	Put(ctx context.Context, key, contentType string, data []byte) error
}

// Bots handles those commands of bots that require more than load, decide, append.
type Bots struct {
	Commands *commands.Handler
	Blobs    blobs
}

// pages claims each web address for one source of a bot.
var pages = unique.Field[botsource.State]{
	Records: botsource.Kind, Claims: botsource.Pages, Key: func(s botsource.State) string { return s.PageKey },
	Name: "url", Taken: "The bot has this page already",
}

// existing reports whether a channel exists.
func existing(s channel.State) bool { return s.Type != "" }

// channels refuses channels that the workspace does not have. The refusal has the command's own faults too.
func (f *Bots) channels(ctx context.Context, tx *commands.Tx, req commands.Request, ids []int64, wrong error) error {
	return fault.Join(wrong, known(ctx, tx, req, reference[channel.State]{channel.Kind, "channelIds", channel.ErrNotFound, existing}, ids))
}

// Create creates a bot in the request's workspace.
func (f *Bots) Create(ctx context.Context, req commands.Request, c bot.Create) (commands.Outcome[bot.State], error) {
	if req.Actor.Type == "user" {
		c.Owner = req.Actor.ID
	}
	return commands.Do(ctx, f.Commands, req, bot.Kind, func(ctx context.Context, tx *commands.Tx) error {
		_, wrong := c.Decide(bot.State{})
		if err := f.channels(ctx, tx, req, c.Channels.Value, wrong); err != nil {
			return err
		}
		return addNew(ctx, tx, f.Commands, bot.Kind, c)
	})
}

// addNew adds a record with the next number of its kind to a transaction.
func addNew[S any](ctx context.Context, tx *commands.Tx, h *commands.Handler, kind *event.Kind[S], c event.Command[S]) error {
	_, err := commands.DecideNew(ctx, tx, kind, h.IDFromSeries(kind.Category(), 1), func(string) event.Command[S] { return c })
	return err
}

// Edit changes fields of a bot. It removes deleted channels from the returned state.
func (f *Bots) Edit(ctx context.Context, req commands.Request, id string, c bot.Edit) (out commands.Outcome[bot.State], err error) {
	out, err = commands.Do(ctx, f.Commands, req, bot.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := own(ctx, tx, req, id); err != nil {
			return err
		}
		_, wrong := c.Decide(bot.State{Name: "it exists"})
		if err := f.channels(ctx, tx, req, c.Channels.Value, wrong); err != nil {
			return err
		}
		_, err := commands.Decide(ctx, tx, bot.Kind, id, c)
		return err
	})
	if err != nil {
		return out, err
	}
	var live []int64
	for _, id := range out.State.Channels {
		l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, strconv.FormatInt(id, 10))
		if err != nil {
			return out, err
		}
		if existing(l.State) {
			live = append(live, id)
		}
	}
	out.State.Channels = live
	return out, nil
}

// own returns [bot.ErrNotFound] unless the bot belongs to the request's workspace.
func own(ctx context.Context, from commands.Source, req commands.Request, id string) error {
	l, err := commands.Load(ctx, from, bot.Kind, id)
	if err == nil && (l.Workspace != req.Workspace || l.State.Name == "") {
		err = bot.ErrNotFound
	}
	return err
}

// SourceKey returns the name of a source's bytes in the blob store.
func SourceKey(bot int64, source string) string {
	return BotFolder(bot) + source
}

// BotFolder returns the prefix of the names of a bot's bytes.
func BotFolder(bot int64) string { return "bots/" + strconv.FormatInt(bot, 10) + "/" }

// AddFile adds a file to a bot. It stores the bytes before it appends the event.
func (f *Bots) AddFile(ctx context.Context, req commands.Request, c botsource.AddFile, data []byte) (out commands.Outcome[botsource.State],
	err error) {
	sum := sha256.Sum256(data)
	c.Hash, c.Size = hex.EncodeToString(sum[:]), int64(len(data))
	number := f.Commands.IDFromSeries(botsource.Kind.Category(), 1)
	return commands.Do(ctx, f.Commands, req, botsource.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := own(ctx, tx, req, strconv.FormatInt(c.Bot, 10)); err != nil {
			return err
		}
		_, err := commands.DecideNew(ctx, tx, botsource.Kind, func(ctx context.Context) (string, error) {
			id, err := number(ctx)
			if err == nil {
				err = f.Blobs.Put(ctx, SourceKey(c.Bot, id), "application/octet-stream", data)
			}
			return id, err
		}, func(string) event.Command[botsource.State] { return c })
		return err
	})
}

// AddPage adds a page to a bot. A job fetches it.
func (f *Bots) AddPage(ctx context.Context, req commands.Request, c botsource.AddPage) (out commands.Outcome[botsource.State], err error) {
	id := strconv.FormatInt(c.Bot, 10)
	if err := own(ctx, f.Commands.Fresh(), req, id); err != nil {
		return out, err
	}
	address, err := botsource.Normal(c.URL)
	if err != nil {
		return out, err
	}
	if c.PageKey, err = unique.Key(ctx, f.Commands, botsource.Pages, []byte(id), []byte(address)); err != nil {
		return out, err
	}
	return commands.Do(ctx, f.Commands, req, botsource.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := own(ctx, tx, req, id); err != nil {
			return err
		}
		_, err := pages.DecideNew(ctx, tx, c.PageKey, f.Commands.IDFromSeries(botsource.Kind.Category(), 1),
			func(string) event.Command[botsource.State] { return c })
		return err
	})
}

// RefreshPage requests to fetch a page again.
func (f *Bots) RefreshPage(ctx context.Context, req commands.Request, of int64, id string) (out commands.Outcome[botsource.State],
	err error) {
	return commands.Do(ctx, f.Commands, req, botsource.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := own(ctx, tx, req, strconv.FormatInt(of, 10)); err != nil {
			return err
		}
		l, err := commands.Load(ctx, tx, botsource.Kind, id)
		if err != nil || l.State.Bot != of {
			return errors.Join(err, botsource.ErrNoPage)
		}
		_, err = commands.Decide(ctx, tx, botsource.Kind, id, botsource.Request{})
		return err
	})
}

// DeleteSource deletes a source of a bot.
func (f *Bots) DeleteSource(ctx context.Context, req commands.Request, id string,
	c botsource.Delete) (out commands.Outcome[botsource.State], err error) {
	return commands.Do(ctx, f.Commands, req, botsource.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := own(ctx, tx, req, strconv.FormatInt(c.Bot, 10)); err != nil {
			return err
		}
		return pages.Decide(ctx, tx, id, new(""), c)
	})
}

// secretBytes is the length of the secret that signs calls (CONTRACT.md 3.4: 24 to 64).
const secretBytes = 32

// CreateWebhook adds a webhook to a bot. It returns the secret that signs the webhook's calls, or "" for a retry.
func (f *Bots) CreateWebhook(ctx context.Context, req commands.Request, c botwebhook.Create) (secret string,
	out commands.Outcome[botwebhook.State], err error) {
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails
	c.Secret = "whsec_" + base64.StdEncoding.EncodeToString(random)
	out, err = commands.Do(ctx, f.Commands, req, botwebhook.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := own(ctx, tx, req, strconv.FormatInt(c.Bot, 10)); err != nil {
			return err
		}
		return addNew(ctx, tx, f.Commands, botwebhook.Kind, c)
	})
	if err != nil || out.Replayed {
		return "", out, err
	}
	return c.Secret, out, nil
}

// EditWebhook changes fields of a bot's webhook.
func (f *Bots) EditWebhook(ctx context.Context, req commands.Request, id string,
	c botwebhook.Edit) (out commands.Outcome[botwebhook.State], err error) {
	return commands.Do(ctx, f.Commands, req, botwebhook.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := own(ctx, tx, req, strconv.FormatInt(c.Bot, 10)); err != nil {
			return err
		}
		_, err := commands.Decide(ctx, tx, botwebhook.Kind, id, c)
		return err
	})
}
