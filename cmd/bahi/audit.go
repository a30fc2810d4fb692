package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	proofs "bahi/eventstore/audit"
	audittables "bahi/projections/audit"
	"bahi/providers/blob"
	auditviews "bahi/readmodels/audit"
)

// auditSettings say who signs what the log holds, and who else gets to know of it.
type auditSettings struct {
	AuditKey        string   `env:"BAHI_AUDIT_KEY" placeholder:"BASE64" help:"Key that checkpoints are signed with: an Ed25519 seed of 32 bytes. Without it, one is made at the first start and kept in the vault."`
	AuditReread     bool     `env:"BAHI_AUDIT_REREAD" default:"true" negatable:"" help:"Whether a start reads the whole log behind the first requests, and ends if it is not what was signed."`
	AuditCopies     []string `env:"BAHI_AUDIT_COPIES" placeholder:"PLACE" help:"Where every checkpoint is copied to: folders, s3://bucket?region=…, or log: the program's own log. A place that whoever runs this cannot rewrite is worth the most."`
	AuditWitness    string   `env:"BAHI_AUDIT_WITNESS" placeholder:"URL" help:"A witness that signs checkpoints too (C2SP tlog-witness); /add-checkpoint is added."`
	AuditWitnessKey string   `env:"BAHI_AUDIT_WITNESS_KEY" placeholder:"KEY" help:"The witness's public key: <name>+<id>+<base64>."`
}

// copiesToLog is the place that stands for the program's own log.
const copiesToLog = "log"

// seedOf reads a key of checkpoints, none if there is none.
func seedOf(setting, text string) (seeds [][]byte, err error) {
	if text == "" {
		return nil, nil
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s: expected base64 of %d bytes, as `openssl rand -base64 %d` prints them", setting, ed25519.SeedSize, ed25519.SeedSize)
	}
	return [][]byte{seed}, nil
}

// joinAudit adds who signs checkpoints. Before a system serves, its log is held against what was signed.
func (s *system) joinAudit(ctx context.Context, serving bool) error {
	given, err := seedOf("BAHI_AUDIT_KEY", s.settings.AuditKey)
	if err != nil {
		return err
	}
	s.tree = &auditviews.Tree{DB: s.pool, Version: audittables.Tree.Version}
	s.proofs = &auditviews.Proofs{Tree: s.tree, DB: s.pool, Log: viewedLog{s.store}}
	s.signer = &audittables.Signer{
		DB: s.pool, Store: s.store, Tables: s.tree, Now: time.Now, Log: s.log,
		Ring: &audittables.Ring{DB: s.pool, Vault: s.vault, Store: s.store, Given: given, Now: time.Now},
	}
	if err := s.joinOutlets(ctx); err != nil || !serving {
		return err
	}
	if err := s.signer.Ring.Ready(ctx); err != nil {
		return err
	}
	return s.signer.Check(ctx)
}

// joinOutlets adds where checkpoints are brought: first to the witness, so that copies have its signature.
func (s *system) joinOutlets(ctx context.Context) error {
	if url := s.settings.AuditWitness; url != "" {
		keys, err := proofs.ParseKeys(s.settings.AuditWitnessKey)
		if err != nil {
			return fmt.Errorf("BAHI_AUDIT_WITNESS_KEY: %w", err)
		}
		if keys.Len() == 0 {
			return errors.New("BAHI_AUDIT_WITNESS wants BAHI_AUDIT_WITNESS_KEY, the public key by which its signatures are known")
		}
		s.signer.Out = append(s.signer.Out, &audittables.Witness{URL: url, Keys: keys, Tables: s.tree, DB: s.pool, Client: &http.Client{Timeout: witnessWithin}})
	}
	for _, place := range s.settings.AuditCopies {
		if place == copiesToLog {
			s.signer.Out = append(s.signer.Out, audittables.Printer{Log: s.log})
			continue
		}
		bucket, err := openCopies(ctx, place)
		if err != nil {
			return fmt.Errorf("BAHI_AUDIT_COPIES: %w", err)
		}
		s.copies = append(s.copies, bucket)
		s.signer.Out = append(s.signer.Out, &audittables.Copies{Bucket: copiesBucket{bucket}, Where: place, Origin: proofs.Origin(s.store.ID())})
	}
	return nil
}

const witnessWithin = 5 * time.Second

// openCopies opens a folder or a bucket. Nobody is given links into it.
func openCopies(ctx context.Context, place string) (*blob.Store, error) {
	if strings.Contains(place, "://") {
		return blob.Open(ctx, place, blob.Files{})
	}
	return blob.Open(ctx, "", blob.Files{Folder: place, BaseURL: ownAddress, Key: make([]byte, keySize)})
}

// copiesBucket joins what copies want of a bucket to the store of blobs.
type copiesBucket struct{ *blob.Store }

// Get implements the copies' Bucket.
func (b copiesBucket) Get(ctx context.Context, key string) ([]byte, error) {
	data, _, err := b.Store.Get(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, nil
	}
	return data, err
}

// reread reads the whole log once, behind the requests, and ends the process if it was rewritten: what a start refuses that
// looks at its end. Where the log is away it begins again.
func (s *system) reread(ctx context.Context) error {
	for began := time.Now(); ; {
		agreed, err := s.signer.Reread(ctx)
		rewritten := new(audittables.ErrRewritten)
		switch {
		case err == nil:
			s.log.Info("the log was read as a whole", "as_signed", agreed, "took", time.Since(began).Round(time.Millisecond))
			return nil
		case errors.As(err, &rewritten):
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// lastCheckpointWithin is how long the last checkpoint of a process may take; it fits the ten seconds of a shutdown.
const lastCheckpointWithin = 2 * time.Second

// signLast signs what was written up to the end, once the tree has it.
func (s *system) signLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpointWithin)
	defer cancel()
	head, err := s.store.Head(ctx)
	for err == nil && s.runner.Statuses()[audittables.Tree.Name].Position < head {
		moved := s.runner.Moved()
		if s.runner.Statuses()[audittables.Tree.Name].Position >= head {
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil && head > 0 { // the signer's own turn may be under way, and ends with the process: it is waited for, not passed over
		err = s.untilSigned(ctx)
	}
	if err != nil {
		s.log.Warn("what was written last is signed at the next start", "error", err)
	}
}
