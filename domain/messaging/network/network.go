// Package network has the requests to a channel's network and the results. Commands and the networks' adapters use them.
package network

import (
	"fmt"
	"time"

	"bahi/domain/fault"
)

// Account is a channel's account at its network, with decrypted credentials.
type Account struct {
	Channel int64 // id of the channel
	Type    string
	Dialect string // dialect of a channel of type chat
	BaseURL string // URL for this channel; empty: the deployment's default

	APIKey, AccessToken         string
	SenderID, AppName, ChatName string // the sender's names at chat networks; ChatName is the channel's name
	AccountID                   string // account with the templates

	RefreshToken, ClientID, ClientSecret string // for renewing the access token; empty: renewal is impossible

	Hook *Hook // URL to register for the network's calls; nil: none is registered
}

// Hook is a URL of Bahi that a network calls.
type Hook struct {
	URL   string // empty: networks cannot reach Bahi
	Token string // verifies the network's calls
}

// Format implements fmt.Formatter. It hides credentials for every verb.
func (a Account) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "account of channel %d", a.Channel)
}

// Renewed has the tokens that a network returns for a refresh token.
type Renewed struct {
	AccessToken  string
	RefreshToken string // empty: the old one stays valid
}

// Message is a text or an image for one recipient.
type Message struct {
	ID      string // Bahi's id; receipts contain it if the network supports that
	To      string // a phone without its plus sign, an email address, or the network's id of a person
	Text    string // for an image: its caption
	Image   string // URL; empty: none
	Picture []byte // content of Image if Bahi stores it
	Subject string // subject of a mail

	As *string // set by the adapter to the network's id of the recipient, if known; nil: not requested

	// Thread is the network's thread. The adapter sets it to the thread of the sent message. Empty: unknown; nil: not requested.
	Thread *string

	Template *Filled // instead of Text and Image; nil: none
}

// Health is a network's report about an account.
type Health struct {
	Identity       string // the network's id of the sender; empty: none
	Proven         bool   // the deployment's own network accepted the account's credentials for the sender
	PhoneNumber    string
	Quality        string // green, yellow, red or unknown
	MessagingLimit string
	CanSend        string // available, limited or blocked
}

// Reason is the cause of a failure. It determines the effect on the channel and on the message. Its values are stored.
type Reason string

// The reasons. Only after [Unknown] and [Lost] the message may have been sent.
const (
	Refused           Reason = "refused"       // for an unknown reason, or permanently
	Credentials       Reason = "credentials"   // the token or its permissions
	Restricted        Reason = "restricted"    // the network has blocked the account, temporarily or permanently
	Throttled         Reason = "throttled"     // too many messages
	WindowClosed      Reason = "window_closed" // the person has not written recently enough
	Recipient         Reason = "recipient"     // the person cannot be reached
	Content           Reason = "content"       // the message is invalid for the network
	Suspended         Reason = "suspended"     // the network has paused or disabled the template
	Temporary         Reason = "temporary"     // a retry may succeed
	Unreached         Reason = "unreached"     // no connection
	Unknown           Reason = "unknown"       // the connection broke, timed out, or had an invalid response
	Unconfigured      Reason = "unconfigured"  // a credential or setting is missing
	HealthUnsupported Reason = "silent"        // the network has no reports about accounts
	CampaignStopped   Reason = "held"          // the campaign has stopped, and the network was not called
	Lost              Reason = "lost"          // no receipt ever arrived
	PassedOver        Reason = "passed_over"   // the campaign skipped the contact, and the network was not called again
	Unhooked          Reason = "unhooked"      // the network cannot call Bahi
	Unfetched         Reason = "unfetched"     // fetching the image failed before the network call
)

// meanings are Bahi's texts for the reasons. The networks' texts may name persons, so only messages store them.
var meanings = map[Reason]string{ //nolint:gosec // G101: none is a credential
	Refused: "The network refused the request", Credentials: "The network refused the credentials",
	Restricted:   "The network has restricted the account",
	Throttled:    "The network asks to send more slowly",
	WindowClosed: "The person has not written in the last 24 hours: only templates can be sent",
	Recipient:    "The network cannot reach the recipient", Content: "The network does not accept the message",
	Suspended: "The network has paused or disabled the template",
	Temporary: "The network is not available", Unreached: "The network cannot be reached",
	Unknown: "The network's response is missing or invalid", Unconfigured: "A credential or setting of the channel is missing",
	HealthUnsupported: "No message was sent yet", CampaignStopped: "The campaign has stopped", Lost: "No delivery receipt arrived",
	PassedOver: "The campaign has skipped the contact",
	Unhooked:   "The network calls public https addresses only, and this server has none (BAHI_PUBLIC_URL)",
	Unfetched:  "The image cannot be fetched from its address",
}

// Failure is a failed call of a network.
type Failure struct {
	Reason  Reason
	Code    int    // the network's; 0: none
	Title   string // text from the network, without credentials
	Details string // further text from the network, without credentials
	After   time.Duration
}

// PairLimit is a chat network's code for too many messages to one person in a short time (CONTRACT.md 3.1.3).
const PairLimit = 131056

// Error returns Bahi's text. It names no person, so it may be logged and shown.
func (f *Failure) Error() string {
	if f.Code == 0 {
		return meanings[f.Reason]
	}
	return fmt.Sprintf("%s (%d)", meanings[f.Reason], f.Code)
}

// refusals are the kinds and codes of errors for clients (CONTRACT.md 3.1.3, D44, N12).
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

// Fault returns the error for clients.
func (f *Failure) Fault() *fault.Error {
	r := refusals[f.Reason]
	return &fault.Error{Kind: r.kind, Detail: f.Error(), Code: r.code, RetryAfter: int(f.After.Seconds())}
}

// Word returns the code of a message that failed for this reason (CONTRACT.md N1).
func (r Reason) Word() string {
	if r == Unknown || r == Lost {
		return string(Unknown)
	}
	return refusals[r].code
}

// Retryable reports whether the request may be retried: the network was not called, or refused temporarily.
func (r Reason) Retryable() bool {
	return r == Throttled || r == Unreached || r == Temporary || r == Unconfigured || r == Unfetched
}

// Stops reports whether the failure pauses a campaign. Such a failure does not depend on the recipient, so the message is sent later.
func (r Reason) Stops() bool {
	return r.Retryable() || r == Credentials || r == Restricted || r == Suspended || r == CampaignStopped
}
