package app

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/eventstore/signal"
	"bahi/eventstore/tlog"
	"bahi/http/audithttp"
	"bahi/projections/auditproj"
	"bahi/projections/ledgerproj"
	"bahi/providers/blob"
	"bahi/readmodels/auditview"
)

// auditSettings configure the signing of checkpoints and their copies.
type auditSettings struct {
	AuditInterval   time.Duration `env:"BAHI_AUDIT_EVERY" default:"1s" help:"Time between two signed checkpoints, while events are written. Maximum 30s."`
	AuditKey        string        `env:"BAHI_AUDIT_KEY" placeholder:"BASE64" unit:"base64 of 32 bytes" help:"Key that signs checkpoints: an Ed25519 seed. Without it, the first start creates one and stores it in the vault."`
	AuditReread     bool          `env:"BAHI_AUDIT_REREAD" default:"true" negatable:"" help:"Read the whole log in the background at each start, and end the process if the log was rewritten."`
	AuditCopies     []string      `env:"BAHI_AUDIT_COPIES" placeholder:"PLACE" example:"s3://bucket?region=ap-south-1" help:"Targets for copies of every signed checkpoint: folders, buckets, or log for the program's log. Choose a target that Bahi's operators cannot rewrite."`
	AuditWitness    string        `env:"BAHI_AUDIT_WITNESS" placeholder:"URL" example:"https://witness.example.org" help:"Witness that also signs checkpoints (C2SP tlog-witness). Bahi appends /add-checkpoint to the URL."`
	AuditWitnessKey string        `env:"BAHI_AUDIT_WITNESS_KEY" placeholder:"NAME+ID+BASE64" example:"witness.example.org+c5afeb5a+Aa…" help:"Public key of the witness."`
}

// copiesToLog is the setting that writes copies to the program's own log.
const copiesToLog = "log"

// SeedOf decodes a key for checkpoints; nil for an empty text.
func SeedOf(setting, text string) (seeds [][]byte, err error) {
	if text == "" {
		return nil, nil
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s: expected base64 of %d bytes, as `openssl rand -base64 %d` prints them", setting, ed25519.SeedSize,
			ed25519.SeedSize)
	}
	return [][]byte{seed}, nil
}

// maxInterval limits BAHI_AUDIT_EVERY: a verifier treats an event without a checkpoint after a minute as one that lost it.
const maxInterval = 30 * time.Second

func (a auditSettings) check(ctx context.Context) error {
	var wrong []error
	for _, place := range a.AuditCopies {
		if !strings.Contains(place, "://") {
			continue // a folder, which would be created
		}
		bucket, err := openCopies(ctx, place)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("BAHI_AUDIT_COPIES: %w", err))
			continue
		}
		_ = bucket.Close() // it has not connected
	}
	if every := a.AuditInterval; every < 0 || every > maxInterval {
		wrong = append(wrong, fmt.Errorf("BAHI_AUDIT_EVERY: %s is not between 0s and %s", every, maxInterval))
	}
	_, seed := SeedOf("BAHI_AUDIT_KEY", a.AuditKey)
	_, witness := a.witnessKeys()
	return errors.Join(append(wrong, seed, checkURL("BAHI_AUDIT_WITNESS", a.AuditWitness), witness)...)
}

// witnessKeys returns the keys of the witness; none without one.
func (a auditSettings) witnessKeys() (keys tlog.Keys, err error) {
	if keys, err = tlog.ParseKeys(a.AuditWitnessKey); err != nil {
		return keys, fmt.Errorf("BAHI_AUDIT_WITNESS_KEY: %w", err)
	}
	if a.AuditWitness != "" && keys.Len() == 0 {
		return keys, errors.New("BAHI_AUDIT_WITNESS requires BAHI_AUDIT_WITNESS_KEY, the witness's public key")
	}
	return keys, nil
}

// joinAudit adds the signer of checkpoints. Before a system serves, it compares the log with the signed checkpoints.
func (s *System) joinAudit(ctx context.Context, serving bool) error {
	given, err := SeedOf("BAHI_AUDIT_KEY", s.Settings.AuditKey)
	if err != nil {
		return err
	}
	s.Tree = &auditview.Tree{Reader: s.reader(map[string]int{
		auditproj.Tree.Name: auditproj.Tree.Version, ledgerproj.Books.Name: ledgerproj.Books.Version,
	})}
	s.Proofs = &auditview.Proofs{Tree: s.Tree, DB: s.Pool, Log: s.reads}
	s.Signer = &auditproj.Signer{
		DB: s.Pool, Store: s.Store, Tables: s.Tree, Interval: s.Settings.AuditInterval, Now: time.Now, Log: s.Log,
		Ring: &auditproj.Ring{DB: s.Pool, Vault: s.Vault, Store: s.Store, Given: given, Now: time.Now},
	}
	if err := s.joinPublishers(ctx); err != nil || !serving {
		return err
	}
	if err := s.Signer.Ring.Ready(ctx); err != nil {
		return err
	}
	return s.Signer.Check(ctx)
}

// written returns the log for all writers. It refuses appends once the signer has detected that the log lost its tail.
func (s *System) written() eventstore.Store { return closable{s.Store, s.Signer} }

// closable is a log that refuses appends while the signer reports a lost tail.
type closable struct {
	eventstore.Store

	signer *auditproj.Signer
}

// Append implements [eventstore.Store].
func (c closable) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	if c.signer.Lost() != "" {
		return eventstore.Appended{}, errTailLost
	}
	return c.Store.Append(ctx, t)
}

// AppendEach implements [eventstore.Store].
func (c closable) AppendEach(ctx context.Context, appends []eventstore.Transaction) []eventstore.Result {
	if c.signer.Lost() == "" {
		return c.Store.AppendEach(ctx, appends)
	}
	refused := make([]eventstore.Result, len(appends))
	for i := range refused {
		refused[i].Err = errTailLost
	}
	return refused
}

// errTailLost refuses an append. HTTP clients get the fault; the gateway checks for eventstore.ErrClosed.
var errTailLost = fmt.Errorf("%w: %w", eventstore.ErrClosed,
	fault.New(fault.Unavailable, "The log lost events that were signed for: nothing is written until an operator has accepted it"))

// joinPublishers adds the destinations of checkpoints: the witness first, so that copies have its signature.
func (s *System) joinPublishers(ctx context.Context) error {
	if url := s.Settings.AuditWitness; url != "" {
		keys, err := s.Settings.witnessKeys()
		if err != nil {
			return err
		}
		s.Signer.Out = append(s.Signer.Out,
			&auditproj.Witness{URL: url, Keys: keys, Tables: s.Tree, DB: s.Pool, Client: &http.Client{Timeout: witnessTimeout}})
	}
	for _, place := range s.Settings.AuditCopies {
		if place == copiesToLog {
			s.Signer.Out = append(s.Signer.Out, auditproj.Printer{Log: s.Log})
			continue
		}
		bucket, err := openCopies(ctx, place)
		if err != nil {
			return fmt.Errorf("BAHI_AUDIT_COPIES: %w", err)
		}
		s.copies = append(s.copies, bucket)
		s.Signer.Out = append(s.Signer.Out, &auditproj.Copies{Bucket: bucket, Where: place, Origin: tlog.Origin(s.Store.ID())})
	}
	return nil
}

const witnessTimeout = 5 * time.Second

// openCopies opens a folder or a bucket. It signs no links.
func openCopies(ctx context.Context, place string) (*blob.Store, error) {
	if strings.Contains(place, "://") {
		return blob.Open(ctx, place, blob.Files{})
	}
	return blob.Open(ctx, "", blob.Files{Folder: place, BaseURL: OwnAddress, Key: make([]byte, KeySize)})
}

// reread compares the whole log with its checkpoints once, in the background. A start compares only the log's end. If the log was
// rewritten, reread returns an error, which ends the process. If the log becomes unreachable, reread starts again.
func (s *System) reread(ctx context.Context) error {
	for began := time.Now(); ; {
		agreed, err := s.Signer.Reread(ctx)
		rewritten := new(auditproj.ErrRewritten)
		switch {
		case err == nil:
			s.Log.Info("whole log read and checked", "as_signed", agreed, "took", time.Since(began).Round(time.Millisecond))
			return nil
		case errors.As(err, &rewritten):
			return err
		}
		if signal.Sleep(ctx, time.Second) != nil {
			return nil //nolint:nilerr // the server ends
		}
	}
}

// lastCheckpointTimeout limits the last checkpoint of a process. It fits into the ten seconds of a shutdown.
const lastCheckpointTimeout = 2 * time.Second

// signLast signs the newest events, once the tree has them.
func (s *System) signLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpointTimeout)
	defer cancel()
	head, err := s.Store.Head(ctx)
	for err == nil && s.Runner.Statuses()[auditproj.Tree.Name].Position < head {
		moved := s.Runner.Advanced()
		if s.Runner.Statuses()[auditproj.Tree.Name].Position >= head {
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil && head > 0 { // the signer may be signing now, and the end of the process would stop it
		err = s.UntilSigned(ctx)
	}
	if err != nil {
		s.Log.Warn("signing the newest events failed; they are signed after the next start", "error", err)
	}
}

// SignAll brings the tree to the log's head and signs it, unless a server has done so.
func (s *System) SignAll(ctx context.Context) error {
	if err := s.Signer.Ring.Ready(ctx); err != nil {
		return err
	}
	return s.WithProjections(ctx, s.UntilSigned, auditproj.Tree)
}

// SigningTimeout limits the wait until any process has signed the newest events.
const SigningTimeout = time.Minute

func (s *System) UntilSigned(ctx context.Context) error {
	head, err := s.Store.Head(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, SigningTimeout)
	defer cancel()
	for {
		signed, err := s.Signer.Sign(ctx)
		if err != nil {
			return err
		}
		if signed != nil {
			s.Signer.Publish(ctx, signed)
		}
		newest, err := s.Signer.Newest(ctx)
		if err != nil || head == 0 || newest != nil && newest.Position >= head {
			return err
		}
		if err := signal.Sleep(ctx, PollInterval); err != nil {
			return fmt.Errorf("sign the log: %w", err)
		}
	}
}

// PollInterval is the interval at which a command checks for the result of another process.
const PollInterval = 50 * time.Millisecond

// trail returns the report of changes in the books, with their actors.
func (s *System) trail() *audithttp.TrailReport {
	return &audithttp.TrailReport{
		Trails: &auditview.Trails{Reader: s.Ledger.Reader}, Books: s.Ledger, Log: s.reads, Signed: s.Proofs, Store: s.Store.ID(),
		Zone: s.Zone, Now: time.Now,
	}
}
