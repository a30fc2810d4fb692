package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/eventstore/journal"
	"bahi/eventstore/vault"
	"bahi/http/api"
	"bahi/http/api/ratelimit"
	"bahi/providers/blob"
	"bahi/providers/chat"
	"bahi/providers/crm"
	"bahi/providers/egress"
	"bahi/providers/idp"
	"bahi/providers/llm"
	"bahi/providers/mail"
	"bahi/providers/partner"
	"bahi/reactors/marketplacereact"
)

// CheckSettings returns the faults of all settings, without reading the database. A start calls it before it creates a data folder, a
// Postgres, keys and tokens, so that a refused start leaves nothing behind.
func (s Settings) CheckSettings(ctx context.Context) error {
	c, err := s.Outside.open(ctx, s.Logger(true))
	c.close()
	return errors.Join(s.check(ctx), err)
}

// check returns the faults of the settings that all commands have.
func (s Settings) check(ctx context.Context) error {
	var wrong []error
	if s.Connections < 2 { // some operations need two, such as sending a campaign
		wrong = append(wrong, fmt.Errorf("BAHI_DB_CONNECTIONS: expected 2 or more, not %d", s.Connections))
	}
	for name, d := range map[string]time.Duration{ // for BAHI_TAKEOVER_AFTER, 0 means the default
		"BAHI_READ_WAIT": s.ReadWait, "BAHI_KEEP_GENERATION": s.Keep, "BAHI_TAKEOVER_AFTER": s.TakeOver,
	} {
		if d < 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s is negative", name, d))
		}
	}
	if _, err := s.Zone(); err != nil {
		wrong = append(wrong, err)
	}
	if _, err := pgxpool.ParseConfig(s.DatabaseURL); s.DatabaseURL != "" && err != nil {
		wrong = append(wrong, fmt.Errorf("DATABASE_URL: %w", err))
	}
	if s.EventStore != "" {
		wrong = append(wrong, journal.CheckAddress(s.EventStore))
	}
	if s.MasterKey != "" {
		_, err := vault.LoadOrMakeMasterKey("", s.MasterKey)
		wrong = append(wrong, err)
	}
	return errors.Join(append(wrong, s.auditSettings.check(ctx))...)
}

// clients are the other systems of the settings. None has connected.
type clients struct {
	exceptions egress.Allowlist
	networks   *chat.Networks
	replies    *chat.Replies
	lookup     *chat.Lookup // nil: none
	notices    marketplacereact.Sender
	crm        marketplacereact.CRM
	model      *llm.Client     // nil: none
	provider   *idp.Client     // nil: none
	smtp       *mail.SMTP      // nil: mails are kept in a folder
	from       netmail.Address // sender of kept mails
	bucket     *blob.Store     // nil: images are in a folder
	redis      *ratelimit.Redis
	broker     message.Publisher // nil: no feed
	topic      string
	partner    []partner.Secret // none: a generated one

	callers
}

// callers restrict the clients of this server.
type callers struct {
	origins   []string // origins of pages that may read responses
	proxies   []netip.Prefix
	addresses []netip.Prefix // addresses that send the gateway's calls
	senders   []string       // senders of messages that become order drafts
	workspace uuid.UUID      // workspace of order drafts; zero: the operator's
	keepHooks time.Duration  // retention period of webhook bodies
}

// open returns the other systems, or all faults of the settings.
func (o *IntegrationSettings) open(ctx context.Context, log *slog.Logger) (c clients, err error) {
	wrong := []error{o.complete(), o.checkRanges(), o.credentials("any").Check()}
	found := func(settings string, err error) {
		if err != nil && settings != "" {
			err = fmt.Errorf("%s: %w", settings, err)
		}
		wrong = append(wrong, err)
	}
	if slices.Contains(o.SocialSecrets, "") {
		found("SOCIAL_APP_SECRET", errors.New("a secret is empty"))
	}
	if _, err := netmail.ParseAddress(o.AdminEmail); o.AdminEmail != "" && err != nil {
		found("BAHI_ADMIN_EMAIL", errors.New("expected an address such as asha@example.org"))
	}
	if o.SMTPURL != "" {
		c.smtp, err = mail.NewSMTP(o.SMTPURL, nil, time.Now)
		found("", err)
	} else {
		c.from, err = mail.ParseSender(o.MailFrom)
		found("BAHI_MAIL_FROM", err)
	}
	if o.BlobURL != "" {
		c.bucket, err = blob.Open(ctx, o.BlobURL, blob.Files{})
		found("", err)
	}
	if o.Provider.Configured() {
		p := o.Provider
		p.RedirectURL, p.Now = o.PublicURL+"/api/v1/auth/idp/callback", time.Now
		c.provider, err = idp.New(p)
		found("", err)
	}
	for _, text := range append([]string{o.FrontendURL}, o.Origins...) {
		origin, err := api.Origin(text)
		found("BAHI_CORS_ORIGINS, BAHI_FRONTEND_URL", err)
		c.origins = append(c.origins, origin)
	}
	c.proxies, err = api.ParseProxies(o.Proxies)
	found("BAHI_TRUSTED_PROXIES", err)
	if o.RedisURL != "" {
		c.redis, err = ratelimit.NewRedis(o.RedisURL)
		found("REDIS_URL", err)
	}
	c.model, err = llm.New(llm.Config{
		BaseURL: o.ModelURL, Key: o.ModelKey, Model: o.ModelName, VisionModel: o.VisionModel, EmbeddingModel: o.EmbeddingModel,
		Timeout: o.ModelTimeout, MaxTokens: o.ModelTokens,
	})
	found("LLM_BASE_URL, LLM_MODEL, LLM_TIMEOUT, LLM_MAX_TOKENS", err)
	if o.FeedURL != "" {
		c.broker, err = o.openBroker(log)
		found("FEED_URL", err)
	}
	if c.topic = cmp.Or(o.FeedTopic, defaultTopic); !feedTopic.MatchString(c.topic) || len(c.topic) > maxTopic {
		found("FEED_TOPIC", fmt.Errorf("expected words of letters, digits, - and _ with dots between, of %d characters at most", maxTopic))
	}
	o.openNetworks(&c, found)
	o.openWebhooks(&c, found)
	return c, errors.Join(wrong...)
}

// openNetworks adds the networks of channels, and the systems that are notified of enquiries.
func (o *IntegrationSettings) openNetworks(c *clients, found func(settings string, err error)) {
	var err error
	c.exceptions, err = egress.Parse(o.FetchAllow)
	found("BAHI_FETCH_ALLOW", err)
	for _, set := range [][2]string{
		{"CHAT_BASE_URL", o.ChatURL}, {"TELEGRAM_BASE_URL", o.TelegramURL}, {"GMAIL_BASE_URL", o.GmailURL}, {"GMAIL_TOKEN_URL", o.GmailTokens},
		{"TWITTER_BASE_URL", o.TwitterURL}, {"CRM_URL", o.CRMURL}, {"CRM_TOKEN_URL", o.CRMTokenURL}, {"CHAT_LOOKUP_URL", o.ChatLookup},
	} {
		found(set[0], c.exceptions.Check(set[1]))
	}
	c.networks, err = chat.New(chat.Settings{
		ChatURL: o.ChatURL, GatewayURL: o.ReplyURL, TelegramURL: o.TelegramURL, GmailURL: o.GmailURL, TwitterURL: o.TwitterURL,
		GmailTokenURL: o.GmailTokens, Product: o.ChatProduct, LimitField: o.ChatLimit, Client: c.exceptions.Client(),
	})
	found("", err)
	c.notices = marketplacereact.Sender{Networks: c.networks,
		Account: network.Account{Type: channel.Chat, APIKey: o.ChatKey, SenderID: o.ChatSender}}
	t := &c.notices.Template
	if t.Name, t.Language, _ = strings.Cut(o.ChatTemplate, ":"); o.ChatTemplate != "" && (t.Name == "" || t.Language == "") {
		found("CHAT_ENQUIRY_TEMPLATE", fmt.Errorf("%q is not a template's name and language, such as new_enquiry:en", o.ChatTemplate))
	}
	c.crm = crm.Sandbox{}
	if o.CRMURL != "" {
		c.crm, err = crm.New(crm.Settings{
			URL: o.CRMURL, Dialect: o.CRMDialect, Pointer: o.CRMPointer, Token: o.CRMToken, Scheme: o.CRMScheme, TokenURL: o.CRMTokenURL,
			RefreshToken: o.CRMRefreshToken, ClientID: o.CRMClientID, ClientSecret: o.CRMClientSecret, AccessKey: o.CRMAccessKey,
			SecretKey: o.CRMSecretKey, Client: c.exceptions.Client(), Now: time.Now,
		})
		found("", err)
	}
	if o.ChatLookup != "" {
		c.lookup, err = chat.NewLookup(o.ChatLookup, c.exceptions.Client())
		found("", err)
	}
	c.replies, err = chat.NewReplies(chat.ReplySettings{
		BaseURL: o.ReplyURL, APIKey: o.ReplyKey, Source: o.ReplySource, App: o.ReplyApp, Channel: o.ReplyChannel,
	})
	found("GATEWAY_BASE_URL, GATEWAY_API_KEY, GATEWAY_SOURCE", err)
}

// openWebhooks adds the settings of webhook calls: addresses, senders, secrets and days.
func (o *IntegrationSettings) openWebhooks(c *clients, found func(settings string, err error)) {
	var err error
	c.addresses, err = api.ParseProxies(o.WebhookAddresses)
	found("GATEWAY_WEBHOOK_ADDRESSES", err)
	if o.IncomingWorkspace != "" {
		if c.workspace, err = uuid.Parse(o.IncomingWorkspace); err != nil {
			found("GATEWAY_WORKSPACE", errors.New("expected a UUID"))
		}
	}
	c.senders, err = senders(o.AllowedPhones)
	found("", err)
	if o.PartnerSecret != "" && o.PartnerHeader == "" {
		secret, err := partner.Parse(o.PartnerSecret)
		found("PARTNER_WEBHOOK_SECRET", err)
		c.partner = []partner.Secret{secret}
	}
	days := *cmp.Or(o.WebhookDays, new(webhookDays))
	if days < 1 {
		found("BAHI_WEBHOOK_DAYS", fmt.Errorf("%d is too small, because bodies would be deleted before they are handled; at least 1", days))
	}
	c.keepHooks = time.Duration(days) * 24 * time.Hour
}

// close releases the opened clients.
func (c *clients) close() {
	if c.bucket != nil {
		_ = c.bucket.Close() // nothing depends on it any more
	}
	if c.redis != nil {
		_ = c.redis.Close()
	}
}

func (o *IntegrationSettings) checkRanges() error {
	var wrong []error
	for name, n := range map[string]float64{ // 0 is the default
		"BAHI_STREAMS": float64(o.Streams), "BAHI_EXPENSIVE_ANSWERS": float64(o.MaxExpensive), "BAHI_ANSWER_FILES": float64(o.Files),
		"BAHI_OCR_PAGES":  float64(o.OCRPages),
		"BAHI_KHATA_DAYS": float64(o.KhataDays), "BAHI_CAMPAIGN_RATE": o.CampaignRate, "BOT_MIN_COVERAGE": o.Coverage,
		"BAHI_SCRUB_EVERY": o.ScrubInterval.Seconds(), "LLM_TIMEOUT": o.ModelTimeout.Seconds(),
	} {
		if n < 0 {
			wrong = append(wrong, fmt.Errorf("%s: %v is negative", name, n))
		}
	}
	if o.Coverage > 1 {
		wrong = append(wrong, fmt.Errorf("BOT_MIN_COVERAGE: %v is more than 1, which is all words of a question", o.Coverage))
	}
	return errors.Join(wrong...)
}

func checkURL(setting, text string) error {
	if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%s: expected an address like https://example.org", setting)
	}
	return nil
}
