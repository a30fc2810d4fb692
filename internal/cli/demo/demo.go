// Package demo has the command that fills a workspace with invented records of one year.
package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"bahi/domain/event"
	"bahi/domain/unit"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
)

type Command struct {
	app.Settings
	app.IntegrationSettings

	Addr   string `env:"BAHI_ADDR" placeholder:"ADDRESS" help:"Address of the server's HTTP. Without it, the address in the data folder."`
	Size   string `default:"small" enum:"small,medium,large" help:"About 5 thousand, 200 thousand or 5 million events."`
	Events int    `hidden:"" help:"Number of events, instead of a size."`
	Seed   uint64 `default:"1" help:"The same seed gives the same records."`
	Email  string `default:"demo@example.org" help:"Address of the new user, the owner of the workspace. No other user may have it."`
	Until  string `placeholder:"DATE" help:"Last day of the year. Today by default."`
}

// sizes has the approximate number of events of each size.
var sizes = map[string]int{"small": 5_000, "medium": 200_000, "large": 5_000_000}

// Run fills the workspace and prints its address and credentials.
func (c Command) Run(ctx context.Context) error {
	c.Outside, c.MayBegin = c.IntegrationSettings, true
	if c.Outside.SpeaksOutside() {
		return errors.New("this installation sends messages to real networks, and the demo's people are invented: use another installation")
	}
	zone, err := c.Zone()
	if err != nil {
		return err
	}
	plan := Plan{Events: cmp.Or(c.Events, sizes[c.Size]), Seed: c.Seed, Until: unit.DateOf(time.Now().In(zone)), Email: c.Email,
		Password: rand.Text()}
	if c.Until != "" {
		if plan.Until, err = unit.ParseDate(c.Until); err != nil {
			return fmt.Errorf("--until: %w", err)
		}
	}
	addr, err := app.ServerAddr(ctx, c.Data, c.Addr)
	if err != nil {
		return err
	}
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	bar := progress.NewBar(c.Shell.Err, "writing a year of a workshop", "records")
	defer bar.End()
	var filled Filled
	began, before, after := time.Now(), event.Position(0), event.Position(0)
	err = sys.WithWorkers(ctx, func(ctx context.Context) (err error) {
		if before, err = sys.Store.Head(ctx); err != nil {
			return err
		}
		if filled, err = Fill(ctx, sys, plan, bar.Show); err != nil {
			return err
		}
		after, err = sys.Store.Head(ctx)
		return err
	})
	if err != nil {
		return err
	}
	bar.End()
	took := time.Since(began)
	_, err = fmt.Fprintf(c.Shell.Out, `%d events in %s, %.0f a second.

The books       %[4]s/app/
All operations  %[4]s/docs

Sign in with the address and the password as the owner, or with the key as an operator. Operations require the key:
API key   %[7]s
Address   %[5]s
Password  %[6]s
`, after-before, took.Round(time.Second), float64(after-before)/took.Seconds(), cmp.Or(c.PublicURL, "http://"+addr), plan.Email,
		plan.Password, filled.Key)
	return err
}
