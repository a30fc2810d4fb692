package channel

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
)

// Settings are the settings of a channel's network besides credentials.
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

// Change is a change of Settings, in requests and in events. Null removes a setting.
type Change struct {
	SenderID       patch.Field[string]   `json:"senderId,omitzero"  doc:"ID of the sender at the network: the ID of a phone number, or the number itself at an aggregator"`
	AccountID      patch.Field[string]   `json:"accountId,omitzero" doc:"ID of the account with the templates at the network"`
	AppName        patch.Field[string]   `json:"appName,omitzero"   maxLength:"100" doc:"Name of the app at an aggregator"`
	BaseURL        patch.Field[string]   `json:"baseUrl,omitzero"   maxLength:"500" doc:"https URL of the network's API; absent: the deployment's default"`
	Dialect        patch.Field[string]   `json:"dialect,omitzero"   enum:"cloud,envelope_v2,graph_v3,form_v1" doc:"Wire format of a chat channel; absent: cloud"`
	UserID         patch.Field[string]   `json:"userId,omitzero"    doc:"ID of the channel's owner at the network"`
	ClientID       patch.Field[string]   `json:"clientId,omitzero"  maxLength:"500" doc:"OAuth client ID at gmail or twitter, used to renew access tokens"`
	AllowedOrigins patch.Field[[]string] `json:"allowedOrigins,omitzero" nullable:"true" maxItems:"50" doc:"Origins of pages that may show the widget"`
}

// Sender returns the name of a chat channel in webhook calls on shared paths, or "".
func (s State) Sender() string {
	switch set := s.Settings; {
	case s.Type != Chat:
		return ""
	case set.Dialect == formV1:
		return network.Digits(set.SenderID)
	case set.Dialect != "" && set.Dialect != "cloud" && set.AppName != "": // only aggregators have apps
		return "app:" + set.AppName
	default:
		return set.SenderID
	}
}

// The handling of calls with messages to a channel.
const (
	delivered   = "delivered"
	Unconfirmed = "unconfirmed" // calls are stored until the channel's sender is verified
	noCalls     = "none"        // no call can name the channel
)

// Incoming returns how calls to the channel are handled.
func (s State) Incoming() string {
	switch {
	case s.Type == Gmail, s.Type == Chat && s.Sender() == "":
		return noCalls
	case s.Type == Chat && s.IdentityKey == "":
		return Unconfirmed
	}
	return delivered
}

// formV1 is a dialect with calls that identify the channel only by its phone.
const formV1 = "form_v1"

// on returns settings after the change.
func (c Change) on(s Settings) Settings {
	s.SenderID, s.AccountID, s.AppName = c.SenderID.Or(s.SenderID), c.AccountID.Or(s.AccountID), c.AppName.Or(s.AppName)
	s.BaseURL, s.Dialect, s.UserID = c.BaseURL.Or(s.BaseURL), c.Dialect.Or(s.Dialect), c.UserID.Or(s.UserID)
	s.ClientID, s.AllowedOrigins = c.ClientID.Or(s.ClientID), c.AllowedOrigins.Or(s.AllowedOrigins)
	return s
}

// differing returns the part of the change that differs from the settings.
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

// Valid settings and credentials. Names are parts of URLs, and credentials parts of headers.
var (
	name       = regexp.MustCompile(`^[0-9A-Za-z_+-]{1,64}$`)
	appName    = regexp.MustCompile(`^[^\pC]{1,100}$`)
	credential = regexp.MustCompile(`^[\x21-\x7e]+$`)
)

// check returns a change of settings with normalised values, and its faults.
func (c Change) check(before Settings) (Change, error) {
	allowed, invalid := c.AllowedOrigins.With(origins)
	c.AllowedOrigins = allowed
	wrong := []error{
		fitting("settings.senderId", c.SenderID, name, "letters, digits, _ + and -, at most 64"),
		fitting("settings.accountId", c.AccountID, name, "letters, digits, _ + and -, at most 64"),
		fitting("settings.userId", c.UserID, name, "letters, digits, _ + and -, at most 64"),
		fitting("settings.clientId", c.ClientID, credential, "printable ASCII without spaces"),
		fitting("settings.appName", c.AppName, appName, "1 to 100 characters, without control characters"),
	}
	if c.BaseURL.State == patch.Given && place(c.BaseURL.Value) == "" {
		wrong = append(wrong, fault.Wrong("settings.baseUrl", "expected an address like https://chat.example.org/v1"))
	}
	if s := c.on(before); s.Dialect == formV1 && network.Digits(s.SenderID) == "" {
		wrong = append(wrong, fault.Wrong("settings.senderId", "expected the phone: calls of the dialect form_v1 name only the phone"))
	}
	return c, fault.Join(append(wrong, invalid)...)
}

// origins returns origins without the slash at their ends.
func origins(texts []string) ([]string, error) {
	texts = slices.Clone(texts)
	var wrong []error
	for i, text := range texts {
		texts[i] = strings.TrimSuffix(text, "/")
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != texts[i] || u.Scheme != "http" && u.Scheme != "https" {
			wrong = append(wrong, fault.Wrong(fmt.Sprintf("settings.allowedOrigins[%d]", i), "expected origins like https://shop.example.org"))
		}
	}
	return texts, fault.Join(wrong...)
}

// fitting returns an error for a value that does not match.
func fitting(field string, f patch.Field[string], want *regexp.Regexp, message string) error {
	if f.State != patch.Given || want.MatchString(f.Value) {
		return nil
	}
	return fault.Wrong(field, message)
}

// place returns the scheme, host and port of a base URL, or "" for an invalid URL. This server receives the credentials.
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

// Secrets are a channel's credentials, sealed with the channel's key.
type Secrets struct {
	APIKey         patch.Field[event.Secret] `json:"api_key,omitzero"`
	AccessToken    patch.Field[event.Secret] `json:"access_token,omitzero"`
	ConsumerSecret patch.Field[event.Secret] `json:"consumer_secret,omitzero"`
	AppSecret      patch.Field[event.Secret] `json:"app_secret,omitzero"`
	RefreshToken   patch.Field[event.Secret] `json:"refresh_token,omitzero"`
	ClientSecret   patch.Field[event.Secret] `json:"client_secret,omitzero"`
}

// names are the field names of the secrets in requests, in the order of [Secrets.each].
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

// Input has the parts of a channel's body for reaching the network.
type Input struct {
	APIKey      patch.Field[string] `json:"apiKey,omitzero" maxLength:"4096"      doc:"API key of a chat provider, or token of a bot; never shown again"`
	AccessToken patch.Field[string] `json:"accessToken,omitzero" maxLength:"4096" doc:"OAuth access token of gmail or twitter; never shown again"`
	Settings    given               `json:"settings,omitzero" doc:"Settings of the network"`
}

// given are settings as sent by a client.
type given struct {
	Change

	ConsumerSecret patch.Field[string] `json:"consumerSecret,omitzero" maxLength:"4096" doc:"Secret with which twitter signs its calls; never shown again"`
	AppSecret      patch.Field[string] `json:"appSecret,omitzero" maxLength:"4096"      doc:"Secret with which a chat network signs its calls. Without it and without one of the operator, they are refused. Never shown again"`
	RefreshToken   patch.Field[string] `json:"refreshToken,omitzero" maxLength:"4096"   doc:"OAuth refresh token of gmail or twitter; never shown again"`
	ClientSecret   patch.Field[string] `json:"clientSecret,omitzero" maxLength:"4096"   doc:"OAuth client secret at gmail or twitter; never shown again"`
}

// SecretSettings returns the names of the secret settings that are set.
func (s Secrets) SecretSettings() []string { return s.named(patch.Given) }

// ClearedSettings returns the names of the secret settings that a change removes.
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

// Renew stores a new access token, and a new refresh token if there is one.
type Renew struct{ ID, AccessToken, RefreshToken string }

// Decide seals the tokens.
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

// stars is the value by which a change keeps the stored secret.
const stars = "********"

// secrets returns the change of secrets, or its faults. A change of the server requires all secrets in the request. Otherwise a user who
// may edit the channel could send the stored secrets to another server.
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
		case given.Value == stars && !stored:
			wrong = append(wrong, fault.Wrong(names[i], "there is no value to keep"))
		case (given.Value == stars || !given.Present()) && stored && changed:
			wrong = append(wrong, fault.Wrong(names[i], "must be given again: baseUrl names another server"))
		case given.Value == stars, !given.Present(), !stored && given.Value == "":
		case given.Value == "":
			*into = patch.Clear[event.Secret]()
		case !credential.MatchString(given.Value):
			wrong = append(wrong, fault.Wrong(names[i], "expected printable ASCII without spaces"))
		default:
			*into = patch.Set(event.NewSecret(Subjects.Of(id), given.Value))
		}
	}
	return s, fault.Join(wrong...)
}
