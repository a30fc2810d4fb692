package channel

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
)

// Settings are what a network has to know of a channel besides credentials.
type Settings struct {
	SenderID       string   `json:"senderId,omitempty" doc:"ID of the sender at the network"`
	AccountID      string   `json:"accountId,omitempty" doc:"ID of the account at the network"`
	AppName        string   `json:"appName,omitempty" doc:"Name of the app at the gateway"`
	BaseURL        string   `json:"baseUrl,omitempty" doc:"Base URL of the network"`
	Dialect        string   `json:"dialect,omitempty" doc:"Protocol of the network"`
	UserID         string   `json:"userId,omitempty" doc:"ID of the user at the network"`
	ClientID       string   `json:"clientId,omitempty" doc:"OAuth client ID"`
	AllowedOrigins []string `json:"allowedOrigins,omitempty" doc:"Origins that may show the widget"`
}

// Change is a change of Settings, as clients send it and as events have it. Null removes a setting.
type Change struct {
	SenderID       patch.Field[string]   `json:"senderId,omitzero"  doc:"The network's id of the sender: a number's id, or the number at an aggregator"`
	AccountID      patch.Field[string]   `json:"accountId,omitzero" doc:"The network's id of the account that has the templates"`
	AppName        patch.Field[string]   `json:"appName,omitzero"   maxLength:"100" doc:"The app's name at an aggregator"`
	BaseURL        patch.Field[string]   `json:"baseUrl,omitzero"   maxLength:"500" doc:"https address of the network's interface; absent: the deployment's"`
	Dialect        patch.Field[string]   `json:"dialect,omitzero"   enum:"cloud,envelope_v2,graph_v3,form_v1" doc:"Wire format of a chat channel; absent: cloud"`
	UserID         patch.Field[string]   `json:"userId,omitzero"    doc:"The network's id of the user who owns the channel"`
	ClientID       patch.Field[string]   `json:"clientId,omitzero"  maxLength:"500" doc:"Of our app at gmail or twitter, which renews access tokens"`
	AllowedOrigins patch.Field[[]string] `json:"allowedOrigins,omitzero" nullable:"true" maxItems:"50" doc:"Pages that may show the widget"`
}

// Sender returns what calls name a chat channel by on paths that channels share, "" for a channel of another type and one that no call
// names.
func (s State) Sender() string {
	switch set := s.Settings; {
	case s.Type != Chat:
		return ""
	case set.Dialect == formV1:
		return digits(set.SenderID)
	case set.Dialect != "" && set.Dialect != "cloud" && set.AppName != "": // an aggregator knows apps
		return "app:" + set.AppName
	default:
		return set.SenderID
	}
}

// What becomes of calls that bring messages of people to a channel.
const (
	Delivered   = "delivered"
	Unconfirmed = "unconfirmed" // they are kept until the sender is proven to be the channel's
	NoCalls     = "none"        // no call can name the channel
)

// Incoming returns what becomes of calls to the channel.
func (s State) Incoming() string {
	switch {
	case s.Type == Gmail, s.Type == Chat && s.Sender() == "":
		return NoCalls
	case s.Type == Chat && s.IdentityKey == "":
		return Unconfirmed
	}
	return Delivered
}

// formV1 is the dialect whose calls name the channel by its phone alone.
const formV1 = "form_v1"

// digits returns the digits of a text.
func digits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// on returns settings after the change.
func (c Change) on(s Settings) Settings {
	s.SenderID, s.AccountID, s.AppName = c.SenderID.Or(s.SenderID), c.AccountID.Or(s.AccountID), c.AppName.Or(s.AppName)
	s.BaseURL, s.Dialect, s.UserID = c.BaseURL.Or(s.BaseURL), c.Dialect.Or(s.Dialect), c.UserID.Or(s.UserID)
	s.ClientID, s.AllowedOrigins = c.ClientID.Or(s.ClientID), c.AllowedOrigins.Or(s.AllowedOrigins)
	return s
}

// differing returns the part of the change that changes something.
func (c Change) differing(s Settings) Change {
	c.SenderID, c.AccountID, c.AppName = patch.Differing(c.SenderID, s.SenderID), patch.Differing(c.AccountID, s.AccountID),
		patch.Differing(c.AppName, s.AppName)
	c.BaseURL, c.Dialect, c.UserID = patch.Differing(c.BaseURL, s.BaseURL), patch.Differing(c.Dialect, s.Dialect),
		patch.Differing(c.UserID, s.UserID)
	c.ClientID = patch.Differing(c.ClientID, s.ClientID)
	if slices.Equal(c.AllowedOrigins.Or(s.AllowedOrigins), s.AllowedOrigins) {
		c.AllowedOrigins = patch.Field[[]string]{}
	}
	return c
}

func (c Change) isZero() bool {
	return !c.SenderID.Present() && !c.AccountID.Present() && !c.AppName.Present() && !c.BaseURL.Present() && !c.Dialect.Present() &&
		!c.UserID.Present() &&
		!c.ClientID.Present() && !c.AllowedOrigins.Present()
}

// What settings and credentials may look like. Names are part of addresses, and credentials of headers.
var (
	name       = regexp.MustCompile(`^[0-9A-Za-z_+-]{1,64}$`)
	appName    = regexp.MustCompile(`^[^\pC]{1,100}$`)
	credential = regexp.MustCompile(`^[\x21-\x7e]+$`)
)

// check returns what is wrong with a change of settings.
func (c Change) check(before Settings) error {
	wrong := []error{
		fitting("settings.senderId", c.SenderID, name, "letters, digits, _ + and -, at most 64"),
		fitting("settings.accountId", c.AccountID, name, "letters, digits, _ + and -, at most 64"),
		fitting("settings.userId", c.UserID, name, "letters, digits, _ + and -, at most 64"),
		fitting("settings.clientId", c.ClientID, credential, "printable ASCII without spaces"),
		fitting("settings.appName", c.AppName, appName, "1 to 100 characters, without control characters"),
	}
	if c.BaseURL.State == patch.Given && place(c.BaseURL.Value) == "" {
		wrong = append(wrong, invalid("settings.baseUrl", "expected an address like https://chat.example.org/v1"))
	}
	if s := c.on(before); s.Dialect == formV1 && digits(s.SenderID) == "" {
		wrong = append(wrong, invalid("settings.senderId", "expected the phone, since calls of the dialect form_v1 name nothing else"))
	}
	for _, text := range c.AllowedOrigins.Value {
		if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme+"://"+u.Host != text || u.Scheme != "http" && u.Scheme != "https" {
			wrong = append(wrong, invalid("settings.allowedOrigins", "expected origins like https://shop.example.org"))
			break
		}
	}
	return fault.Join(wrong...)
}

func invalid(field, message string) error {
	return fault.Fields(fault.Field{Field: field, Message: message})
}

// fitting returns an error for a value that does not match.
func fitting(field string, f patch.Field[string], want *regexp.Regexp, message string) error {
	if f.State != patch.Given || want.MatchString(f.Value) {
		return nil
	}
	return invalid(field, message)
}

// place returns the scheme, host and port of a base URL: who gets the credentials. It returns "" for what is no base URL.
func place(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return ""
	}
	if u.Port() == "" {
		return "https://" + u.Hostname() + ":443"
	}
	return "https://" + u.Host
}

// Secrets are a channel's credentials, each sealed under the channel's own key.
type Secrets struct {
	APIKey         patch.Field[event.Secret] `json:"api_key,omitzero"`
	AccessToken    patch.Field[event.Secret] `json:"access_token,omitzero"`
	ConsumerSecret patch.Field[event.Secret] `json:"consumer_secret,omitzero"`
	AppSecret      patch.Field[event.Secret] `json:"app_secret,omitzero"`
	RefreshToken   patch.Field[event.Secret] `json:"refresh_token,omitzero"`
	ClientSecret   patch.Field[event.Secret] `json:"client_secret,omitzero"`
}

// names are the secrets' names in requests, in the order of [Secrets.each].
var names = []string{"apiKey", "accessToken", "settings.consumerSecret", "settings.appSecret", "settings.refreshToken",
	"settings.clientSecret"}

func (s *Secrets) each() []*patch.Field[event.Secret] {
	return []*patch.Field[event.Secret]{&s.APIKey, &s.AccessToken, &s.ConsumerSecret, &s.AppSecret, &s.RefreshToken, &s.ClientSecret}
}

// on returns the secrets after a change.
func (s Secrets) on(before Secrets) Secrets {
	for i, f := range before.each() {
		if change := *s.each()[i]; change.State == patch.Given {
			*f = change
		} else if change.Present() {
			*f = patch.Field[event.Secret]{}
		}
	}
	return before
}

// Input has the parts of a channel's body that say how the network is reached.
type Input struct {
	APIKey      patch.Field[string] `json:"apiKey,omitzero" maxLength:"4096"      doc:"Never shown again: of a chat provider, or the token of a bot"`
	AccessToken patch.Field[string] `json:"accessToken,omitzero" maxLength:"4096" doc:"Never shown again: OAuth token of gmail and twitter"`
	Settings    Given               `json:"settings,omitzero" doc:"Settings of the network"`
}

// Given are settings as a client sends them.
type Given struct {
	Change

	ConsumerSecret patch.Field[string] `json:"consumerSecret,omitzero" maxLength:"4096" doc:"Never shown again: with it twitter signs what it sends"`
	AppSecret      patch.Field[string] `json:"appSecret,omitzero" maxLength:"4096"      doc:"Never shown again: with it a chat network signs what it sends"`
	RefreshToken   patch.Field[string] `json:"refreshToken,omitzero" maxLength:"4096"   doc:"Never shown again: by it gmail and twitter give another access token once one has ended"`
	ClientSecret   patch.Field[string] `json:"clientSecret,omitzero" maxLength:"4096"   doc:"Never shown again: of our app at gmail or twitter"`
}

// SecretSettings returns the names of settings that are set and never shown.
func (s Secrets) SecretSettings() []string { return s.named(patch.Given) }

// ClearedSettings returns the names of such settings that a change removes.
func (s Secrets) ClearedSettings() []string { return s.named(patch.Null) }

func (s Secrets) named(state patch.State) []string {
	all := []string{}
	for i, f := range s.each() {
		if name, is := strings.CutPrefix(names[i], "settings."); is && f.State == state {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Renew keeps another access token, and another refresh token where there is one.
type Renew struct{ ID, AccessToken, RefreshToken string }

// Decide seals them.
func (c Renew) Decide(s State) ([]event.Event[State], error) {
	if s.Type == "" {
		return nil, ErrNotFound
	}
	e := Edited{Secrets: Secrets{AccessToken: patch.Set(event.NewSecret(Subjects.Of(c.ID), c.AccessToken))}}
	if c.RefreshToken != "" {
		e.RefreshToken = patch.Set(event.NewSecret(Subjects.Of(c.ID), c.RefreshToken))
	}
	return []event.Event[State]{e}, nil
}

// Stars are sent in place of a secret to keep it.
const Stars = "********"

// secrets returns the change of secrets, or what is wrong with it. A changed place of the network wants all of them again: who may change a
// channel could otherwise send them to a server of their own.
func (in Input) secrets(id string, before State) (s Secrets, err error) {
	var wrong []error
	base, changed := in.Settings.BaseURL, false
	if base.Present() {
		changed = place(base.Value) != place(before.Settings.BaseURL)
	}
	for i, given := range []patch.Field[string]{in.APIKey, in.AccessToken, in.Settings.ConsumerSecret, in.Settings.AppSecret,
		in.Settings.RefreshToken, in.Settings.ClientSecret} {
		into, stored := s.each()[i], before.each()[i].State == patch.Given
		switch {
		case given.Value == Stars && !stored:
			wrong = append(wrong, invalid(names[i], "there is no value to keep"))
		case (given.Value == Stars || !given.Present()) && stored && changed:
			wrong = append(wrong, invalid(names[i], "must be given again, since baseUrl names another server"))
		case given.Value == Stars, !given.Present(), !stored && given.Value == "":
		case given.Value == "":
			*into = patch.Clear[event.Secret]()
		case !credential.MatchString(given.Value):
			wrong = append(wrong, invalid(names[i], "expected printable ASCII without spaces"))
		default:
			*into = patch.Set(event.NewSecret(Subjects.Of(id), given.Value))
		}
	}
	return s, fault.Join(wrong...)
}
