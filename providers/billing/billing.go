// Package billing checks and reads the calls of a billing provider.
package billing

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

// Sign returns the hex HMAC-SHA256 of a text.
func Sign(secret, text string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// Signed reports whether one of the secrets has signed the body. The signature is t=<seconds>,v1=<hex> over the time and the
// body, within five minutes. Without a time, it is only the hex of the HMAC of the body.
func Signed(secrets []string, header string, body []byte, now time.Time) bool {
	stamp, given := "", []string{}
	for part := range strings.SplitSeq(header, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !found:
			given = append(given, name)
		case name == "t":
			stamp = value
		case name == "v1" || name == "sha256":
			given = append(given, value)
		}
	}
	signed := string(body)
	if stamp != "" {
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
			return false
		}
		signed = stamp + "." + signed
	}
	return slices.ContainsFunc(secrets, func(secret string) bool {
		want := Sign(secret, signed)
		return slices.ContainsFunc(given, func(g string) bool { return hmac.Equal([]byte(g), []byte(want)) })
	})
}

// Event has the data of a call about a subscription.
type Event struct {
	ID        string
	Type      string
	Created   int64  // in seconds; 0: not reported
	Customer  string // the provider's id; empty: the event has no subscription
	Workspace string // workspace that the customer claims to be; empty: none
	Plan      string // empty: not reported
	Status    string // status of the subscription after the event; empty: not reported
}

type object struct {
	Customer   string              `json:"customer"`
	CustomerID string              `json:"customer_id"`
	Reference  string              `json:"client_reference_id"`
	Status     string              `json:"status"`
	PlanID     string              `json:"plan_id"`
	Plan       struct{ ID string } `json:"plan"`
	Metadata   struct {
		Workspace string `json:"workspace_id"`
		Plan      string `json:"plan"`
	} `json:"metadata"`
	Items struct {
		Data []struct{ Price struct{ ID string } } `json:"data"`
	} `json:"items"`
}

// Decode reads a body in one of the forms {"id","type","created","data":{"object"}} and
// {"event","created_at","payload":{<name>:{"entity"}}}.
func Decode(body []byte) (e Event, err error) {
	var in struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Event   string `json:"event"`
		Created int64  `json:"created"`
		At      int64  `json:"created_at"`
		Data    struct {
			Object object `json:"object"`
		} `json:"data"`
		Payload map[string]struct {
			Entity object `json:"entity"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return e, err
	}
	about := in.Data.Object
	for _, name := range []string{"payment", "invoice", "subscription"} { // the subscription's own values go last and override
		if p, there := in.Payload[name]; there && cmp.Or(p.Entity.Customer, p.Entity.CustomerID) != "" {
			about = p.Entity
		}
	}
	e = Event{ID: in.ID, Type: cmp.Or(in.Type, in.Event), Created: max(in.Created, in.At), Customer: cmp.Or(about.Customer, about.CustomerID)}
	e.Workspace, e.Plan = cmp.Or(about.Metadata.Workspace, about.Reference), cmp.Or(about.Metadata.Plan, about.Plan.ID, about.PlanID)
	if len(about.Items.Data) > 0 {
		e.Plan = cmp.Or(e.Plan, about.Items.Data[0].Price.ID)
	}
	switch kind := strings.TrimPrefix(e.Type, "customer."); kind {
	case "subscription.deleted", "subscription.cancelled", "subscription.completed":
		e.Status = "canceled"
	case "subscription.created", "subscription.updated", "subscription.activated", "subscription.charged":
		e.Status = cmp.Or(about.Status, "active")
	case "invoice.paid", "invoice.payment_succeeded", "checkout.session.completed":
		e.Status = "active"
	case "invoice.payment_failed", "payment.failed", "subscription.halted":
		e.Status = "past_due"
	}
	return e, nil
}
