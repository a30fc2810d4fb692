package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/eventstore/journal"
	"bahi/eventstore/vault"
	"bahi/providers/blob"
	"bahi/providers/chat"
	"bahi/providers/idp"
	"bahi/providers/mail"
	"bahi/providers/partner"
)

// CheckSettings returns the faults of all settings, whatever the database has. A start calls it before it creates a data folder, a
// Postgres, keys and tokens, so that a refused start leaves nothing behind.
func (s *Settings) CheckSettings(ctx context.Context) error {
	return errors.Join(s.check(ctx), s.Outside.complete(), s.Outside.check(ctx))
}

// check returns the faults of the settings that all commands have.
func (s *Settings) check(ctx context.Context) error {
	var wrong []error
	if s.Connections < 2 { // an operation that holds one, such as sending a campaign, needs a second
		wrong = append(wrong, fmt.Errorf("BAHI_DB_CONNECTIONS: expected 2 or more, not %d", s.Connections))
	}
	for name, d := range map[string]time.Duration{ // 0 of the last is the default
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

// check returns the faults of the settings. It requires that complete has run.
func (o *IntegrationSettings) check(ctx context.Context) error {
	_, model := o.model()
	_, whose := o.whose()
	_, days := o.days()
	_, origins := o.origins()
	_, proxies := o.proxies()
	_, topic := o.topic()
	return errors.Join(o.checkRanges(), o.checkMail(), o.checkNetworks(), o.credentials("any").Check(), model, whose, days, origins,
		proxies, topic, o.checkPartners(ctx))
}

func (o *IntegrationSettings) checkRanges() error {
	var wrong []error
	for name, n := range map[string]float64{ // 0 is the default
		"BAHI_STREAMS": float64(o.Streams), "BAHI_EXPENSIVE_ANSWERS": float64(o.AtOnce), "BAHI_ANSWER_FILES": float64(o.Files),
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

func (o *IntegrationSettings) checkMail() (err error) {
	if _, wrong := netmail.ParseAddress(o.AdminEmail); o.AdminEmail != "" && wrong != nil {
		err = errors.New("BAHI_ADMIN_EMAIL: expected an address such as asha@example.org")
	}
	if o.SMTPURL != "" {
		_, wrong := mail.NewSMTP(o.SMTPURL, nil, nil)
		return errors.Join(err, wrong)
	}
	if _, wrong := mail.ParseSender(o.MailFrom); wrong != nil {
		err = errors.Join(err, fmt.Errorf("BAHI_MAIL_FROM: %w", wrong))
	}
	return err
}

func (o *IntegrationSettings) checkNetworks() error {
	var wrong []error
	exceptions, err := o.exceptions()
	_, networks := o.networks(exceptions)
	wrong = append(wrong, err, networks)
	if o.CRMURL != "" {
		_, err := o.crm(exceptions)
		wrong = append(wrong, err)
	}
	if o.ChatLookup != "" {
		_, err := chat.NewLookup(o.ChatLookup, nil)
		wrong = append(wrong, err)
	}
	_, err = EnquiryTemplate(o.ChatTemplate)
	return errors.Join(append(wrong, err)...)
}

// checkPartners checks the addresses of other systems. It calls none of them.
func (o *IntegrationSettings) checkPartners(ctx context.Context) error {
	var wrong []error
	if o.PartnerSecret != "" && o.PartnerHeader == "" {
		if _, err := partner.Parse(o.PartnerSecret); err != nil {
			wrong = append(wrong, fmt.Errorf("PARTNER_WEBHOOK_SECRET: %w", err))
		}
	}
	_, err := o.replyClient()
	wrong = append(wrong, err)
	if o.Provider.Configured() {
		p := o.Provider
		p.RedirectURL = o.PublicURL
		_, err := idp.New(p)
		wrong = append(wrong, err)
	}
	if o.FeedURL != "" {
		_, err := o.broker(slog.Default())
		wrong = append(wrong, err)
	}
	if o.RedisURL != "" {
		counter, err := o.redis()
		if wrong = append(wrong, err); err == nil {
			_ = counter.Close() // it has not connected
		}
	}
	if o.BlobURL != "" {
		bucket, err := blob.Open(ctx, o.BlobURL, blob.Files{})
		if wrong = append(wrong, err); err == nil {
			_ = bucket.Close() // as above
		}
	}
	return errors.Join(wrong...)
}

func checkURL(setting, text string) error {
	if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%s: expected an address like https://example.org", setting)
	}
	return nil
}
