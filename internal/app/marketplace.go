package app

import (
	"context"
	"strconv"

	"bahi/domain/marketplace/enquiry"
	"bahi/http/marketplacehttp"
	"bahi/http/opshttp"
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
	AnyGSTIN      bool `env:"BAHI_GSTIN_ANY_TYPE" name:"gstin-any-type" help:"Accept GSTINs of special registrations, whose 14th character is not Z."`

	MaxNotices int64 `kong:"-"` // maximum notifications of a company within an hour, before it gets digests; 0: 300
}

// openMarketplace connects companies with the systems that notify them of enquiries.
func (s *System) openMarketplace() {
	s.notices = &marketplacereact.Notices{
		Commands: s.Commands, Accounts: s.Accounts, People: s.Access, Views: s.Marketplace, Heard: s.Messaging, Mailer: s.Mailer, Jobs: later{s},
		Frontend: s.Settings.Outside.FrontendURL, MaxNotices: s.Settings.Outside.MaxNotices, Chat: s.outside.notices, CRM: s.outside.crm,
	}
}

// marketplaceRoutes returns the operations of the area, without their API.
func (s *System) marketplaceRoutes() *marketplacehttp.Routes {
	o := &s.Settings.Outside
	r := &marketplacehttp.Routes{
		Commands: s.Commands, Views: s.Marketplace, Frontend: o.FrontendURL, Log: s.reads, Evidence: s.Messaging,
		Mailed:    s.Accounts.Credentials.Mailed,
		KnownOnly: o.ContactsKnown, AnyGSTIN: o.AnyGSTIN,
	}
	if s.outside.lookup != nil {
		r.Lookup = s.outside.lookup
	}
	return r
}

// notified returns the notices of a port. sent is the status of sent notices.
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
