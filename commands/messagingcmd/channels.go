package messagingcmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"bahi/commands"
	"bahi/commands/unique"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
)

// Networks are the networks of channels. Their errors are [*network.Failure].
type Networks interface {
	// Health requests a network's report about an account.
	Health(ctx context.Context, a network.Account) (network.Health, error)
	// Send sends a message and returns the network's id of it.
	Send(ctx context.Context, a network.Account, m network.Message) (string, error)
	// Templates lists the templates of an account. Some networks have none.
	Templates(ctx context.Context, a network.Account) ([]network.Template, error)
	// Renew requests a new access token from the network.
	Renew(ctx context.Context, a network.Account) (network.Renewed, error)
	// File fetches the file of a message by the network's reference.
	File(ctx context.Context, a network.Account, ref string) (data []byte, contentType string, err error)
}

// secrets decrypts sealed values.
type secrets interface {
	OpenValue(ctx context.Context, s event.Sealed) (string, error)
}

// Channels handles those commands of channels that require more than load, decide, append.
type Channels struct {
	Commands *commands.Handler
	Secrets  secrets
	Networks Networks
	Hooks    string        // public https URL for networks, with the path of hooks; empty: none
	Within   time.Duration // timeout of a network's report; 0: 5 seconds
	Log      *slog.Logger

	// Deliver handles the webhook calls that waited for the verification of the channel's sender.
	Deliver func(ctx context.Context, channel int64) error

	Renewing *singleflight.Group // renewals of access tokens, by channel
}

const (
	askTimeout    = 5 * time.Second // CONTRACT.md 0.7
	maxConcurrent = 100             // concurrent reports for the channels of a workspace
)

// identities claims each sender for one channel of the deployment.
var identities = unique.Field[channel.State]{
	Records: channel.Kind, Claims: channel.Identities, Key: func(s channel.State) string { return s.IdentityKey },
	Name: "channel_identity", Taken: "Another channel has this sender", Global: true,
}

// unnamed removes the other channel from a conflict about a sender, because it may belong to another workspace.
func unnamed(err error) error {
	if taken(err) {
		return &fault.Error{Kind: fault.Conflict, Detail: identities.Taken, Code: identities.Name + "_taken"}
	}
	return err
}

func taken(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code == identities.Name+"_taken"
}

// Create creates a channel in the request's workspace. It calls the network first: only an account with valid
// credentials claims its sender.
func (f *Channels) Create(ctx context.Context, req commands.Request, c channel.Create) (out commands.Outcome[channel.State], err error) {
	if out, done, err := commands.PreviousOutcome(ctx, f.Commands, req, channel.Kind); done || err != nil {
		return out, err
	}
	c.ID, c.Key = "0", rand.Text() // data subject of the secrets in the first call
	s, err := after(c, channel.State{})
	if err == nil && req.Actor.Permissions.Operator {
		c.GivenKey, err = f.identity(ctx, s.Type, s.Sender())
		s.GivenKey, s.IdentityKey = c.GivenKey, c.GivenKey
	}
	if err != nil {
		return commands.Outcome[channel.State]{Revision: -1}, err
	}
	if _, c.Found, err = f.ask(ctx, "0", s); err == nil {
		err = f.free(ctx, "", s, c.Found)
	}
	if err != nil {
		return commands.Outcome[channel.State]{Revision: -1}, err
	}
	out, err = identities.Create(ctx, f.Commands, req, c.Found.IdentityKey, f.Commands.IDFromSeries(channel.Kind.Category(), 1),
		func(id string) event.Command[channel.State] {
			c.ID = id
			return c
		})
	// The channel now has an id, so its webhook can be registered and its token stored.
	if err == nil && !out.Replayed && (out.State.Type == channel.Telegram || out.State.RefreshToken.Present()) {
		if _, err := f.check(ctx, ctx, req.Workspace, out.Number()); err != nil {
			f.Log.Warn("channel health check failed", "channel", out.ID, "error", err)
		}
		l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, out.ID)
		if err != nil {
			return out, err
		}
		out.State, out.Revision, out.Position, out.At = l.State, l.Revision, l.Position, l.At
	}
	return out, unnamed(err)
}

// after returns the state after a command.
func after(c event.Command[channel.State], s channel.State) (channel.State, error) {
	events, err := c.Decide(s)
	for _, e := range events {
		s = e.Evolve(s)
	}
	return s, err
}

// Edit changes fields of a channel. It calls the network again if the change concerns the account.
func (f *Channels) Edit(ctx context.Context, req commands.Request, c channel.Edit) (out commands.Outcome[channel.State], err error) {
	if out, done, err := commands.PreviousOutcome(ctx, f.Commands, req, channel.Kind); done || err != nil {
		return out, err
	}
	l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, c.ID)
	if err != nil {
		return out, err
	}
	s, refused := after(c, l.State)
	var key *string // nil: unchanged
	if refused == nil && l.Workspace == req.Workspace && !s.SameAccount(l.State) {
		if !s.SameSender(l.State) {
			switch s.IdentityKey = ""; {
			case s.Sender() == l.State.Sender() && l.State.IdentityKey == s.GivenKey:
				// a sender assigned by an operator does not depend on credentials
				s.IdentityKey = s.GivenKey
			case req.Actor.Permissions.Operator && s.Sender() != l.State.Sender():
				c.GivenKey, err = f.identity(ctx, s.Type, s.Sender())
				s.GivenKey, s.IdentityKey = c.GivenKey, c.GivenKey
			}
			if err != nil {
				return out, err
			}
		}
		if _, c.Found, err = f.ask(ctx, c.ID, s); err == nil {
			err = f.free(ctx, c.ID, s, c.Found)
		}
		if err != nil {
			return out, err
		}
		key = &c.Found.IdentityKey
	}
	out, err = identities.Handle(ctx, f.Commands, req, c.ID, key, c)
	if err == nil && key != nil && *key != "" && !req.DryRun {
		err = f.Deliver(ctx, event.Number(c.ID))
	}
	return out, unnamed(err)
}

// Confirm assigns the sender in the settings to the channel, and handles the webhook calls that waited for it. Only operators use it.
func (f *Channels) Confirm(ctx context.Context, req commands.Request, id string) (out commands.Outcome[channel.State], err error) {
	l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, id)
	if err != nil {
		return out, err
	}
	key, err := f.identity(ctx, l.State.Type, l.State.Sender())
	if err != nil {
		return out, err
	}
	if l.Revision >= 0 {
		req = req.In(l.Workspace)
	}
	out, err = identities.Handle(ctx, f.Commands, req, id, &key, channel.Confirm{Sender: l.State.Sender(), IdentityKey: key})
	if err == nil && !req.DryRun {
		err = f.Deliver(ctx, event.Number(id))
	}
	return out, unnamed(err)
}

// identity returns the name of the claim of a network's sender, or "".
func (f *Channels) identity(ctx context.Context, kind, sender string) (string, error) {
	return unique.Key(ctx, f.Commands, channel.Identities, []byte(kind), []byte(sender))
}

// free refuses a sender that another channel has claimed, unless the network refuses the account.
func (f *Channels) free(ctx context.Context, id string, s channel.State, r channel.Report) error {
	if r.Status != channel.Connected {
		return nil
	}
	holder, found, err := f.ChannelOf(ctx, s.Type, s.Sender())
	if err == nil && found && strconv.FormatInt(holder, 10) != id {
		err = fault.Taken(identities.Name, identities.Taken, "")
	}
	return unnamed(err)
}

// ChannelOf returns the channel with a verified identity at a network, or false.
func (f *Channels) ChannelOf(ctx context.Context, kind, identity string) (id int64, found bool, err error) {
	key, err := f.identity(ctx, kind, identity)
	if err != nil || key == "" {
		return 0, false, err
	}
	has := func(s channel.State, key string) bool { return s.IdentityKey == key }
	id, _, err = claimed(ctx, f.Commands, channel.Identities, channel.Kind, key, has)
	return id, id != 0, err
}

// Delete deletes a channel and releases the sender. The key is destroyed soon after.
func (f *Channels) Delete(ctx context.Context, req commands.Request, id string) (commands.Outcome[channel.State], error) {
	return identities.Handle(ctx, f.Commands, req, id, new(""), channel.Delete{})
}

// ask requests a report about the channel's account from the network.
func (f *Channels) ask(ctx context.Context, id string, s channel.State) (h network.Health, r channel.Report, err error) {
	r = channel.Report{Status: channel.Connected, IdentityKey: s.IdentityKey}
	if s.Type == channel.Web { // Bahi itself is the network
		return h, r, nil
	}
	account, err := f.account(ctx, id, s)
	if err != nil {
		return h, r, err
	}
	asking, cancel := f.within(ctx)
	defer cancel()
	err = f.renewed(asking, id, account, func(a network.Account) (err error) {
		h, err = f.Networks.Health(asking, a)
		return err
	})
	failed, isFailure := errors.AsType[*network.Failure](err)
	if err != nil && !isFailure {
		return h, r, err
	}
	if r.Status, r.Error = s.StatusAfter(failed); failed != nil {
		return h, r, nil
	}
	sender := cmp.Or(s.Sender(), h.Identity)
	key, err := f.identity(ctx, s.Type, sender)
	if r.IdentityKey = ""; h.Proven && h.Identity == sender || key == s.GivenKey {
		r.IdentityKey = key
	}
	return h, r, err
}

// within sets the timeout of a report unless the caller has set one.
func (f *Channels) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(f.Within, askTimeout))
}

// account returns a channel with decrypted credentials.
func (f *Channels) account(ctx context.Context, id string, s channel.State) (a network.Account, err error) {
	a = network.Account{
		Channel: event.Number(id), Type: s.Type, Dialect: s.Settings.Dialect, BaseURL: s.Settings.BaseURL, SenderID: s.Settings.SenderID,
		AppName: s.Settings.AppName, ChatName: s.Name,
		AccountID: s.Settings.AccountID, ClientID: s.Settings.ClientID,
	}
	for _, secret := range []struct {
		into *string
		of   patch.Field[event.Secret]
	}{{&a.APIKey, s.APIKey}, {&a.AccessToken, s.AccessToken}, {&a.RefreshToken, s.RefreshToken}, {&a.ClientSecret, s.ClientSecret}} {
		if err == nil {
			*secret.into, err = f.Secrets.OpenValue(ctx, secret.of.Value.Sealed)
		}
	}
	if errors.Is(err, event.ErrErased) {
		err = channel.ErrNotFound
	}
	if err == nil && s.Type == channel.Telegram && a.Channel != 0 { // a new channel has no URL yet
		a.Hook = &network.Hook{}
		if f.Hooks != "" {
			a.Hook.URL = f.Hooks + "telegram/" + id
		}
		a.Hook.Token, err = f.hookToken(ctx, id)
	}
	return a, err
}

// Checked is the result of a channel's health check.
type Checked struct {
	network.Health

	Channel int64
	Status  string
	Error   string
}

// Health checks channels concurrently and records the networks' reports. The result of each channel has the channel's error. Health itself
// never fails.
func (f *Channels) Health(ctx context.Context, workspace uuid.UUID, ids []int64) []Checked {
	all := make([]Checked, len(ids))
	bounded, cancel := f.within(ctx)
	defer cancel()
	var asking errgroup.Group
	asking.SetLimit(maxConcurrent)
	for i, id := range ids {
		asking.Go(func() (err error) {
			if all[i], err = f.check(ctx, bounded, workspace, id); err != nil {
				f.Log.Warn("channel health check failed", "channel", id, "error", err)
				all[i] = Checked{Channel: id, Status: channel.Disconnected, Error: "The health check failed"}
			}
			return nil
		})
	}
	_ = asking.Wait() // each channel has its own error
	return all
}

// check requests the report about one channel. It records even a report that arrives after the timeout.
func (f *Channels) check(ctx, bounded context.Context, workspace uuid.UUID, id int64) (c Checked, err error) {
	stream := strconv.FormatInt(id, 10)
	l, err := commands.Load(ctx, f.Commands.Cached(), channel.Kind, stream)
	if err != nil {
		return c, err
	}
	h, r, err := f.ask(bounded, stream, l.State)
	if err == nil {
		r, err = f.note(ctx, workspace, stream, l.State, r)
	}
	return Checked{Health: h, Channel: id, Status: r.Status, Error: r.Error}, err
}

// note records a report that differs from the channel's state.
func (f *Channels) note(ctx context.Context, workspace uuid.UUID, id string, s channel.State, r channel.Report) (channel.Report, error) {
	if r == (channel.Report{Status: s.Status, Error: s.LastError, IdentityKey: s.IdentityKey}) {
		return r, nil
	}
	req := commands.Request{Actor: actor.Actor{Type: "system", ID: "channels", Workspace: workspace}, Workspace: workspace}
	_, err := identities.Handle(ctx, f.Commands, req, id, &r.IdentityKey, r)
	if taken(err) {
		r = channel.Report{Status: channel.Failed, Error: identities.Taken}
		_, err = identities.Handle(ctx, f.Commands, req, id, &r.IdentityKey, r)
	}
	if err == nil && r.IdentityKey != "" && r.IdentityKey != s.IdentityKey {
		err = f.Deliver(ctx, event.Number(id))
	}
	return r, err
}
