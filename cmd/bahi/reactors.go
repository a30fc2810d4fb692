package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"bahi/domain/event"
	"bahi/projections"
	"bahi/reactors"
	accessreactors "bahi/reactors/access"
)

// allReactors are those that this program runs.
func allReactors() []*reactors.Reactor { return []*reactors.Reactor{accessreactors.Accounts} }

// workers do the jobs that reactors and sweeps ask for.
func (s *system) workers() reactors.Workers {
	zone, err := s.settings.zone()
	if err != nil {
		zone = time.UTC // open has refused it before
	}
	writing := &accessreactors.Mails{
		Accounts: s.accounts, Commands: s.commands, Store: s.store, Mailer: s.mails,
		Frontend: s.settings.Outside.FrontendURL, Admin: s.settings.Outside.AdminEmail, Zone: zone, Log: s.log,
	}
	return slices.Concat(writing.Workers(), s.eraser().Workers(), reactors.Workers{accessreactors.Sweeps(s.accounts.Credentials)})
}

// eraser erases people.
func (s *system) eraser() *accessreactors.Eraser {
	return &accessreactors.Eraser{
		Accounts: s.accounts, Commands: s.commands, Store: s.store, Views: s.market, Vault: s.vault, Remains: remains{s, allProjections()},
		Now: time.Now, Log: s.log,
	}
}

// cleanFolders keeps this node's own folders clean of people who were erased, on whichever node.
func (s *system) cleanFolders(ctx context.Context) {
	eraser := s.eraser()
	for ctx.Err() == nil {
		if err := eraser.Clean(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("mails and pictures of people who were erased may be left in this node's folders", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(accessreactors.SweepEvery):
		}
	}
}

// sweeps are the jobs that no event needs to ask for.
func (s *system) sweeps() []reactors.Sweep {
	return []reactors.Sweep{
		reactors.Every(accessreactors.SweepEvery, accessreactors.SweepErasures{}),
		reactors.Every(accessreactors.SweepEvery, accessreactors.SweepCredentials{}),
	}
}

// reactingWithin is how long a start waits for the reactors.
const reactingWithin = 10 * time.Second

// untilReacting waits until every reactor has its place in the log. One that has none starts at the head, so
// what is written before would follow nobody: the first to register would get no mail.
func (s *system) untilReacting(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reactingWithin)
	defer cancel()
	var names []string // others have checkpoints too
	for _, r := range allReactors() {
		names = append(names, r.Name)
	}
	for ctx.Err() == nil {
		var placed int
		err := s.pool.QueryRow(ctx, `select count(*) from reactor.checkpoint where name = any($1)`, names).Scan(&placed)
		if err == nil && placed >= len(names) {
			return
		}
		select {
		case <-ctx.Done():
			s.log.Warn("the reactors have not started; mails of what is written until then are not sent", "error", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

type reactorsCommand struct {
	List   listReactors  `cmd:"" help:"List the reactors and how far they are."`
	Replay replayReactor `cmd:"" help:"Go once more over old events, and add the jobs that follow from them."`
	Retry  retryReactor  `cmd:"" help:"Let a parked reactor try its event again."`
}

type listReactors struct{ settings }

// Run prints one line a reactor.
func (c listReactors) Run(ctx context.Context) error {
	sys, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.close()
	head, err := sys.store.Head(ctx)
	if err != nil {
		return err
	}
	all, err := reactors.List(ctx, sys.pool, allReactors()...)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "REACTOR\tSTATE\tPOSITION\tLAG\tERROR")
	for _, r := range all {
		fmt.Fprintf(out, "%s\t%s\t%d\t%s\t%s\n", r.Name, r.State, r.Position, c.behind(head, r.Position), r.Error)
	}
	return out.Flush()
}

type replayReactor struct {
	settings

	Name  string `arg:"" help:"Which."`
	After uint64 `required:"" placeholder:"POSITION" help:"Begin behind this position of the log; 0 for all of it. Mail that was sent more than a day ago is sent again."`
}

// Run goes over the events and tells how many jobs that made.
func (c replayReactor) Run(ctx context.Context) error {
	reactor, err := reactorNamed(c.Name)
	if err != nil {
		return err
	}
	sys, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.close()
	bar := newProgress("replaying "+c.Name, "events")
	done, err := sys.reacting.Replay(ctx, reactor, event.Position(c.After), func(at, upTo event.Position) {
		bar.show(int64(at), int64(upTo))
	})
	bar.end()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d jobs added for %d events up to position %d\n", c.Name, done.Jobs, done.Events, done.UpTo)
	return nil
}

type retryReactor struct {
	settings

	Name string `arg:"" help:"Which."`
}

// Run clears the note at which the reactor stands still.
func (c retryReactor) Run(ctx context.Context) error {
	if _, err := reactorNamed(c.Name); err != nil {
		return err
	}
	sys, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.close()
	if err := reactors.Retry(ctx, sys.pool, c.Name); errors.Is(err, projections.ErrNotParked) {
		return fmt.Errorf("%s is not parked", c.Name)
	} else if err != nil {
		return err
	}
	fmt.Printf("%s tries its event again\n", c.Name)
	return nil
}

func reactorNamed(name string) (*reactors.Reactor, error) {
	for _, r := range allReactors() {
		if r.Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("there is no reactor %q", name)
}
