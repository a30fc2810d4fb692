package console

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"bahi/readmodels"
	books "bahi/readmodels/ledger"
	views "bahi/readmodels/ops"
)

// verdicts are the states of a call, in the order in which it goes through them.
var verdicts = []string{"waiting", "handled", "ignored", "parked"}

const (
	callsOfPage  = 50
	draftsOfPage = 25
)

// chosenVerdict is the filter of the list of calls.
type chosenVerdict struct {
	Chosen string
	All    []string
}

// webhooks lists the calls of providers.
func (v *visit) webhooks() (page, error) {
	f := chosenVerdict{Chosen: v.r.URL.Query().Get("verdict"), All: verdicts}
	if !slices.Contains(verdicts, f.Chosen) {
		f.Chosen = ""
	}
	return listed(v, page{template: "webhooks", title: "Webhooks"}, callsOfPage, f, func(ctx context.Context, of readmodels.Page) ([]views.Webhook, int64, error) {
		return v.Jobs.Webhooks(ctx, views.WebhookSelection{Verdict: f.Chosen, Page: of.Number, PageSize: of.Size})
	})
}

// oneCall is a call with what the provider sent.
type oneCall struct {
	views.Webhook

	Body   string
	Binary bool // the body is no text
}

func (v *visit) webhook() (page, error) {
	p := page{template: "webhook", title: "Webhook"}
	id, err := v.call()
	if err != nil {
		return p, err
	}
	var c oneCall
	if c.Webhook, err = v.Jobs.Webhook(v.r.Context(), id); err != nil {
		return p, err
	}
	body, err := v.Inbox.Body(v.r.Context(), id)
	c.Body, c.Binary = string(body), !utf8.Valid(body)
	p.body = c
	return p, err
}

func (v *visit) replayWebhook() (string, error) {
	id, err := v.call()
	if err == nil {
		err = v.Inbox.Replay(v.r.Context(), id)
	}
	return Path + "/webhooks?done=replay", err
}

// call returns the call that the address names.
func (v *visit) call() (uuid.UUID, error) {
	id, err := uuid.Parse(v.r.PathValue("id"))
	if err != nil {
		return id, views.ErrNoWebhook
	}
	return id, nil
}

// drafts lists the order drafts that wait for their review.
func (v *visit) drafts() (page, error) {
	return listed(v, page{template: "drafts", title: "Order drafts"}, draftsOfPage, nil, func(ctx context.Context, of readmodels.Page) ([]books.OrderDraft, int64, error) {
		return v.Books.AllOrderDrafts(ctx, v.Zone, of)
	})
}
