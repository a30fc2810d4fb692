package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	MinPassword   int            `env:"BAHI_PASSWORD_MINIMUM" name:"password-minimum" default:"8" unit:"characters" example:"15" help:"Minimum length of a password. NIST SP 800-63B-4 requires 15 if the password is the only factor."`
	Access        time.Duration  `env:"BAHI_ACCESS_TOKEN_LIFETIME" name:"access-token-lifetime" default:"60m" help:"Lifetime of an access token, from 1s to 168h."`
	TabGrace      time.Duration  `env:"BAHI_REFRESH_GRACE" name:"refresh-grace" default:"0s" example:"10s" help:"Time for which a used refresh token is refused without ending the session, for pages that refresh at the same time. Maximum 1m."`
	Provider      idp.Config     `embed:""`
	Fragment      bool           `env:"IDP_CALLBACK_FRAGMENT" name:"idp-callback-fragment" help:"Put the access token of a provider's sign-in after # in the address, not in the query, so that servers and logs do not see it."`

	Hash credentials.HashCost `kong:"-"` // cost of password hashes; zero: the default
}

// mailSettings configure the destinations of mails and images.
type mailSettings struct {
	SMTPURL  string `env:"SMTP_URL" name:"smtp-url" placeholder:"URL" example:"smtp://user:password@mail.example.org:587?from=bahi@example.org" help:"Mail server. Without it, mails are files in the data folder."`
	MailFrom string `env:"BAHI_MAIL_FROM" name:"mail-from" default:"Bahi <bahi@bahi.invalid>" help:"Sender of mails that are kept as files."`
	BlobURL  string `env:"BLOB_URL" name:"blob-url" placeholder:"URL" example:"s3://bucket?region=ap-south-1" help:"Bucket for images. Without it, blobs/ of the data folder."`
}

// limitSettings configure the limits of one client.
type limitSettings struct {
	RedisURL     string   `env:"REDIS_URL" name:"redis-url" placeholder:"URL" example:"redis://cache.example.org:6379" help:"Redis in which nodes share their counts for rate limits. Without it, each node counts for itself."`
	Proxies      []string `env:"BAHI_TRUSTED_PROXIES" name:"trusted-proxies" placeholder:"CIDR" example:"10.0.0.0/8" help:"Proxies that Bahi trusts to name the client's address. Without them, all clients behind a proxy count as one."`
	Origins      []string `env:"BAHI_CORS_ORIGINS" name:"cors-origins" placeholder:"ORIGIN" example:"https://shop.example.org" help:"Origins, besides the frontend's, of pages that may read responses."`
	Streams      int      `env:"BAHI_STREAMS" name:"streams" default:"10" unit:"streams" help:"Maximum concurrent event streams of one caller. A further one is refused with 429."`
	MaxExpensive int      `env:"BAHI_EXPENSIVE_ANSWERS" name:"expensive-answers" default:"8" unit:"responses" help:"Maximum concurrent expensive responses: unpaged lists, statements, exports, imports, reading of files. The maximum of a caller is two, of a workspace a quarter. Further requests wait, at most 10 seconds."`
	Files        int64    `env:"BAHI_ANSWER_FILES" name:"answer-files" placeholder:"BYTES" default:"4294967296" unit:"bytes" help:"Maximum total size of the long responses that uploads/ of the data folder stores until their clients have read them. The maximum of one response is a quarter."`

	Recheck time.Duration `kong:"-"` // interval at which a stream of events checks its caller's permission; 0: the default
	Limits  api.Limits    `kong:"-"` // nil: none
}

const (
	OwnAddress = "http://127.0.0.1:8080"
	maxGrace   = 29 * 24 * time.Hour // a deletion is promised within 30 days, and takes some time itself
	blobsPath  = "/blobs/"
	KeySize    = 32
)

func (o *IntegrationSettings) complete() error {
	var wrong []error
	o.PublicURL = cmp.Or(o.PublicURL, OwnAddress)
	if o.FrontendURL == "" {
		o.FrontendURL = o.PublicURL
	}
	o.Grace = cmp.Or(o.Grace, new(14*24*time.Hour))
	if *o.Grace < 0 || *o.Grace > maxGrace {
		wrong = append(wrong, fmt.Errorf("BAHI_DELETION_GRACE: %s is not between 0 and %s", *o.Grace, maxGrace))
	}
	o.MailFrom = cmp.Or(o.MailFrom, "Bahi <bahi@bahi.invalid>")
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
	if s.Blobs = s.outside.bucket; s.Blobs == nil {
		s.Blobs, err = blob.Open(ctx, "", blob.Files{
			Folder: filepath.Join(s.Settings.Data, "blobs"), BaseURL: o.PublicURL + blobsPath, Key: linkKey,
		})
		if err != nil {
			return err
		}
	}
	if s.outside.smtp != nil {
		s.Mailer = s.outside.smtp
	} else {
		if s.keptMails, err = mail.OpenFolder(filepath.Join(s.Settings.Data, "mail"), s.outside.from, time.Now); err != nil {
			return err
		}
		s.Mailer = s.keptMails
	}
	if s.outside.provider != nil {
		if s.flowKey, err = s.Vault.Named(ctx, "sign-in-flow", KeySize); err != nil {
			return err
		}
	}
	if err := s.openNetworks(ctx); err != nil {
		return err
	}
	s.openModel()
	s.openKhatas()
	s.Confirming = &ledgercmd.Confirmations{Books: s.Books, Parties: s.Ledger, PublicURL: s.Settings.Outside.PublicURL}
	s.openBots(ctx)
	s.openCampaigns()
	if err := s.openInbox(ctx); err != nil {
		return err
	}
	s.confirming = s.replies()
	s.queue, err = reactors.NewJobs(ctx, reactors.Config{Pool: s.Pool, Workers: s.workers(), Sweeps: s.sweeps(), Now: time.Now, Log: s.Log})
	if err != nil {
		return err
	}
	s.Accounts.Post = accessreact.Post{Jobs: s.queue}
	s.Reacting = reactors.NewRunner(s.Store, s.Pool, s.queue, s.Log)
	s.Reacting.TakeOverAfter(s.Settings.TakeOver)
	return nil
}

// limiting returns the configuration of rate limits.
func (s *System) limiting() api.Limiting {
	l := api.Limiting{Limits: s.Settings.Outside.Limits, Proxies: s.outside.proxies, Guesses: s.guesses, Now: time.Now}
	if s.outside.redis != nil {
		l.Counter = ratelimit.NewShared(s.outside.redis, s.Log, time.Now)
	}
	return l
}
