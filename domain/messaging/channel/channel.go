// Package channel is a workspace's way to write to people and to hear from them: an account at a network. The log has its credentials only
// under the channel's own key, which ends with the channel.
package channel

import (
	"cmp"
	"reflect"

	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/domain/person"
)

// Kind registers the events of streams channel-<number>. Stored names are permanent.
var Kind = event.NewKind("channel",
	event.Of[Created]("ChannelCreated", 1),
	event.Of[Edited]("ChannelEdited", 1),
	event.Of[Reported]("ChannelReported", 1),
	event.Of[Confirmed]("ChannelConfirmed", 1),
	event.Of[Deleted]("ChannelDeleted", 1),
).Sealing(Subjects)

type identity struct{}

// Identities are the networks' ids of senders: each belongs to one channel of the deployment, since what comes in finds its workspace by
// it (CONTRACT.md N4). A stream is channelidentity-<hash>.
var Identities = claims.New[identity]("channelidentity", "ChannelIdentityClaimed", "ChannelIdentityReleased")

// Subjects are the channels: each is the subject of its own stream.
const Subjects event.SubjectType = "channel"

// ErrNotFound also answers those who may not know that the channel exists.
var ErrNotFound = fault.New(fault.NotFound, "Channel not found")

// The types.
const (
	Chat     = "chat"
	Gmail    = "gmail"
	Twitter  = "twitter"
	Web      = "web"
	Telegram = "telegram"
)

// The statuses, by what the network last said.
const (
	Connected    = "connected"
	Disconnected = "disconnected" // it has said nothing, or could not be reached
	Failed       = "error"        // it refused
)

// State is what decisions and answers need. Its secrets are sealed.
type State struct {
	Secrets

	Name        string
	Type        string // empty: there is no channel
	Settings    Settings
	Status      string
	LastError   string // in our words; empty: none
	IdentityKey string // keyed hash, which names the claim of the identity; empty: none is proven
	GivenKey    string // hash of the sender that an operator gave the channel; empty: none
	Key         string // by which a page of ours shows the widget; empty: it is no widget's
}

// Created records a new channel. Nobody has asked its network yet.
type Created struct {
	Secrets

	Name     string `json:"name"`
	Type     string `json:"type"`
	Settings Change `json:"settings,omitzero"`
	Key      string `json:"key,omitempty"` // of a widget; no secret
}

// Edited records a change of what it names.
type Edited struct {
	Secrets

	Name     patch.Field[string] `json:"name,omitzero"`
	Settings Change              `json:"settings,omitzero"`
}

// Reported records what the network says of the account now.
type Reported struct {
	Status      string `json:"status"`
	Error       string `json:"error,omitempty"`
	IdentityKey string `json:"identity_key,omitempty"` // of the sender as whom the network knows the account
}

// Confirmed records that an operator gave the channel the sender that its settings name.
type Confirmed struct {
	IdentityKey string `json:"identity_key"`
}

// Deleted records that the channel is gone. It is removed from all bots that use it, and its credentials are to be forgotten.
type Deleted struct{}

// Evolve begins the channel.
func (e Created) Evolve(State) State {
	return State{Name: e.Name, Type: e.Type, Settings: e.Settings.on(Settings{}), Secrets: e.Secrets, Status: Disconnected, Key: e.Key}
}

// Evolve changes what is named.
func (e Edited) Evolve(s State) State {
	s.Name, s.Settings, s.Secrets = e.Name.Or(s.Name), e.Settings.on(s.Settings), e.on(s.Secrets)
	return s
}

// Evolve keeps what the network said.
func (e Reported) Evolve(s State) State {
	s.Status, s.LastError, s.IdentityKey = e.Status, e.Error, e.IdentityKey
	return s
}

// Evolve gives the channel the sender.
func (e Confirmed) Evolve(s State) State {
	s.GivenKey, s.IdentityKey = e.IdentityKey, e.IdentityKey
	return s
}

// Evolve ends it.
func (Deleted) Evolve(State) State { return State{} }

// Erases implements [event.ErasureTrigger]. No table has a secret.
func (Deleted) Erases(id string) event.Erasure {
	return event.Erasure{Subject: Subjects.Of(id), Unlisted: true}
}

// Create makes a channel.
type Create struct {
	Input

	ID   string `json:"-"`
	Name string `json:"name" maxLength:"400" doc:"Name of the channel"`
	Type string `json:"type" enum:"chat,gmail,twitter,web,telegram" doc:"Network of the channel"`

	Found    Report `json:"-"` // what the network says of it
	Key      string `json:"-"` // of a widget
	GivenKey string `json:"-"` // hash of its sender, if an operator makes the channel
}

// Decide puts the values in order.
func (c Create) Decide(State) ([]event.Event[State], error) {
	name, wrong := person.Name("name", c.Name)
	secrets, err := c.secrets(c.ID, State{})
	if err := fault.Join(wrong, err, c.Settings.check(Settings{})); err != nil {
		return nil, err
	}
	created := Created{Name: name, Type: c.Type, Settings: c.Settings.differing(Settings{}), Secrets: secrets}
	if c.Type == Web {
		created.Key = c.Key
	}
	return report([]event.Event[State]{created}, created.Evolve(State{}), c.GivenKey, c.Found)
}

// Edit changes what it names of a channel.
type Edit struct {
	Input

	ID   string              `json:"-"`
	Name patch.Field[string] `json:"name,omitzero" nullable:"false" maxLength:"400" doc:"Name of the channel"`
	Type patch.Field[string] `json:"type,omitzero" nullable:"false" doc:"Cannot change"`

	Found    Report `json:"-"` // what the network says of the channel after it
	GivenKey string `json:"-"` // hash of its sender after it, if an operator changes that
}

// Decide changes what is named and differs. Whether a secret differs cannot be told: both are sealed.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Type == "" {
		return nil, ErrNotFound
	}
	name, wrong := c.Name.With(func(text string) (string, error) { return person.Name("name", text) })
	if c.Type.Or(s.Type) != s.Type {
		wrong = fault.Join(wrong, invalid("type", "cannot change"))
	}
	secrets, err := c.secrets(c.ID, s)
	if err := fault.Join(wrong, err, c.Settings.check(s.Settings)); err != nil {
		return nil, err
	}
	var events []event.Event[State]
	e := Edited{Name: patch.Differing(name, s.Name), Settings: c.Settings.differing(s.Settings), Secrets: secrets}
	if e.Name.Present() || !e.Settings.isZero() || e.Secrets != (Secrets{}) {
		events, s = append(events, e), e.Evolve(s)
	}
	return report(events, s, c.GivenKey, c.Found)
}

// report adds to events after which a channel is s the sender that an operator gave it, and what the network said.
func report(events []event.Event[State], s State, given string, found Report) ([]event.Event[State], error) {
	if given != "" && given != s.GivenKey {
		e := Confirmed{IdentityKey: given}
		events, s = append(events, e), e.Evolve(s)
	}
	reported, err := found.Decide(s)
	return append(events, reported...), err
}

// ErrNoSender refuses to confirm a channel that no call names.
var ErrNoSender = fault.New(fault.Conflict, "The channel's settings name no sender")

// Confirm gives a channel the sender that its settings name, by an operator's word.
type Confirm struct {
	Sender      string // that the operator looked at
	IdentityKey string
}

// Decide refuses a channel without a sender, and one that another sender was set for meanwhile.
func (c Confirm) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Type == "":
		return nil, ErrNotFound
	case s.Sender() == "":
		return nil, ErrNoSender
	case s.Sender() != c.Sender:
		return nil, fault.New(fault.Conflict, "The channel's sender was changed meanwhile, try again")
	case s.GivenKey == c.IdentityKey && s.IdentityKey == c.IdentityKey:
		return nil, nil
	}
	return []event.Event[State]{Confirmed{IdentityKey: c.IdentityKey}}, nil
}

// Report notes what the network says of the account.
type Report struct {
	Status      string // empty: it was not asked
	Error       string
	IdentityKey string
}

// Decide notes what differs.
func (c Report) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Type == "":
		return nil, ErrNotFound
	case c.Status == "", c == Report{s.Status, s.LastError, s.IdentityKey}:
		return nil, nil
	}
	return []event.Event[State]{Reported(c)}, nil
}

// Delete ends a channel.
type Delete struct{}

// Decide refuses a channel that is not there.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Type == "" {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}

// StatusAfter returns the status that follows from a call of the network, and our words for what went wrong. A failure that is about a
// message or a moment says nothing of the channel: StatusAfter then returns its status as it was.
func (s State) StatusAfter(failed *network.Failure) (status, words string) {
	if failed == nil {
		return Connected, ""
	}
	switch failed.Reason {
	case network.Credentials, network.Restricted, network.Refused:
		return Failed, failed.Error()
	case network.Temporary, network.Unreached, network.Unknown, network.Unconfigured, network.Unhooked:
		return Disconnected, failed.Error()
	case network.HealthUnsupported:
		return s.Status, cmp.Or(s.LastError, failed.Error())
	default:
		return s.Status, s.LastError
	}
}

// SameAccount reports whether the network sees the same account before and after a change.
func (s State) SameAccount(t State) bool {
	a, b := s.Settings, t.Settings
	a.AllowedOrigins, b.AllowedOrigins = nil, nil
	return s.Secrets == t.Secrets && reflect.DeepEqual(a, b)
}

// SameSender reports whether a proven identity is still the account's, as far as the settings tell.
func (s State) SameSender(t State) bool {
	a, b := s.Settings, t.Settings
	return a.SenderID == b.SenderID && a.AppName == b.AppName && a.UserID == b.UserID && a.Dialect == b.Dialect && s.APIKey == t.APIKey &&
		s.AccessToken == t.AccessToken
}
