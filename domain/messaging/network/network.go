// Package network has what a channel asks of its network, and what the network says: the words that commands and the networks' adapters
// share.
package network

import (
	"fmt"
	"time"

	"bahi/domain/fault"
)

// Account is a channel as its network knows it, with its credentials in clear.
type Account struct {
	Channel int64 // our id
	Type    string
	Dialect string // of the type chat
	BaseURL string // of this channel; empty: the deployment's

	APIKey, AccessToken         string
	SenderID, AppName, ChatName string // as chat networks name the sender; ChatName is the channel's name
	AccountID                   string // which has the templates

	RefreshToken, ClientID, ClientSecret string // by which another access token is had; empty: by none

	Hook *Hook // where the network is to call; nil: it is not told
}

// Hook is an address of ours that a network calls.
type Hook struct {
	URL   string // empty: networks cannot reach us
	Token string // by which the network proves itself
}

// Format keeps credentials out of logs and messages, for every verb.
func (a Account) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "account of channel %d", a.Channel)
}

// Renewed is what a network gives for a refresh token.
type Renewed struct {
	AccessToken  string
	RefreshToken string // empty: the old one stays
}

// Message is a text or an image for one person.
type Message struct {
	ID      string // ours, which receipts bear where the network can repeat it
	To      string // a phone without its plus sign, an email address, or the network's id of a person
	Text    string // of an image: what is written below it
	Image   string // URL; empty: there is none
	Picture []byte // what Image leads to, if it is ours
	Subject string // of a mail

	As *string // where the adapter puts the id by which the network knows the person, if it tells; nil: nobody asks

	// the network's, to which it belongs, and which the adapter replaces by the one to which it went; empty: none is known, nil: nobody asks
	Thread *string

	Template *Filled // instead of Text and Image; nil: none
}

// Health is what a network says of an account.
type Health struct {
	Identity       string // the network's id of the sender; empty: it has none
	Proven         bool   // the deployment's own network took the account's credentials for it
	PhoneNumber    string
	Quality        string // green, yellow, red or unknown
	MessagingLimit string
	CanSend        string // available, limited or blocked
}

// Reason says what a failure means for the channel, and for what was to be sent. Its values are stored.
type Reason string

// The reasons. Only [Unknown] leaves open whether a message was sent.
const (
	Refused           Reason = "refused"       // for a reason that we do not know, or that no other try mends
	Credentials       Reason = "credentials"   // the token or its permissions
	Restricted        Reason = "restricted"    // the network has blocked the account, for now or for ever
	Throttled         Reason = "throttled"     // more than the account may send
	WindowClosed      Reason = "window_closed" // the person has not written for too long
	Recipient         Reason = "recipient"     // the person cannot be reached
	Content           Reason = "content"       // the message is not as the network wants it
	Suspended         Reason = "suspended"     // the network has paused or disabled the template
	Temporary         Reason = "temporary"     // the network says that another try may succeed
	Unreached         Reason = "unreached"     // there was no connection
	Unknown           Reason = "unknown"       // it broke off, took too long, or is not what the network says
	Unconfigured      Reason = "unconfigured"  // a credential or setting is missing
	HealthUnsupported Reason = "silent"        // the network says nothing about accounts
	CampaignStopped   Reason = "held"          // its campaign has stopped, and the network was not called
	Lost              Reason = "lost"          // nothing was ever heard of it
	PassedOver        Reason = "passed_over"   // its campaign has passed over the contact, and the network was not called again
	Unhooked          Reason = "unhooked"      // the network cannot call us
	Unfetched         Reason = "unfetched"     // the image that was to be sent is not to be had, and the network was not called
)

// meanings are our words for the reasons. The networks' own words may name people, and are kept with the message alone.
var meanings = map[Reason]string{ //nolint:gosec // G101: none is a credential
	Refused: "The network refused the request", Credentials: "The network refused the credentials",
	Restricted:   "The network has restricted the account",
	Throttled:    "The network asks to send more slowly",
	WindowClosed: "The person has not written in the last 24 hours: only templates can be sent",
	Recipient:    "The network cannot reach the recipient", Content: "The network does not accept the message",
	Suspended: "The network has paused or disabled the template",
	Temporary: "The network is not available", Unreached: "The network cannot be reached",
	Unknown: "The network's answer is missing or cannot be understood", Unconfigured: "A credential or setting of the channel is missing",
	HealthUnsupported: "No message was sent yet", CampaignStopped: "The campaign has stopped", Lost: "Nothing was heard of it",
	PassedOver: "The campaign has passed over the contact",
	Unhooked:   "The network calls public https addresses only, and this server has none (BAHI_PUBLIC_URL)",
	Unfetched:  "The image cannot be fetched from its address",
}

// Failure is what went wrong between us and a network.
type Failure struct {
	Reason  Reason
	Code    int    // the network's; 0: none
	Title   string // in the network's words, without our credentials
	Details string // the same
	After   time.Duration
}

// PairLimit is a chat network's code for messages to one person that follow each other too closely (CONTRACT.md 3.1.3).
const PairLimit = 131056

// Error returns our words. They name no person, and may be logged and shown.
func (f *Failure) Error() string {
	if f.Code == 0 {
		return meanings[f.Reason]
	}
	return fmt.Sprintf("%s (%d)", meanings[f.Reason], f.Code)
}

// refusals are the kinds and codes of what a client is told (CONTRACT.md 3.1.3, D44, N12).
var refusals = map[Reason]struct {
	kind fault.Kind
	code string
}{
	Refused: {fault.Upstream, "provider_refused"}, Credentials: {fault.Upstream, "provider_auth"},
	Restricted: {fault.Upstream, "provider_auth"},
	Throttled:  {fault.TooMany, "provider_rate_limited"}, WindowClosed: {fault.Conflict, "reply_window_closed"},
	Recipient: {fault.Invalid, "recipient_failed"},
	Content:   {fault.Invalid, "provider_refused"}, Suspended: {fault.Invalid, "provider_refused"},
	Temporary: {fault.Unavailable, "provider_unavailable"}, Unreached: {fault.Unavailable, "provider_unavailable"},
	Unhooked: {fault.Unavailable, "provider_not_configured"}, Unknown: {fault.Unavailable, "provider_unknown"},
	Unconfigured: {fault.Unavailable, "provider_not_configured"}, HealthUnsupported: {fault.Unavailable, "provider_unavailable"},
	Unfetched: {fault.Unavailable, "provider_unavailable"}, CampaignStopped: {fault.Unavailable, "campaign_stopped"},
	Lost: {fault.Unavailable, "provider_unknown"}, PassedOver: {fault.Unavailable, "campaign_passed_over"},
}

// Fault returns what a client is told.
func (f *Failure) Fault() *fault.Error {
	r := refusals[f.Reason]
	return &fault.Error{Kind: r.kind, Detail: f.Error(), Code: r.code, RetryAfter: int(f.After.Seconds())}
}

// Word returns the code that a message has after the failure (CONTRACT.md N1).
func (r Reason) Word() string {
	if r == Unknown || r == Lost {
		return string(Unknown)
	}
	return refusals[r].code
}

// Retryable reports whether the network was not called, or refused for now only: the same request may be tried again.
func (r Reason) Retryable() bool {
	return r == Throttled || r == Unreached || r == Temporary || r == Unconfigured || r == Unfetched
}

// Stops reports whether a campaign has to stop, for a while at least: the reason is not the recipient's, who gets the message later.
func (r Reason) Stops() bool {
	return r.Retryable() || r == Credentials || r == Restricted || r == Suspended || r == CampaignStopped
}
