package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"bahi/http/api"
	"bahi/http/pages"
)

// consoleSettings configure the pages. The zero value serves them.
type consoleSettings struct {
	Console string `env:"BAHI_CONSOLE" name:"console" default:"true" enum:"true,false" help:"Serve the pages /app, /docs and /verify."`
}

// consoleKeyTimeout limits a start's wait for the key of the cookies.
const consoleKeyTimeout = 10 * time.Second

// console adds the pages, unless the settings forbid it.
func (s *System) console(a *api.API) error {
	if s.Settings.Outside.Console == "false" {
		a.Page("/docs", http.RedirectHandler("/openapi.json", http.StatusSeeOther)) // all that is public without pages
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), consoleKeyTimeout)
	defer cancel()
	key, err := s.Vault.Named(ctx, "console", KeySize)
	if err != nil {
		return err
	}
	if _, err := pages.Mount(pages.Config{
		API: a, Sessions: s.Accounts.Credentials.Sessions, Key: key, PublicURL: s.Settings.Outside.PublicURL, Zone: s.Zone, Version: Version,
		Now: time.Now, Log: s.Log, MailsKept: s.keptMails != nil, Provider: s.outside.provider != nil,
	}); err != nil {
		return fmt.Errorf("create the pages: %w", err)
	}
	return nil
}
