package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bahi/commands/inbox"
	"bahi/http/webhooks"
)

// inboxSettings configure the webhooks of all providers.
type inboxSettings struct {
	WebhookDays *int `env:"BAHI_WEBHOOK_DAYS" name:"webhook-days" default:"30" unit:"days" help:"Time for which the bodies of webhook calls are kept. Minimum 1."`
}

// webhookDays is the default.
const webhookDays = 30

func (i inboxSettings) days() (int, error) {
	days := webhookDays
	if i.WebhookDays != nil {
		days = *i.WebhookDays
	}
	if days < 1 {
		return 0, fmt.Errorf("BAHI_WEBHOOK_DAYS: %d is too small, because bodies would be deleted before they are handled; at least 1", days)
	}
	return days, nil
}

// openInbox opens the inbox of all webhooks.
func (s *System) openInbox(ctx context.Context) (err error) {
	days, err := s.Settings.Outside.days()
	if err != nil {
		return err
	}
	if s.hooks, err = s.webhooks(ctx); err != nil {
		return err
	}
	s.Inbox = inbox.New(inbox.Config{
		Pool: s.Pool, Vault: s.Vault, Handlers: webhooks.Handlers(s.hooks),
		Keep: time.Duration(days) * 24 * time.Hour, Now: time.Now, Log: s.Log,
	})
	return nil
}

// SayTokens logs where tokens of an earlier start are stored.
func (s *System) SayTokens() {
	if len(s.tokens) > 0 {
		s.Log.Info("webhook tokens of an earlier start", "in", filepath.Join(s.Settings.Data, "keys", "*.token"), "of",
			strings.Join(s.tokens, ", "))
	}
}

// webhookSecret returns the secret of an endpoint without a configured one. All nodes share it. It stores the secret for the operator in
// keys/<port>.token of the data folder. The start that creates it prints it; a later one logs the file.
func (s *System) webhookSecret(ctx context.Context, port string) (string, error) {
	name := "webhook/" + port
	had, err := s.Vault.Has(ctx, name)
	if err != nil {
		return "", err
	}
	key, err := s.Vault.Named(ctx, name, KeySize)
	if err != nil {
		return "", err
	}
	secret := base64.RawURLEncoding.EncodeToString(key)
	path := filepath.Join(s.Settings.Data, "keys", port+".token")
	kept, err := os.ReadFile(path) //nolint:gosec // the data folder is the operator's
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the token of %s's webhook: %w", port, err)
	}
	if err != nil || string(kept) != secret+"\n" {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", fmt.Errorf("create the keys' folder: %w", err)
		}
		if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
			return "", fmt.Errorf("write the token of %s's webhook: %w", port, err)
		}
	}
	switch {
	case had:
		s.tokens = append(s.tokens, port)
	case s.Settings.Shell.Err != nil: // the operator reads it
		fmt.Fprintf(s.Settings.Shell.Err, "The token of the %s's webhook, kept in %s:\n%s\n", port, path, secret)
	}
	return secret, nil
}
