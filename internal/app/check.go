package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/eventstore/esdb"
	"bahi/eventstore/vault"
	"bahi/providers/blob"
	"bahi/providers/chat"
	"bahi/providers/idp"
	sender "bahi/providers/mail"
	"bahi/providers/outgoing"
	"bahi/providers/partner"
)

// check returns the error of a setting that is wrong whatever the database holds. It comes before a first start makes a Postgres,
// keys and tokens, which a refused one would leave behind.
func (s Settings) check(ctx context.Context) error {
	if s.Connections < 2 { // what holds one, as a campaign that is sent does, wants another one
		return fmt.Errorf("BAHI_DB_CONNECTIONS: expected 2 or more, not %d", s.Connections)
	}
	for name, d := range map[string]time.Duration{ // 0 of the last is the default
		"BAHI_READ_WAIT": s.ReadWait, "BAHI_KEEP_GENERATION": s.Keep, "BAHI_TAKEOVER_AFTER": s.TakeOver,
	} {
		if d < 0 {
			return fmt.Errorf("%s: %s is less than nothing", name, d)
		}
	}
	if _, err := s.Zone(); err != nil {
		return err
	}
	if _, err := pgxpool.ParseConfig(s.DatabaseURL); s.DatabaseURL != "" && err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	if s.EventStore != "" {
		if err := esdb.CheckAddress(s.EventStore); err != nil {
			return err
		}
	}
	if s.MasterKey != "" {
		if _, err := vault.LoadOrMakeMasterKey("", s.MasterKey); err != nil {
			return err
		}
	}
	return s.auditSettings.check(ctx)
}

// check is as that of Settings. The settings are complete.
func (o *OutsideSettings) check(ctx context.Context) error {
	for _, check := range []func() error{
		o.checkRanges, o.checkMail, o.checkNetworks,
		func() error { return o.credentials("any").Check() },
		func() error { _, err := o.model(); return err },
		func() error { _, err := o.whose(); return err },
		func() error { _, err := o.days(); return err },
		func() error { _, err := o.origins(); return err },
		func() error { _, err := o.proxies(); return err },
		func() error { _, err := o.topic(); return err },
		func() error { return o.checkPartners(ctx) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *OutsideSettings) checkRanges() error {
	for name, n := range map[string]float64{ // 0 is the default
		"BAHI_STREAMS": float64(o.Streams), "BAHI_EXPENSIVE_ANSWERS": float64(o.AtOnce), "BAHI_ANSWER_FILES": float64(o.Files), "BAHI_OCR_PAGES": float64(o.OCRPages),
		"BAHI_KHATA_DAYS": float64(o.KhataDays), "BAHI_CAMPAIGN_RATE": o.CampaignRate, "BOT_MIN_COVERAGE": o.Coverage,
		"BAHI_SCRUB_EVERY": o.ScrubEvery.Seconds(), "LLM_TIMEOUT": o.ModelTimeout.Seconds(),
	} {
		if n < 0 {
			return fmt.Errorf("%s: %v is less than nothing", name, n)
		}
	}
	if o.Coverage > 1 {
		return fmt.Errorf("BOT_MIN_COVERAGE: %v is more than all of a question's words, which is 1", o.Coverage)
	}
	return nil
}

func (o *OutsideSettings) checkMail() error {
	if _, err := mail.ParseAddress(o.AdminEmail); o.AdminEmail != "" && err != nil {
		return errors.New("BAHI_ADMIN_EMAIL: expected an address such as asha@example.org")
	}
	if o.SMTPURL != "" {
		_, err := sender.NewSMTP(o.SMTPURL, nil, nil)
		return err
	}
	if _, err := sender.ParseSender(o.MailFrom); err != nil {
		return fmt.Errorf("BAHI_MAIL_FROM: %w", err)
	}
	return nil
}

func (o *OutsideSettings) checkNetworks() error {
	exceptions, err := outgoing.Parse(o.FetchAllow)
	if err != nil {
		return fmt.Errorf("BAHI_FETCH_ALLOW: %w", err)
	}
	if _, err := o.networks(exceptions); err != nil {
		return err
	}
	if o.CRMURL != "" {
		if _, err := o.crm(exceptions); err != nil {
			return err
		}
	}
	if o.ChatLookup != "" {
		if _, err := chat.NewLookup(o.ChatLookup, nil); err != nil {
			return err
		}
	}
	_, err = EnquiryTemplate(o.ChatTemplate)
	return err
}

// checkPartners checks how other systems are called. None of them is.
func (o *OutsideSettings) checkPartners(ctx context.Context) error {
	if o.PartnerSecret != "" && o.PartnerHeader == "" {
		if _, err := partner.Parse(o.PartnerSecret); err != nil {
			return fmt.Errorf("PARTNER_WEBHOOK_SECRET: %w", err)
		}
	}
	if o.ReplyURL != "" {
		if _, err := o.replyClient(); err != nil {
			return err
		}
	}
	if o.Provider.Configured() {
		p := o.Provider
		p.RedirectURL = o.PublicURL
		if _, err := idp.New(p); err != nil {
			return err
		}
	}
	if o.FeedURL != "" {
		if _, err := o.broker(slog.Default()); err != nil {
			return err
		}
	}
	if o.RedisURL != "" {
		counter, err := o.redis()
		if err != nil {
			return err
		}
		_ = counter.Close() // it has not connected
	}
	if o.BlobURL != "" {
		bucket, err := blob.Open(ctx, o.BlobURL, blob.Files{})
		if err != nil {
			return err
		}
		_ = bucket.Close() // as above
	}
	return nil
}

func checkURL(setting, text string) error {
	if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%s: expected an address like https://example.org", setting)
	}
	return nil
}
