package console

import (
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

// callList is a page of the calls of providers.
type callList struct {
	Verdict  string
	Verdicts []string
	Calls    []views.Webhook
	Total    int64
	Pages    pages
}

func (v *visit) webhooks() (page, error) {
	query := v.r.URL.Query()
	list := callList{Verdict: query.Get("verdict"), Verdicts: verdicts}
	if !slices.Contains(verdicts, list.Verdict) {
		list.Verdict = ""
	}
	n := number(query.Get("page"))
	var err error
	list.Calls, list.Total, err = v.Jobs.Webhooks(v.r.Context(), views.WebhookSelection{Verdict: list.Verdict, Page: n, PageSize: callsOfPage})
	list.Pages = v.pagesOf(n, callsOfPage, list.Total)
	return page{template: "webhooks", title: "Webhooks", body: list}, err
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

// draftList is a page of the order drafts that wait for their review.
type draftList struct {
	Drafts []books.OrderDraft
	Total  int64
	Pages  pages
}

func (v *visit) drafts() (page, error) {
	n := number(v.r.URL.Query().Get("page"))
	var (
		list draftList
		err  error
	)
	list.Drafts, list.Total, err = v.Books.AllOrderDrafts(v.r.Context(), v.Zone, readmodels.Page{Number: n, Size: draftsOfPage})
	list.Pages = v.pagesOf(n, draftsOfPage, list.Total)
	return page{template: "drafts", title: "Order drafts", body: list}, err
}
