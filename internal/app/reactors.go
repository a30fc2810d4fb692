package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"bahi/reactors"
	accessreactors "bahi/reactors/access"
	inboxreactors "bahi/reactors/inbox"
	ledgerreactors "bahi/reactors/ledger"
	marketplacereactors "bahi/reactors/marketplace"
	messagingreactors "bahi/reactors/messaging"
)

// AllReactors returns the reactors of this program.
func AllReactors() []*reactors.Reactor {
	return []*reactors.Reactor{
		accessreactors.Accounts, accessreactors.Endings,
		ledgerreactors.Drafts, ledgerreactors.Khatas, marketplacereactors.Companies,
		messagingreactors.Messages, messagingreactors.Bots, messagingreactors.Campaigns,
	}
}

// workers returns the workers for the jobs of reactors and sweeps.
func (s *System) workers() reactors.Workers {
	zone, err := s.Settings.Zone()
	if err != nil {
		zone = time.UTC // Open has refused an invalid zone
	}
	writing := &accessreactors.Mails{
		Accounts: s.Accounts, Commands: s.Commands, Store: s.Store, Mailer: s.Mails,
		Frontend: s.Settings.Outside.FrontendURL, Admin: s.Settings.Outside.AdminEmail, Zone: zone, Log: s.Log,
	}
	return slices.Concat(writing.Workers(), s.Eraser().Workers(), reactors.Workers{accessreactors.Sweeps(s.Accounts.Credentials)},
		inboxreactors.Workers(s.Inbox), s.confirming.Workers(), s.notices.Workers(), (&messagingreactors.Player{Commands: s.Commands, Keep: s.Messages.StoreFile}).Workers(),
		s.bots.knowledge.Workers(), s.bots.answers.Workers(), s.reading().Workers(), s.Campaigns.Workers(),
		messagingreactors.HookWorkers(s.HookChannels))
}

// Eraser returns the eraser of people.
func (s *System) Eraser() *accessreactors.Eraser {
	remains := Remains{s, AllProjections()}
	return &accessreactors.Eraser{
		Accounts: s.Accounts, Commands: s.Commands, Store: s.Store, Views: s.Access, Vault: s.Vault, Remains: remains, Tables: remains.people(),
		Jobs: later{s}, Now: time.Now, Log: s.Log,
		Every: s.Settings.Outside.ScrubInterval,
	}
}

// Everywhere returns the eraser of people from all areas.
func (s *System) Everywhere() *accessreactors.PersonEraser {
	return &accessreactors.PersonEraser{Eraser: s.Eraser(), Ledger: s.Ledger, Marketplace: s.Marketplace, Messaging: s.Messaging}
}

// later adapts the queue, which is made with the workers, and so after who adds jobs.
type later struct{ *System }

// Add implements the reactors' Adder.
func (s later) Add(ctx context.Context, args reactors.Args) error { return s.queue.Add(ctx, args) }

// Newest implements the reactors' Scrubs.
func (s later) Newest(ctx context.Context, kind string) (int64, error) {
	return s.queue.Newest(ctx, kind)
}

// cleanFolders removes data of erased people from this node's own folders; any node may have erased them.
func (s *System) cleanFolders(ctx context.Context) {
	eraser := s.Eraser()
	for ctx.Err() == nil {
		if err := eraser.Clean(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("this node's folders may still have mails and pictures of erased people", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(accessreactors.SweepInterval):
		}
	}
}

// sweeps returns the jobs that run without an event.
func (s *System) sweeps() []reactors.Sweep {
	return []reactors.Sweep{
		reactors.Every(accessreactors.SweepInterval, accessreactors.SweepErasures{}),
		reactors.Every(accessreactors.SweepInterval, accessreactors.SweepCredentials{}),
		reactors.Every(inboxreactors.SweepInterval, inboxreactors.SweepInbox{}),
		reactors.Every(messagingreactors.SweepVectorsInterval, messagingreactors.SweepVectors{}),
		reactors.Every(ledgerreactors.SweepKhatasInterval, ledgerreactors.SweepKhatas{}),
		reactors.Every(messagingreactors.TendInterval, messagingreactors.TendCampaigns{}),
		reactors.Every(messagingreactors.TakeOverInterval, messagingreactors.TakeOver{}),
		reactors.Every(messagingreactors.HookInterval, messagingreactors.RegisterWebhooks{}),
	}
}

func ReactorNamed(name string) (*reactors.Reactor, error) {
	for _, r := range AllReactors() {
		if r.Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("there is no reactor %q", name)
}
