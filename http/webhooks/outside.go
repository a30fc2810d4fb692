package webhooks

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"bahi/commands/accesscmd"
	"bahi/commands/inbox"
	"bahi/providers/billing"
	"bahi/providers/partner"
)

// Partner stores the calls of a partner in the inbox. They have no effect yet.
type Partner struct {
	Secrets []partner.Secret
	Now     func() time.Time

	Header string // header with the HMAC of a body, in place of Standard Webhooks; empty: none
	Secret string // secret of that HMAC
}

// prove checks the signature of a call.
func (p Partner) prove(r *http.Request, _ netip.Addr, body []byte) (string, error) {
	if p.Header == "" {
		return verified(partner.Signed(p.Secrets, r.Header, body, p.Now()))
	}
	// the form of billing providers
	return verified(billing.Signed([]string{p.Secret}, r.Header.Get(p.Header), body, p.Now()))
}

// Endpoint returns the endpoint.
func (p Partner) Endpoint() Endpoint {
	e := Endpoint{
		ID: "receive-partner", Path: "/api/webhook/partner", Summary: "Receive a signed event of the partner", Verify: p.prove,
		Handle: func(_ context.Context, c inbox.Call) (out inbox.Outcome, err error) {
			var in struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal(c.Body, &in); err != nil {
				return out, inbox.Unreadable(err)
			}
			return out, nil
		},
	}
	if p.Header == "" { // the id is signed
		e.KeyHeader = partner.IDHeader
	}
	return e
}

// Billing records the plans of workspaces that a billing provider reports.
type Billing struct {
	Secrets  []string
	Header   string // header with the signature
	IDHeader string // header with the event's id if the body has none; empty: no header
	Now      func() time.Time

	// Report records a plan. It returns its workspace, uuid.Nil for none.
	Report func(ctx context.Context, p accesscmd.Paid) (uuid.UUID, error)
}

// Endpoint returns the endpoint.
func (b Billing) Endpoint() Endpoint {
	return Endpoint{
		ID: "receive-billing", Path: "/api/billing-webhook",
		Summary: "Receive a signed event of the billing provider", KeyHeader: b.IDHeader,
		Verify: func(r *http.Request, _ netip.Addr, body []byte) (string, error) {
			return verified(billing.Signed(b.Secrets, r.Header.Get(b.Header), body, b.Now()))
		},
		Key: func(_ string, body []byte) string {
			e, _ := billing.Decode(body) // an unreadable body has no id
			return e.ID
		},
		Handle: func(ctx context.Context, c inbox.Call) (out inbox.Outcome, err error) {
			e, err := billing.Decode(c.Body)
			switch {
			case err != nil:
				return out, inbox.Unreadable(err)
			case e.Status == "" || e.Customer == "":
				return out, nil
			}
			of, err := b.Report(ctx, accesscmd.Paid{Customer: e.Customer, Workspace: e.Workspace, Name: e.Plan, Status: e.Status,
				Created: e.Created})
			if err == nil && of != uuid.Nil {
				out.Effect = "plan of workspace " + of.String()
			}
			return out, err
		},
	}
}
