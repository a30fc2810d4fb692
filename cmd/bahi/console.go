package main

import (
	"context"
	"fmt"
	"time"

	"bahi/http/api"
	"bahi/http/console"
	opsroutes "bahi/http/ops"
	opsviews "bahi/readmodels/ops"
)

// consoleSettings are those of the operators' pages. The zero value serves them.
type consoleSettings struct {
	Console string `env:"BAHI_CONSOLE" name:"console" default:"true" enum:"true,false" help:"Whether operators have pages to work on, at /console."`
}

// consoleKeyWithin is how long a start waits for the key of the console's cookies.
const consoleKeyWithin = 10 * time.Second

// console adds the operators' pages, unless the settings say otherwise.
func (s *system) console(a *api.API) error {
	if s.settings.Outside.Console == "false" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), consoleKeyWithin)
	defer cancel()
	key, err := s.vault.Named(ctx, "console", keySize)
	if err != nil {
		return err
	}
	zone, err := s.settings.zone()
	if err != nil {
		return err
	}
	registry, kept := s.registry(), map[string]opsroutes.Captured{}
	if s.mails.folder != nil {
		kept["mail"] = captured{s.mails.folder}
	}
	pages, err := console.New(console.Config{
		Projections: registry, Builds: builds{s},
		Jobs: &opsviews.Jobs{DB: s.pool}, Queue: s.queue,
		Events:   s.explored(),
		Accounts: &opsviews.Accounts{Reader: s.reader(registry.Versions)}, Books: s.ledger,
		Captured: kept,
		Key:      key, PublicURL: s.settings.Outside.PublicURL, Zone: zone, Version: version, Store: s.store.ID().String(), Elsewhere: s.settings.EventStore != "",
		Now: time.Now, Log: s.log, Classify: classify,
	})
	if err != nil {
		return fmt.Errorf("make the console: %w", err)
	}
	a.Mount("console", console.Path, pages)
	return nil
}
