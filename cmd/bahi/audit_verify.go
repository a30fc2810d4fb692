package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	proofs "bahi/eventstore/audit"
)

type verifyAudit struct {
	settings

	Archive    string   `arg:"" optional:"" help:"The archive's folder."`
	Store      bool     `help:"Hash the log itself, and hold it against every checkpoint that was ever signed."`
	Checkpoint []string `placeholder:"FILE" type:"existingfile" help:"Checkpoints that you kept, in files. What you kept elsewhere is worth more than what lies beside the log."`
	Key        string   `placeholder:"FILE" type:"existingfile" help:"Public keys that you trust, as bahi audit key prints them. Without it, with --store, those of this installation."`
}

var errNotVerified = errors.New("the log is not verified")

// Run prints what was found, and fails unless the log is verified.
func (c verifyAudit) Run(ctx context.Context) error {
	if (c.Archive == "") == !c.Store {
		return errors.New("name an archive's folder, or the log with --store")
	}
	var trusted proofs.Keys
	if c.Key != "" {
		text, err := os.ReadFile(c.Key)
		if err != nil {
			return err
		}
		if trusted, err = proofs.ParseKeys(string(text)); err != nil {
			return err
		}
	}
	verify := c.archive
	if c.Store {
		verify = c.store
	}
	r, err := verify(ctx, trusted)
	if err != nil {
		return err
	}
	for _, sentence := range r.Sentences() {
		fmt.Println(sentence)
	}
	if r.Verdict() != proofs.Verified {
		return errNotVerified
	}
	return nil
}

// given are the checkpoints that the caller kept. They count, whoever signed them.
func (c verifyAudit) given(trusted proofs.Keys, origin string) (all []proofs.Kept, err error) {
	for _, path := range c.Checkpoint {
		text, err := os.ReadFile(path) //nolint:gosec // G304: the caller names it
		if err != nil {
			return nil, err
		}
		kept, err := trusted.Collect(origin, filepath.Base(path), text)
		if err != nil {
			return nil, err
		}
		if len(kept) == 0 {
			return nil, fmt.Errorf("%s has no checkpoint", path)
		}
		all = append(all, kept...)
	}
	return all, nil
}

func (c verifyAudit) archive(ctx context.Context, trusted proofs.Keys) (proofs.Result, error) {
	a, err := archive.Open(c.Archive)
	if err != nil {
		return proofs.Result{}, err
	}
	kept, err := c.given(trusted, proofs.Origin(a.StoreID))
	if err != nil {
		return proofs.Result{}, err
	}
	bar := newProgress("verifying", "events")
	defer bar.end()
	return a.Verify(ctx, trusted, kept, func(events uint64) { bar.show(int64(events), int64(a.Manifest.Events)) })
}

func (c verifyAudit) store(ctx context.Context, trusted proofs.Keys) (r proofs.Result, err error) {
	sys, err := c.openBooks(ctx, false)
	if err != nil {
		return r, err
	}
	defer sys.close()
	if c.Key == "" {
		if trusted, err = sys.signer.Ring.Trusted(ctx); err != nil {
			return r, err
		}
	}
	origin := proofs.Origin(sys.store.ID())
	kept, err := c.given(trusted, origin)
	if err != nil {
		return r, err
	}
	notes, all, err := sys.proofs.Notes(ctx, mostNotes)
	if err != nil {
		return r, err
	}
	for _, note := range notes {
		signed, err := trusted.Collect(origin, "signed by this installation", []byte(note))
		if err != nil {
			return r, fmt.Errorf("TAMPERED. A checkpoint in the database is not what was signed: %w", err)
		}
		kept = append(kept, proofs.BesideTheLog(signed)...)
	}
	if outside, where, err := sys.signer.Outside(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "The checkpoints that are kept outside cannot be read:", err)
	} else if outside != nil {
		signed, err := trusted.Collect(origin, where, []byte(outside.Note))
		if err != nil {
			return r, err
		}
		kept = append(kept, signed...)
	}
	head, err := sys.store.Head(ctx)
	if err != nil {
		return r, err
	}
	bar := newProgress("verifying", "events")
	defer bar.end()
	r, err = proofs.Verify(ctx, sys.store.ReadAll(ctx, 0, eventstore.Forwards), proofs.Evidence{
		Kept: kept, Tiles: sys.tree, Sparse: c.EventStore != "", Progress: func(events uint64) { bar.show(int64(events), int64(head)) },
	})
	if err != nil || all || r.Finding != nil {
		return r, err
	}
	return r, sys.holdEvery(ctx)
}

// holdEvery holds the log against the checkpoints one by one, where there are too many to do it at once.
func (s *system) holdEvery(ctx context.Context) error {
	bar := newProgress("holding against every checkpoint", "events")
	defer bar.end()
	found, err := s.signer.Recount(ctx, func(done, total event.Position) { bar.show(int64(done), int64(total)) })
	if err == nil && found.Broken > 0 {
		err = fmt.Errorf("TAMPERED. The log does not lead to %d checkpoints behind that of %d events", found.Broken, found.Kept.Size)
	}
	return err
}
