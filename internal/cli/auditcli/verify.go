package auditcli

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
	"bahi/internal/app"
	"bahi/internal/cli/doctor"
	"bahi/internal/cli/progress"
)

type verifyAudit struct {
	app.Settings

	Archive    string   `arg:"" optional:"" help:"The archive's folder. The rules between records are checked too."`
	Store      bool     `help:"Hash the log itself and compare it with every signed checkpoint."`
	Checkpoint []string `placeholder:"FILE" type:"existingfile" sep:"none" help:"Files with checkpoints that you kept. A checkpoint kept elsewhere proves more than one beside the log."`
	Key        string   `placeholder:"FILE" type:"existingfile" help:"Public keys that you trust, as bahi audit key prints them. Without it, with --store, those of this installation."`
}

// maxNotes limits the checkpoints in one comparison with a log. Each covers all events before it, so a sample over the log proves as much.
const maxNotes = 50_000

var (
	errNotVerified = errors.New("the log is not verified")
	errUndecided   = errors.New("the log is not verified")
)

// Run prints the verdict, and fails unless the log is verified. The status is 1 only if the log was tampered with, because scripts rely on
// it.
func (c verifyAudit) Run(ctx context.Context) error {
	err := c.run(ctx)
	if errors.As(err, new(unlawful)) {
		return err
	}
	if _, broken := errors.AsType[*archive.CorruptError](err); err == nil || broken || errors.Is(err, errNotVerified) {
		return err
	}
	return undecided{err}
}

func (c verifyAudit) run(ctx context.Context) error {
	if (c.Archive == "") == !c.Store {
		return errors.New("name one of the two: an archive's folder, or the log with --store")
	}
	var keys []string
	if c.Key != "" {
		keys = []string{c.Key}
	}
	given, err := archive.ReadGiven(keys, c.Checkpoint)
	if err != nil {
		return err
	}
	verify := c.archive
	if c.Store {
		verify = c.store
	}
	r, err := verify(ctx, given)
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
	if c.Archive != "" && r.Verdict() != tlog.Tampered {
		if err := c.judge(ctx); err != nil {
			return err
		}
	}
	switch r.Verdict() {
	case tlog.Verified:
		return nil
	case tlog.Undecided:
		return errUndecided
	default:
		return errNotVerified
	}
}

// undecided is the error of missing or unreadable evidence.
type undecided struct{ error }

// ExitCode returns bahi-verify's status for this verdict.
func (undecided) ExitCode() int { return 2 }

// unlawful is the error of an archive that breaks rules between records and has no sign of tampering.
type unlawful struct{ error }

// ExitCode returns a status that no verdict on the evidence has.
func (unlawful) ExitCode() int { return 3 }

// judge checks the rules between records, as doctor does for a log.
func (c verifyAudit) judge(ctx context.Context) error {
	a, err := archive.Open(c.Archive)
	if err != nil {
		return err
	}
	if err = doctor.Judge(a.Events(ctx), c.Shell.Out); errors.Is(err, doctor.ErrBroken) {
		err = unlawful{err}
	}
	return err
}

func (c verifyAudit) archive(ctx context.Context, given archive.Given) (tlog.Result, error) {
	a, err := archive.Open(c.Archive)
	if err != nil {
		return tlog.Result{}, err
	}
	bar := progress.NewBar(c.Shell.Err, "verifying", "events")
	defer bar.End()
	report, err := archive.Examine(ctx, a.Source(c.Archive), given, nil, func(_ string, events uint64) {
		bar.Show(int64(events), int64(a.Manifest.Events))
	})
	if err != nil {
		return tlog.Result{}, err
	}
	return *report.Result, nil
}

func (c verifyAudit) store(ctx context.Context, given archive.Given) (r tlog.Result, err error) {
	sys, err := c.OpenBooks(ctx, false)
	if err != nil {
		return r, err
	}
	defer sys.Close()
	if c.Key == "" {
		if given.Keys, err = sys.Signer.Ring.Trusted(ctx); err != nil {
			return r, err
		}
	}
	origin := tlog.Origin(sys.Store.ID())
	kept, err := given.Kept(origin)
	if err != nil {
		return r, err
	}
	notes, all, err := sys.Proofs.Notes(ctx, maxNotes)
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
	own, wrong := given.Keys.ParseBundled(origin, "signed by this installation", notes)
	kept = append(kept, own...)
	outside, err := sys.Signer.Outside(ctx)
	if err != nil {
		fmt.Fprintln(c.Shell.Err, "Some outside copies of checkpoints cannot be read:", err)
	}
	for _, c := range outside {
		signed, err := given.Keys.Collect(origin, c.Where, []byte(c.Note))
		if err != nil {
			return r, err
		}
		kept = append(kept, signed...)
	}
	own, err = ownTree(ctx, sys, kept)
	if errors.Is(err, tlog.ErrIncomplete) { // an attacker who removed events may have removed tiles too
		fmt.Fprintf(c.Shell.Out, "The tree beside the log is no evidence: %s. bahi projections rebuild audit rebuilds it.\n", err)
	} else if err != nil {
		return r, err
	}
	head, err := sys.Store.Head(ctx)
	if err != nil {
		return r, err
	}
	bar := progress.NewBar(c.Shell.Err, "verifying", "events")
	defer bar.End()
	r, err = tlog.Verify(ctx, sys.Store.ReadAll(ctx, 0, eventstore.Forwards), tlog.Evidence{
		Kept: append(own, kept...), Tiles: sys.Tree, Progress: func(events uint64) { bar.Show(int64(events), int64(head)) },
	})
	if wrong != nil {
		r = r.Also(tlog.Falsified(wrong))
	}
	if err == nil {
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
	if err == nil {
		r, err = missing(ctx, sys, r)
	}
	if err == nil {
		r, err = emptied(ctx, sys, r)
	}
	if err != nil || all || r.Finding != nil {
		return r, err
	}
	return r, holdAtInterval(ctx, sys)
}

// noneBefore looks for events before the first position. Readers of the log skip such events, readers of a stream do not.
func noneBefore(ctx context.Context, s *app.System, r tlog.Result) (tlog.Result, error) {
	var (
		n      int64
		e      tlog.Event
		lowest int64
	)
	err := s.Pool.QueryRow(ctx, `select count(*) over (), position, stream, revision, id, type from log.event where position < 1
		order by position limit 1`).
		Scan(&n, &lowest, &e.Stream, &e.Revision, &e.ID, &e.Type)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("find events before position 1: %w", err)
	}
	return r.Also(tlog.Finding{
		Kind: tlog.Inserted, First: 1, Last: 1, Event: &e,
		Reason: fmt.Sprintf("It is at position %d, where no event can be (events before position 1: %d).", lowest, n),
	}), nil
}

// holdAtInterval compares the log with every checkpoint, after a pass with a sample of them.
func holdAtInterval(ctx context.Context, s *app.System) error {
	bar := progress.NewBar(s.Settings.Shell.Err, "comparing with every checkpoint", "events")
	defer bar.End()
	found, err := s.Signer.Recount(ctx, func(done, total event.Position) { bar.Show(int64(done), int64(total)) })
	if err == nil && found.Broken > 0 {
		err = fmt.Errorf("TAMPERED. The log does not match %d checkpoints older than the checkpoint of %d events", found.Broken, found.Kept.Size)
	}
	return err
}
