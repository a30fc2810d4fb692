package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	proofs "bahi/eventstore/audit"
	"bahi/internal/app"
	"bahi/internal/cli/screen"
)

type verifyAudit struct {
	app.Settings

	Archive    string   `arg:"" optional:"" help:"The archive's folder."`
	Store      bool     `help:"Hash the log itself, and hold it against every checkpoint that was ever signed."`
	Checkpoint []string `placeholder:"FILE" type:"existingfile" help:"Checkpoints that you kept, in files. What you kept elsewhere is worth more than what lies beside the log."`
	Key        string   `placeholder:"FILE" type:"existingfile" help:"Public keys that you trust, as bahi audit key prints them. Without it, with --store, those of this installation."`
}

// mostNotes is how many checkpoints are held against a log at once. Each contains those before it, so that some spread
// over the log say as much.
const mostNotes = 50_000

var errNotVerified = errors.New("the log is not verified")

// Run prints what was found, and fails unless the log is verified.
func (c verifyAudit) Run(ctx context.Context) error {
	if (c.Archive == "") == !c.Store {
		return errors.New("name one of the two: an archive's folder, or the log with --store")
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
		fmt.Fprintln(c.Shell.Out, sentence)
	}
	if f := r.Finding; f != nil && f.First < f.Last {
		what := "archive " + c.Archive
		if c.Store {
			what = "store"
		}
		fmt.Fprintf(c.Shell.Out, "An archive from before names the very event: bahi-verify %s --compare ARCHIVE.\n", what)
	}
	switch r.Verdict() {
	case proofs.Verified:
		return nil
	case proofs.Undecided:
		return undecided{}
	default:
		return errNotVerified
	}
}

// undecided says that nothing speaks against the log, and not enough for it.
type undecided struct{}

func (undecided) Error() string { return errNotVerified.Error() }

// ExitCode is that of bahi-verify for the same verdict.
func (undecided) ExitCode() int { return 2 }

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
	bar := screen.NewBar(c.Shell.Err, "verifying", "events")
	defer bar.End()
	return a.Verify(ctx, trusted, kept, func(events uint64) { bar.Show(int64(events), int64(a.Manifest.Events)) })
}

func (c verifyAudit) store(ctx context.Context, trusted proofs.Keys) (r proofs.Result, err error) {
	sys, err := c.OpenBooks(ctx, false)
	if err != nil {
		return r, err
	}
	defer sys.Close()
	if err := sys.OwnLog(ctx); err != nil {
		return r, err
	}
	if c.Key == "" {
		if trusted, err = sys.Signer.Ring.Trusted(ctx); err != nil {
			return r, err
		}
	}
	origin := proofs.Origin(sys.Store.ID())
	kept, err := c.given(trusted, origin)
	if err != nil {
		return r, err
	}
	notes, all, err := sys.Proofs.Notes(ctx, mostNotes)
	if err != nil {
		return r, err
	}
	hidden, err := sys.Signer.Hidden(ctx)
	if err != nil {
		return r, err
	}
	for _, c := range hidden {
		notes = append(notes, []byte(c.Note))
	}
	own, wrong := trusted.Beside(origin, "signed by this installation", notes)
	kept = append(kept, own...)
	outside, err := sys.Signer.Outside(ctx)
	if err != nil {
		fmt.Fprintln(c.Shell.Err, "Not all checkpoints that are kept outside can be read:", err)
	}
	for _, c := range outside {
		signed, err := trusted.Collect(origin, c.Where, []byte(c.Note))
		if err != nil {
			return r, err
		}
		kept = append(kept, signed...)
	}
	own, err = ownTree(ctx, sys, kept)
	if err != nil {
		return r, err
	}
	head, err := sys.Store.Head(ctx)
	if err != nil {
		return r, err
	}
	bar := screen.NewBar(c.Shell.Err, "verifying", "events")
	defer bar.End()
	r, err = proofs.Verify(ctx, sys.Store.ReadAll(ctx, 0, eventstore.Forwards), proofs.Evidence{
		Kept: append(own, kept...), Tiles: sys.Tree, Sparse: c.EventStore != "", Progress: func(events uint64) { bar.Show(int64(events), int64(head)) },
	})
	if wrong != nil {
		r = r.Also(proofs.Falsified(wrong))
	}
	if c.EventStore == "" && err == nil {
		r, err = noneBefore(ctx, sys, r)
	}
	if err == nil {
		r, err = columns(ctx, sys, r)
	}
	if err == nil {
		r, err = projected(ctx, sys, r, head)
	}
	if err == nil {
		r, err = unsigned(ctx, sys, r, kept)
	}
	if n, counted := missing(ctx, sys); err == nil && n > 0 {
		fmt.Fprintf(c.Shell.Out, "%d numbers of checkpoints are missing: Postgres crashed, or somebody removed checkpoints.\n", n)
	} else {
		err = cmp.Or(err, counted)
	}
	if err != nil || all || r.Finding != nil {
		return r, err
	}
	return r, holdEvery(ctx, sys)
}

// noneBefore looks for events that are before the first position. Whoever reads the log passes over them, and whoever reads a
// stream does not.
func noneBefore(ctx context.Context, s *app.System, r proofs.Result) (proofs.Result, error) {
	var (
		n      int64
		e      proofs.Event
		lowest int64
	)
	err := s.Pool.QueryRow(ctx, `select count(*) over (), position, stream, revision, id, type from log.event where position < 1 order by position limit 1`).
		Scan(&n, &lowest, &e.Stream, &e.Revision, &e.ID, &e.Type)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("look before the first position: %w", err)
	}
	return r.Also(proofs.Finding{
		Kind: proofs.Inserted, First: 1, Last: 1, Event: &e, Why: fmt.Sprintf("It stands at position %d, where no event can be (events before position 1: %d).", lowest, n),
	}), nil
}

// holdEvery holds the log against the checkpoints one by one, where there are too many to do it at once.
func holdEvery(ctx context.Context, s *app.System) error {
	bar := screen.NewBar(s.Settings.Shell.Err, "holding against every checkpoint", "events")
	defer bar.End()
	found, err := s.Signer.Recount(ctx, func(done, total event.Position) { bar.Show(int64(done), int64(total)) })
	if err == nil && found.Broken > 0 {
		err = fmt.Errorf("TAMPERED. The log does not lead to %d checkpoints behind that of %d events", found.Broken, found.Kept.Size)
	}
	return err
}
