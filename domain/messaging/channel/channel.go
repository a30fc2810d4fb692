// Package channel is a workspace's account at a messaging network. The channel's key seals the credentials and is
// destroyed with the channel.
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

// Identities are the claims of the networks' ids of senders. Each id belongs to one channel of the deployment, because it determines the
// workspace of incoming messages (CONTRACT.md N4). The streams are channelidentity-<hash>.
var Identities = claims.New[identity]("channelidentity", "ChannelIdentityClaimed", "ChannelIdentityReleased")

// Subjects are the channels: each is the subject of its own stream.
const Subjects event.SubjectType = "channel"

// ErrNotFound reports an unknown channel. Callers without access to the channel receive it too.
var ErrNotFound = fault.New(fault.NotFound, "Channel not found")

// The types of channels.
const (
	Chat     = "chat"
	Gmail    = "gmail"
	Twitter  = "twitter"
	Web      = "web"
	Telegram = "telegram"
)

// The statuses, as the network last reported.
const (
	Connected    = "connected"
	Disconnected = "disconnected" // no report yet, or the network was unreachable
	Failed       = "error"        // the network refused the request
)

// State is the state that decisions and responses require. Its secrets are sealed.
type State struct {
	Secrets

	Name        string
	Type        string // empty: the channel does not exist
	Settings    Settings
	Status      string
	LastError   string // a text of Bahi; empty: none
	IdentityKey string // keyed hash, which identifies the claim of the identity; empty: none is verified
	GivenKey    string // hash of the sender that an operator assigned; empty: none
	Key         string // public key of a widget; empty: the channel is no widget
}

// Created records a new channel before the first call of its network.
type Created struct {
	Secrets

	Name     string `json:"name"`
	Type     string `json:"type"`
	Settings Change `json:"settings,omitzero"`
	Key      string `json:"key,omitempty"` // public key of a widget
}

// Edited records the changed fields.
type Edited struct {
	Secrets

	Name     patch.Field[string] `json:"name,omitzero"`
	Settings Change              `json:"settings,omitzero"`
}

// Reported records the network's report about the account.
type Reported struct {
	Status      string `json:"status"`
	Error       string `json:"error,omitempty"`
	IdentityKey string `json:"identity_key,omitempty"` // keyed hash of the sender that the network reported
}

// Confirmed records that an operator assigned the sender in the settings to the channel.
type Confirmed struct {
	IdentityKey string `json:"identity_key"`
}

// Deleted records the deletion of the channel. It is removed from all bots that use it, and its credentials are erased.
type Deleted struct{}

// Evolve creates the channel.
func (e Created) Evolve(State) State {
	return State{Name: e.Name, Type: e.Type, Settings: e.Settings.on(Settings{}), Secrets: e.Secrets, Status: Disconnected, Key: e.Key}
}

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Name, s.Settings, s.Secrets = e.Name.Or(s.Name), e.Settings.on(s.Settings), e.on(s.Secrets)
	return s
}

// Evolve sets the report.
func (e Reported) Evolve(s State) State {
	s.Status, s.LastError, s.IdentityKey = e.Status, e.Error, e.IdentityKey
	return s
}

// Evolve assigns the sender.
func (e Confirmed) Evolve(s State) State {
	s.GivenKey, s.IdentityKey = e.IdentityKey, e.IdentityKey
	return s
}

// Evolve removes the channel.
func (Deleted) Evolve(State) State { return State{} }

// Erases implements [event.ErasureTrigger]. No table has a secret.
func (Deleted) Erases(id string) event.Erasure {
	return event.Erasure{Subject: Subjects.Of(id), Unlisted: true}
}

// Create creates a channel.
type Create struct {
	Input

	ID   string `json:"-"`
	Name string `json:"name" maxLength:"400" doc:"Name of the channel"`
	Type string `json:"type" enum:"chat,gmail,twitter,web,telegram" doc:"Network of the channel"`

	Found    Report `json:"-"` // report of the network
	Key      string `json:"-"` // key of a widget
	GivenKey string `json:"-"` // hash of its sender, if an operator creates the channel
}

// Decide normalises the values.
func (c Create) Decide(State) ([]event.Event[State], error) {
	name, wrong := person.Name("name", c.Name)
	secrets, err := c.secrets(c.ID, State{})
	settings, invalid := c.Settings.check(Settings{})
	if err := fault.Join(wrong, err, invalid); err != nil {
		return nil, err
	}
	created := Created{Name: name, Type: c.Type, Settings: settings.differing(Settings{}), Secrets: secrets}
	if c.Type == Web {
		created.Key = c.Key
	}
	return report([]event.Event[State]{created}, created.Evolve(State{}), c.GivenKey, c.Found)
}

// Edit changes the fields of a channel that it contains.
type Edit struct {
	Input

	ID   string              `json:"-"`
	Name patch.Field[string] `json:"name,omitzero" nullable:"false" maxLength:"400" doc:"Name of the channel"`
	Type patch.Field[string] `json:"type,omitzero" nullable:"false" doc:"Cannot change"`

	Found    Report `json:"-"` // report of the network after the change
	GivenKey string `json:"-"` // hash of its sender after the change, if an operator makes it
}

// Decide records the fields that change. Sealed secrets cannot be compared, so a given secret counts as changed.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Type == "" {
		return nil, ErrNotFound
	}
	name, wrong := c.Name.With(func(text string) (string, error) { return person.Name("name", text) })
	if c.Type.Or(s.Type) != s.Type {
		wrong = fault.Join(wrong, fault.Wrong("type", "cannot change"))
	}
	secrets, err := c.secrets(c.ID, s)
	settings, invalid := c.Settings.check(s.Settings)
	if err := fault.Join(wrong, err, invalid); err != nil {
		return nil, err
	}
	var events []event.Event[State]
	e := Edited{Name: patch.Differing(name, s.Name), Settings: settings.differing(s.Settings), Secrets: secrets}
	if e.Name.Present() || !e.Settings.isZero() || e.Secrets != (Secrets{}) {
		events, s = append(events, e), e.Evolve(s)
	}
	return report(events, s, c.GivenKey, c.Found)
}

// report appends to events the sender that an operator assigned, and the network's report. s is the state after events.
func report(events []event.Event[State], s State, given string, found Report) ([]event.Event[State], error) {
	if given != "" && given != s.GivenKey {
		e := Confirmed{IdentityKey: given}
		events, s = append(events, e), e.Evolve(s)
	}
	reported, err := found.Decide(s)
	return append(events, reported...), err
}

// ErrNoSender reports that a channel to confirm has no sender.
var ErrNoSender = fault.New(fault.Conflict, "The channel's settings name no sender")

// Confirm assigns the sender in the settings to the channel. Only operators use it.
type Confirm struct {
	Sender      string // the sender that the operator has checked
	IdentityKey string
}

// Decide refuses a channel without a sender, and a channel with a sender that changed meanwhile.
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

// Report records the network's report about the account.
type Report struct {
	Status      string // empty: no report
	Error       string
	IdentityKey string
}

// Decide records the fields that change.
func (c Report) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Type == "":
		return nil, ErrNotFound
	case c.Status == "", c == Report{s.Status, s.LastError, s.IdentityKey}:
		return nil, nil
	}
	return []event.Event[State]{Reported(c)}, nil
}

// Delete deletes a channel.
type Delete struct{}

// Decide returns an error if the channel does not exist.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Type == "" {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}

// StatusAfter returns the channel's status after a call of the network, and Bahi's text of the error. A failure that is temporary or
// concerns only the message does not change the status.
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

// SameAccount reports whether both states have the same account of the network.
func (s State) SameAccount(t State) bool {
	a, b := s.Settings, t.Settings
	a.AllowedOrigins, b.AllowedOrigins = nil, nil
	return s.Secrets == t.Secrets && reflect.DeepEqual(a, b)
}

// SameSender reports whether a verified identity stays valid after a change, judged by the settings.
func (s State) SameSender(t State) bool {
	a, b := s.Settings, t.Settings
	return a.SenderID == b.SenderID && a.AppName == b.AppName && a.UserID == b.UserID && a.Dialect == b.Dialect && s.APIKey == t.APIKey &&
		s.AccessToken == t.AccessToken
}
