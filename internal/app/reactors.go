package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"bahi/eventstore/signal"
	"bahi/reactors"
	"bahi/reactors/accessreact"
	"bahi/reactors/ledgerreact"
	"bahi/reactors/marketplacereact"
	"bahi/reactors/messagingreact"
)

// AllReactors returns the reactors of this program.
func AllReactors() []*reactors.Reactor {
	return []*reactors.Reactor{
		accessreact.Accounts, accessreact.Endings,
		ledgerreact.Drafts, ledgerreact.Khatas, ledgerreact.Confirmations, marketplacereact.Companies,
		messagingreact.Messages, messagingreact.Bots, messagingreact.Campaigns,
	}
}

// workers returns the workers for the jobs of reactors and sweeps.
func (s *System) workers() reactors.Workers {
	writing := &accessreact.Mails{
		Accounts: s.Accounts, Commands: s.Commands, Store: s.Store, Mailer: s.Mailer,
		Frontend: s.Settings.Outside.FrontendURL, Admin: s.Settings.Outside.AdminEmail, Zone: s.Zone, Log: s.Log,
	}
	return slices.Concat(writing.Workers(), s.Eraser().Workers(), reactors.Workers{accessreact.Sweeps(s.Accounts.Credentials)},
		s.confirming.Workers(), s.notices.Workers(),
		(&messagingreact.Player{Commands: s.Commands, Keep: s.Messages.StoreFile}).Workers(),
		s.bots.knowledge.Workers(), s.bots.answers.Workers(), s.reading().Workers(), s.Campaigns.Workers(),
		(&ledgerreact.ConfirmationAnswers{Confirmations: s.Confirming, Views: s.Ledger}).Workers(),
		messagingreact.HookWorkers(s.HookChannels))
}

// Eraser returns the eraser of people.
func (s *System) Eraser() *accessreact.Eraser {
	remains := Remains{s, AllProjections()}
	return &accessreact.Eraser{
		Accounts: s.Accounts, Commands: s.Commands, Store: s.Store, Views: s.Access, Vault: s.Vault, Remains: remains, Tables: remains.people(),
		Jobs: later{s}, Now: time.Now, Log: s.Log,
		ScrubInterval: s.Settings.Outside.ScrubInterval,
	}
}

// everywhere returns the eraser of people from all areas.
func (s *System) everywhere() *accessreact.PersonEraser {
	return &accessreact.PersonEraser{Eraser: s.Eraser(), Ledger: s.Ledger, Marketplace: s.Marketplace, Messaging: s.Messaging}
}

// later adapts the queue for the parts that are created before it.
type later struct{ *System }

// Add implements the reactors' Adder.
func (s later) Add(ctx context.Context, args reactors.Args) error { return s.queue.Add(ctx, args) }

// Newest implements the reactors' Scrubs.
func (s later) Newest(ctx context.Context, kind string) (int64, error) {
	return s.queue.Newest(ctx, kind)
}

// cleanFolders deletes data of erased people from this node's own folders; any node may have erased them.
func (s *System) cleanFolders(ctx context.Context) {
	eraser := s.Eraser()
	for ctx.Err() == nil {
		if err := eraser.Clean(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("cleaning this node's folders of erased people's data failed", "error", err)
		}
		_ = signal.Sleep(ctx, accessreact.SweepInterval)
	}
}

// sweeps returns the jobs that run without an event.
func (s *System) sweeps() []reactors.Sweep {
	return []reactors.Sweep{
		reactors.Every(accessreact.SweepInterval, accessreact.SweepErasures{}),
		reactors.Every(accessreact.SweepInterval, accessreact.SweepCredentials{}),
		reactors.Every(messagingreact.SweepVectorsInterval, messagingreact.SweepVectors{}),
		reactors.Every(ledgerreact.SweepKhatasInterval, ledgerreact.SweepKhatas{}),
		reactors.Every(messagingreact.TendInterval, messagingreact.AdvanceCampaigns{}),
		reactors.Every(messagingreact.TakeOverInterval, messagingreact.TakeOver{}),
		reactors.Every(messagingreact.HookInterval, messagingreact.RegisterWebhooks{}),
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
