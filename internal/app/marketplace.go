package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bahi/domain/marketplace/enquiry"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/http/marketplacehttp"
	"bahi/http/opshttp"
	"bahi/providers/chat"
	"bahi/providers/crm"
	"bahi/providers/egress"
	"bahi/reactors/marketplacereact"
)

// marketplaceSettings configure how companies are notified of enquiries. The zero value has sandboxes.
type marketplaceSettings struct {
	CRMURL          string `env:"CRM_URL" name:"crm-url" placeholder:"URL" example:"https://crm.example.org/leads" help:"Endpoint that receives enquiries as leads. Without it, a sandbox."`
	CRMDialect      string `env:"CRM_DIALECT" name:"crm-dialect" default:"generic" help:"Form of a lead: generic, data_array, properties or attribute_list."`
	CRMPointer      string `env:"CRM_LEAD_POINTER" name:"crm-lead-pointer" placeholder:"POINTER" example:"/data/0/id" help:"JSON pointer to the lead's id in the response. Without it, the dialect's."`
	CRMToken        string `env:"CRM_TOKEN" name:"crm-token" placeholder:"TOKEN" help:"Token of the CRM."`
	CRMScheme       string `env:"CRM_TOKEN_SCHEME" name:"crm-token-scheme" default:"crm" help:"Word before -oauthtoken in the Authorization header (dialect data_array)."`
	CRMTokenURL     string `env:"CRM_TOKEN_URL" name:"crm-token-url" placeholder:"URL" help:"Endpoint for new tokens (dialect data_array)."`
	CRMRefreshToken string `env:"CRM_REFRESH_TOKEN" name:"crm-refresh-token" placeholder:"TOKEN" help:"Token that is exchanged for new tokens (dialect data_array)."`
	CRMClientID     string `env:"CRM_CLIENT_ID" name:"crm-client-id" placeholder:"ID" help:"Client id (dialect data_array)."`
	CRMClientSecret string `env:"CRM_CLIENT_SECRET" name:"crm-client-secret" placeholder:"SECRET" help:"Client secret (dialect data_array)."`
	CRMAccessKey    string `env:"CRM_ACCESS_KEY" name:"crm-access-key" placeholder:"KEY" help:"Access key (dialect attribute_list)."`
	CRMSecretKey    string `env:"CRM_SECRET_KEY" name:"crm-secret-key" placeholder:"KEY" help:"Secret key (dialect attribute_list)."`

	ChatKey      string `env:"CHAT_API_KEY" name:"chat-api-key" placeholder:"KEY" help:"Token of the deployment's own sender on the chat network, which notifies companies of enquiries."`
	ChatSender   string `env:"CHAT_SENDER_ID" name:"chat-sender-id" placeholder:"ID" help:"Id of the deployment's own sender."`
	ChatTemplate string `env:"CHAT_ENQUIRY_TEMPLATE" name:"chat-enquiry-template" placeholder:"NAME:LANGUAGE" example:"new_enquiry:en" help:"Template of the notification of an enquiry. Without it, Bahi sends a text, which reaches only phones that wrote within a day."`
	ChatLookup   string `env:"CHAT_LOOKUP_URL" name:"chat-lookup-url" placeholder:"URL" example:"https://lookup.example.org" help:"Service that reports whether a phone is on the chat network."`

	ContactsKnown bool `env:"BAHI_CONTACTS_REQUIRE_AUTH" name:"contacts-require-auth" help:"Refuse unauthenticated callers who read, add or change contacts of companies."`
	AnyGSTIN      bool `env:"BAHI_GSTIN_ANY_TYPE" name:"gstin-any-type" help:"Accept GSTINs whose 14th character is not Z, those of special registrations."`

	MaxNotices int64 `kong:"-"` // maximum notifications of a company within an hour, before it gets digests; 0: 300
}

// crm returns the client of the CRM.
func (m *marketplaceSettings) crm(exceptions egress.Allowlist) (*crm.Client, error) {
	return crm.New(crm.Settings{
		URL: m.CRMURL, Dialect: m.CRMDialect, Pointer: m.CRMPointer, Token: m.CRMToken, Scheme: m.CRMScheme, TokenURL: m.CRMTokenURL,
		RefreshToken: m.CRMRefreshToken,
		ClientID:     m.CRMClientID, ClientSecret: m.CRMClientSecret, AccessKey: m.CRMAccessKey, SecretKey: m.CRMSecretKey,
		Client: exceptions.Client(), Now: time.Now,
	})
}

// openMarketplace connects companies with the systems that notify them of enquiries.
func (s *System) openMarketplace(networks *chat.Networks, exceptions egress.Allowlist) (err error) {
	o := &s.Settings.Outside.marketplaceSettings
	n := &marketplacereact.Notices{
		Commands: s.Commands, Accounts: s.Accounts, People: s.Access, Views: s.Marketplace, Heard: s.Messaging, Mailer: s.Mails, Jobs: later{s},
		Frontend: s.Settings.Outside.FrontendURL, Most: o.MaxNotices, CRM: leads{crm.Sandbox{}},
	}
	sender := OwnSender{Networks: networks, Account: network.Account{Type: channel.Chat, APIKey: o.ChatKey, SenderID: o.ChatSender}}
	if sender.Template, err = EnquiryTemplate(o.ChatTemplate); err != nil {
		return err
	}
	n.Chat = sender
	if o.CRMURL != "" {
		client, err := o.crm(exceptions)
		if err != nil {
			return err
		}
		n.CRM = leads{client}
	}
	if o.ChatLookup != "" {
		if s.lookup, err = chat.NewLookup(o.ChatLookup, exceptions.Client()); err != nil {
			return err
		}
	}
	s.notices = n
	return nil
}

// marketplaceRoutes returns the operations of the area, without their API.
func (s *System) marketplaceRoutes() *marketplacehttp.Routes {
	o := &s.Settings.Outside
	r := &marketplacehttp.Routes{
		Commands: s.Commands, Views: s.Marketplace, Frontend: o.FrontendURL, Log: s.reads, Evidence: s.Messaging,
		Mailed:    s.Accounts.Credentials.Mailed,
		KnownOnly: o.ContactsKnown, AnyGSTIN: o.AnyGSTIN,
	}
	if s.lookup != nil {
		r.Lookup = s.lookup
	}
	return r
}

// leads adapts a client to the reactors' CRM.
type leads struct {
	crm interface {
		Push(ctx context.Context, l crm.Lead) (string, error)
		To() string
	}
}

// Push implements the reactors' CRM.
func (l leads) Push(ctx context.Context, of marketplacereact.Lead) (string, error) {
	return l.crm.Push(ctx, crm.Lead(of))
}

// To implements the reactors' CRM.
func (l leads) To() string { return l.crm.To() }

// Permanent implements the reactors' CRM.
func (leads) Permanent(err error) bool {
	_, refused := errors.AsType[*crm.Refused](err)
	return refused
}

// OwnSender is the deployment's own sender on the chat network.
type OwnSender struct {
	Networks *chat.Networks
	Account  network.Account
	Template network.Filled // no name: a text is sent
}

// EnquiryTemplate parses the setting of a template, NAME:LANGUAGE.
func EnquiryTemplate(text string) (t network.Filled, err error) {
	if text == "" {
		return t, nil
	}
	var found bool
	if t.Name, t.Language, found = strings.Cut(text, ":"); !found || t.Name == "" || t.Language == "" {
		return t, fmt.Errorf("CHAT_ENQUIRY_TEMPLATE: %q is not a template's name and language, such as new_enquiry:en", text)
	}
	return t, nil
}

// Chat implements the reactors' Chat.
func (c OwnSender) Chat(ctx context.Context, id, to, text string, values []string) error {
	m := network.Message{ID: id, To: to, Text: text}
	if c.Template.Name != "" {
		filled := c.Template
		for i, v := range values {
			filled.Body = append(filled.Body, network.Value{Name: strconv.Itoa(i + 1), Text: v})
		}
		m.Text, m.Template = "", &filled
	}
	_, err := c.Networks.Send(ctx, c.Account, m)
	return err
}

// Ended implements the reactors' Chat. A message with an unknown outcome is sent again: a company may get it twice.
func (OwnSender) Ended(err error) bool {
	f := chat.AsFailure(err)
	return f != nil && !f.Reason.Retryable() && f.Reason != network.Unknown
}

// Refusal implements the reactors' Chat.
func (OwnSender) Refusal(code int) string { return chat.Reported(code).Error() }

// notified returns the notices of a port. sent is the status of those that were sent.
func (s *System) notified(ctx context.Context, port enquiry.Port, sent string, skip, limit int) ([]opshttp.Message, int, error) {
	rows, total, err := s.Marketplace.Notices(ctx, nil, string(port), skip, limit)
	messages := make([]opshttp.Message, len(rows))
	for i, r := range rows {
		messages[i] = opshttp.Message{Time: r.At, At: r.At, To: r.To, Status: r.Status, Error: r.Error, Enquiry: r.Enquiry}
		if r.Enquiry != nil {
			messages[i].ID = "enquiry-" + r.Enquiry.String()
		} else if r.Message != nil {
			messages[i].ID = "message-" + strconv.FormatInt(*r.Message, 10)
		}
		if r.Text != nil {
			messages[i].Text = *r.Text
		}
		if r.Status == enquiry.Done {
			messages[i].Status = sent
		}
	}
	return messages, int(total), err
}

// captureNotices adds the notices to companies and the leads to the operators' outbox.
func (s *System) captureNotices(to map[string]opshttp.Captured) {
	for port, sandboxed := range map[enquiry.Port]bool{enquiry.Chat: s.Settings.Outside.ChatURL == "",
		enquiry.CRM: s.Settings.Outside.CRMURL == ""} {
		sent := enquiry.Done
		if sandboxed {
			sent = "kept"
		}
		to[string(port)] = func(ctx context.Context, skip, limit int) ([]opshttp.Message, int, error) {
			return s.notified(ctx, port, sent, skip, limit)
		}
	}
}
