package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/commands/ledgercmd"
	"bahi/domain/access/picture"
	"bahi/http/api"
	"bahi/http/api/ratelimit"
	"bahi/providers/blob"
	"bahi/providers/idp"
	"bahi/providers/mail"
	"bahi/reactors"
	"bahi/reactors/accessreact"
)

// IntegrationSettings configure the connections to other systems. The zero value has none.
type IntegrationSettings struct {
	consoleSettings     `group:"Server"`
	accountSettings     `group:"Accounts"`
	mailSettings        `group:"Mails and images"`
	limitSettings       `group:"Limits"`
	modelSettings       `group:"Language models"`
	botSettings         `group:"Language models"`
	khataSettings       `group:"Scanned pages"`
	incomingSettings    `group:"Chat gateway"`
	networkSettings     `group:"Channels and campaigns"`
	campaignSettings    `group:"Channels and campaigns"`
	hookSettings        `group:"Webhooks"`
	inboxSettings       `group:"Webhooks"`
	marketplaceSettings `group:"Marketplace"`
	feedSettings        `group:"Feed"`

	PublicURL   string `env:"BAHI_PUBLIC_URL" name:"public-url" placeholder:"URL" example:"https://bahi.example.org" help:"Public address of this server, for links and tokens. A change signs all users out. Without it, the address that HTTP listens on." group:"Server"`
	FrontendURL string `env:"BAHI_FRONTEND_URL" name:"frontend-url" placeholder:"URL" example:"https://app.example.org" help:"Address of your own frontend, for links in mails and sign-ins at a provider. Without it, the public URL." group:"Server"`
	TokensOf    string `kong:"-"` // issuer of tokens: the configured public URL; "": the log's own name
}

// accountSettings configure the accounts of users.
type accountSettings struct {
	AdminEmail    string         `env:"BAHI_ADMIN_EMAIL" name:"admin-email" placeholder:"ADDRESS" example:"owner@example.org" help:"Administrator's address, which receives a mail when a user requests deletion."`
	Grace         *time.Duration `env:"BAHI_DELETION_GRACE" name:"deletion-grace" default:"336h" help:"Time from a request for deletion to the deletion. 0s deletes at once. Maximum 696h: deletion is promised within 30 days."`
	ScrubInterval time.Duration  `env:"BAHI_SCRUB_EVERY" name:"scrub-every" default:"1h" help:"Minimum time between two rewrites of tables with personal data after contacts were deleted or buyers erased. The erasure of a user rewrites them at once."`
	MinPassword   int            `env:"BAHI_PASSWORD_MINIMUM" name:"password-minimum" default:"8" unit:"characters" example:"15" help:"Minimum length of a password; 15 is the strict value where it is the only factor."`
	Access        time.Duration  `env:"BAHI_ACCESS_TOKEN_LIFETIME" name:"access-token-lifetime" default:"60m" help:"Lifetime of an access token, from 1s to 168h."`
	TabGrace      time.Duration  `env:"BAHI_REFRESH_GRACE" name:"refresh-grace" default:"0s" example:"10s" help:"Time for which a used refresh token is refused without ending the session, for pages that refresh at the same time. Maximum 1m."`
	Provider      idp.Config     `embed:""`
	Fragment      bool           `env:"IDP_CALLBACK_FRAGMENT" name:"idp-callback-fragment" help:"Put the access token of a provider's sign-in after # in the address, not in the query, so that servers and logs do not see it."`

	Hash credentials.HashCost `kong:"-"` // of passwords; zero: the default
}

// mailSettings configure the destinations of mails and images.
type mailSettings struct {
	SMTPURL  string `env:"SMTP_URL" name:"smtp-url" placeholder:"URL" example:"smtp://user:password@mail.example.org:587?from=bahi@example.org" help:"Mail server. Without it, mails are files in the data folder."`
	MailFrom string `env:"BAHI_MAIL_FROM" name:"mail-from" default:"Bahi <bahi@bahi.invalid>" help:"Sender of mails that are kept as files."`
	BlobURL  string `env:"BLOB_URL" name:"blob-url" placeholder:"URL" example:"s3://bucket?region=ap-south-1" help:"Bucket for images. Without it, blobs/ of the data folder."`
}

// limitSettings configure the limits of one client.
type limitSettings struct {
	RedisURL string   `env:"REDIS_URL" name:"redis-url" placeholder:"URL" example:"redis://cache.example.org:6379" help:"Redis in which nodes share their counts for rate limits. Without it, each node counts for itself."`
	Proxies  []string `env:"BAHI_TRUSTED_PROXIES" name:"trusted-proxies" placeholder:"CIDR" example:"10.0.0.0/8" help:"Proxies that are trusted to name the client's address. Without them, all clients behind a proxy count as one."`
	Origins  []string `env:"BAHI_CORS_ORIGINS" name:"cors-origins" placeholder:"ORIGIN" example:"https://shop.example.org" help:"Origins, besides the frontend's, of pages that may read responses."`
	Streams  int      `env:"BAHI_STREAMS" name:"streams" default:"10" unit:"streams" help:"Maximum concurrent event streams of one caller. A further one is refused with 429."`
	AtOnce   int      `env:"BAHI_EXPENSIVE_ANSWERS" name:"expensive-answers" default:"8" unit:"responses" help:"Maximum concurrent expensive responses: unpaged lists, statements, exports, imports, reading of files. The maximum of a caller is two, of a workspace a quarter. Further requests wait, at most 10 seconds."`
	Files    int64    `env:"BAHI_ANSWER_FILES" name:"answer-files" placeholder:"BYTES" default:"4294967296" unit:"bytes" help:"Maximum total size of the long responses that uploads/ of the data folder stores until their clients have read them. The maximum of one response is a quarter."`

	Recheck time.Duration `kong:"-"` // how often a stream of events checks its caller's permission; 0: the default
	Limits  api.Limits    `kong:"-"` // nil: none
}

const (
	OwnAddress = "http://127.0.0.1:8080"
	maxGrace   = 29 * 24 * time.Hour // a deletion is promised within 30 days, and takes some time itself
	BlobsPath  = "/blobs/"
	KeySize    = 32
)

func (o *IntegrationSettings) complete() error {
	var wrong []error
	if o.PublicURL == "" {
		o.PublicURL = OwnAddress
	}
	if o.FrontendURL == "" {
		o.FrontendURL = o.PublicURL
	}
	if o.Grace == nil {
		o.Grace = new(14 * 24 * time.Hour)
	}
	if *o.Grace < 0 || *o.Grace > maxGrace {
		wrong = append(wrong, fmt.Errorf("BAHI_DELETION_GRACE: %s is not between 0 and %s", *o.Grace, maxGrace))
	}
	if o.MailFrom == "" {
		o.MailFrom = "Bahi <bahi@bahi.invalid>"
	}
	for _, name := range []string{"BAHI_PUBLIC_URL", "BAHI_FRONTEND_URL"} { // the second defaults to the first
		text := &o.PublicURL
		if name != "BAHI_PUBLIC_URL" {
			text = &o.FrontendURL
		}
		u, err := url.Parse(*text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
			wrong = append(wrong, fmt.Errorf("%s: expected an address like https://bahi.example.org", name))
			continue
		}
		u.Path = strings.TrimRight(u.Path, "/")
		if name == "BAHI_PUBLIC_URL" && u.Path != "" {
			wrong = append(wrong, fmt.Errorf("%s: expected an address without a path, to which browsers would not send sign-in cookies", name))
		}
		*text = u.String()
	}
	return errors.Join(wrong...)
}

func (o *IntegrationSettings) credentials(issuer string) credentials.Settings {
	settings := credentials.Defaults(issuer)
	settings.MinPassword = cmp.Or(o.MinPassword, settings.MinPassword)
	settings.Grace = o.TabGrace
	settings.Access = cmp.Or(o.Access, settings.Access)
	settings.Hash = cmp.Or(o.Hash, settings.Hash)
	return settings
}

// joinOutside adds accounts, and the other systems that they need.
func (s *System) joinOutside(ctx context.Context) (err error) {
	o := &s.Settings.Outside
	// A default address may be shared by other deployments, or change.
	issuer := cmp.Or(o.TokensOf, "urn:uuid:"+s.Store.ID().String())
	c, err := credentials.Open(s.Pool, s.Vault, o.credentials(issuer), time.Now)
	if err != nil {
		return err
	}
	s.Accounts = &accesscmd.Accounts{Commands: s.Commands, Credentials: c, Vault: s.Vault, Now: time.Now, Grace: *o.Grace, Guess: api.Guess}
	s.ring = &accesscmd.TokenRing{Commands: s.Commands, Sessions: c.Sessions}
	s.studio = picture.NewStudio()
	linkKey, err := s.Vault.Named(ctx, "blob-links", KeySize)
	if err != nil {
		return err
	}
	s.Blobs, err = blob.Open(ctx, o.BlobURL, blob.Files{
		Folder: filepath.Join(s.Settings.Data, "blobs"), BaseURL: o.PublicURL + BlobsPath, Key: linkKey,
	})
	if err != nil {
		return err
	}
	if err := s.openMail(); err != nil {
		return err
	}
	if o.Provider.Configured() {
		o.Provider.RedirectURL, o.Provider.Now = o.PublicURL+"/api/v1/auth/idp/callback", time.Now
		client, err := idp.New(o.Provider)
		if err != nil {
			return err
		}
		key, err := s.Vault.Named(ctx, "sign-in-flow", KeySize)
		if err != nil {
			return err
		}
		s.Provider = &identityProvider{client, key}
	}
	if err := s.openNetworks(ctx); err != nil {
		return err
	}
	if err := s.openModel(); err != nil {
		return err
	}
	s.openKhatas()
	s.Confirming = &ledgercmd.Confirmations{Books: s.Books, Parties: s.Ledger, PublicURL: s.Settings.Outside.PublicURL}
	if err := s.openBots(ctx); err != nil {
		return err
	}
	if err := s.openCampaigns(); err != nil {
		return err
	}
	if err := s.openInbox(ctx); err != nil {
		return err
	}
	if s.confirming, err = s.replies(); err != nil {
		return err
	}
	s.queue, err = reactors.NewJobs(ctx, reactors.Config{Pool: s.Pool, Workers: s.workers(), Sweeps: s.sweeps(), Now: time.Now, Log: s.Log})
	if err != nil {
		return err
	}
	s.Accounts.Post = accessreact.Post{Jobs: s.queue}
	s.Reacting = reactors.NewRunner(s.Store, s.Pool, s.queue, s.Log)
	s.Reacting.TakeOverAfter(s.Settings.TakeOver)
	return nil
}

func (s *System) openMail() error {
	if text := s.Settings.Outside.SMTPURL; text != "" {
		server, err := mail.NewSMTP(text, nil, time.Now)
		s.Mails = &mails{sender: server}
		return err
	}
	from, err := mail.ParseSender(s.Settings.Outside.MailFrom)
	if err != nil {
		return fmt.Errorf("BAHI_MAIL_FROM: %w", err)
	}
	folder, err := mail.OpenFolder(filepath.Join(s.Settings.Data, "mail"), from, time.Now)
	s.Mails = &mails{sender: folder, folder: folder}
	return err
}

// mails adapts the senders of mail to the reactors' Mailer.
type mails struct {
	sender interface {
		Send(ctx context.Context, m mail.Message) error
	}
	folder *mail.Folder // nil: mails are sent, and not stored
}

// Mail implements the reactors' Mailer.
func (m *mails) Mail(ctx context.Context, id, to, subject, text string) error {
	return m.sender.Send(ctx, mail.Message{ID: id, To: netmail.Address{Address: to}, Subject: subject, Text: text})
}

// Permanent implements the reactors' Mailer.
func (m *mails) Permanent(err error) bool {
	_, permanent := errors.AsType[*mail.Permanent](err)
	return permanent
}

// identityProvider adapts the client of a provider to the interface's IdentityProvider.
type identityProvider struct {
	client *idp.Client
	Key    []byte // of flows
}

// Begin implements the interface's IdentityProvider.
func (p *identityProvider) Begin(ctx context.Context) (consent, flow string, err error) {
	f, err := p.client.Begin(ctx)
	if err != nil {
		return "", "", err
	}
	flow, err = f.Seal(p.Key)
	return f.URL, flow, err
}

// Finish implements the interface's IdentityProvider.
func (p *identityProvider) Finish(ctx context.Context, flow string, query url.Values) (accesscmd.Identity, error) {
	f, err := idp.OpenFlow(flow, p.Key, time.Now())
	if err != nil {
		return accesscmd.Identity{}, err
	}
	who, err := p.client.Finish(ctx, f, query)
	return accesscmd.Identity{
		Issuer: who.Issuer, Subject: who.Subject, Email: who.Email, EmailVerified: who.EmailVerified,
		GivenName: who.GivenName, LastName: who.FamilyName,
	}, err
}

func (o *IntegrationSettings) proxies() ([]netip.Prefix, error) {
	proxies, err := api.ParseProxies(o.Proxies)
	if err != nil {
		return nil, fmt.Errorf("BAHI_TRUSTED_PROXIES: %w", err)
	}
	return proxies, nil
}

func (o *IntegrationSettings) redis() (*ratelimit.Redis, error) {
	client, err := ratelimit.NewRedis(o.RedisURL)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return client, nil
}

// limiting returns the configuration of rate limits, and the function that closes their counter.
func (o *IntegrationSettings) limiting(s *System) (api.Limiting, func(), error) {
	proxies, err := o.proxies()
	if err != nil {
		return api.Limiting{}, nil, err
	}
	l, end := api.Limiting{Limits: o.Limits, Proxies: proxies, Guesses: s.guesses, Now: time.Now}, func() {}
	if o.RedisURL != "" {
		redis, err := o.redis()
		if err != nil {
			return l, end, err
		}
		l.Counter, end = ratelimit.NewShared(redis, s.Log, time.Now), func() { _ = redis.Close() }
	}
	return l, end, nil
}

// origins returns the origins of pages that may read responses.
func (o *IntegrationSettings) origins() (all []string, err error) {
	for _, text := range append([]string{o.FrontendURL}, o.Origins...) {
		origin, err := api.Origin(text)
		if err != nil {
			return nil, fmt.Errorf("BAHI_CORS_ORIGINS, BAHI_FRONTEND_URL: %w", err)
		}
		all = append(all, origin)
	}
	return all, nil
}
