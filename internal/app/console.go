package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"bahi/http/api"
	"bahi/http/console"
	opsroutes "bahi/http/ops"
	"bahi/http/pages"
	opsviews "bahi/readmodels/ops"
)

// consoleSettings configure the operators' pages. The zero value serves them.
type consoleSettings struct {
	Console string `env:"BAHI_CONSOLE" name:"console" default:"true" enum:"true,false" help:"Whether to serve the operators' console at /console, the inbox of members at /inbox, and the pages at /app, /docs and /verify."`
}

// consoleKeyWithin is how long a start waits for the key of the console's cookies.
const consoleKeyWithin = 10 * time.Second

// console adds the operators' pages, unless the settings forbid it.
func (s *System) console(a *api.API) error {
	if s.Settings.Outside.Console == "false" {
		a.Page("/docs", http.RedirectHandler("/openapi.json", http.StatusSeeOther)) // what is left without pages
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), consoleKeyWithin)
	defer cancel()
	key, err := s.Vault.Named(ctx, "console", KeySize)
	if err != nil {
		return err
	}
	zone, err := s.Settings.Zone()
	if err != nil {
		return err
	}
	registry, kept := s.registry(), map[string]opsroutes.Captured{}
	if s.Mails.folder != nil {
		kept["mail"] = captured{s.Mails.folder}
	}
	kept["gateway"] = outbox{s.Ledger}
	s.captureNotices(kept)
	operators, err := console.New(console.Config{
		Projections: registry, Builds: Builds{s},
		Jobs: &opsviews.Jobs{DB: s.Pool}, Queue: s.queue,
		Events: &opsviews.Events{DB: s.Pool}, Whole: s.recorder().Whole,
		Accounts: &opsviews.Accounts{Reader: s.reader(registry.Versions)}, Books: s.Ledger, Commands: s.Commands, Marketplace: s.Marketplace,
		Captured: kept, Inbox: s.Inbox, Scans: s.Khatas,
		Sessions: s.Accounts.Credentials.Sessions, Key: key, PublicURL: s.Settings.Outside.PublicURL, Zone: zone, Version: Version, Store: s.Store.ID().String(),
		Now: time.Now, Log: s.Log, Classify: Classify,
	})
	if err != nil {
		return fmt.Errorf("make the console: %w", err)
	}
	a.Mount("console", console.Path, operators)
	inbox, err := console.NewInbox(console.Config{
		Key: key, PublicURL: s.Settings.Outside.PublicURL, Zone: zone, Version: Version, Now: time.Now, Log: s.Log, Classify: Classify,
	}, console.InboxConfig{
		Accounts: s.Accounts, Sessions: s.Accounts.Credentials.Sessions, Entrance: s.ring, Members: s.Access, Commands: s.Commands, Views: s.Messaging, Messaging: s.Messages, Bots: s.bots.engine,
		Live: s.live,
	})
	if err != nil {
		return fmt.Errorf("make the inbox: %w", err)
	}
	a.Mount("inbox", console.InboxPath, inbox)
	if _, err := pages.Mount(pages.Config{
		API: a, Sessions: s.Accounts.Credentials.Sessions, Key: key, PublicURL: s.Settings.Outside.PublicURL, Zone: zone, Version: Version,
		Now: time.Now, Log: s.Log,
	}); err != nil {
		return fmt.Errorf("make the pages: %w", err)
	}
	return nil
}
