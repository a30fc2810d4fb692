// Package doctor has the command that folds the log again, compares it with every table, and checks the rules between records.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/laws"
	"bahi/domain/ledger/period"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/internal/ocrtools"
	"bahi/projections"
)

type Command struct {
	app.Settings

	Names      []string `arg:"" optional:"" help:"Names of projections. Without one, all."`
	Partitions int      `placeholder:"N" help:"Parallel parts of the fill, if the projection allows it. Without it, by the number of processors."`
}

// Run folds the log again and compares. Without names it also checks the rules between records. It fails when a table differs
// from the log, or the log breaks a rule.
func (c Command) Run(ctx context.Context, sys *app.System) error {
	chosen, err := app.ProjectionsNamed(c.Names)
	if err != nil {
		return err
	}
	if err := sys.CatchUp(ctx, chosen...); err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "scanned pages: %s\n", ocrtools.Look(ctx))
	err = examine(ctx, sys, c.Shell.Out, projections.BuildOptions{Partitions: c.Partitions}, chosen...)
	if len(c.Names) > 0 || err != nil && !errors.Is(err, app.ErrDifferent) {
		return err
	}
	return errors.Join(err, Judge(sys.Store.ReadAll(ctx, 0, eventstore.Forwards), c.Shell.Out))
}

// ErrBroken reports that a log breaks a rule between records.
var ErrBroken = errors.New("the log breaks rules between records")

// maxBroken is the maximum number of listed breaches.
const maxBroken = 20

// Judge checks that a log keeps the rules between records. If not, it returns ErrBroken. It does not check a log without its first events,
// because they may have created records. It does not check an incomplete last transaction.
func Judge(log iter.Seq2[event.Stored, error], out io.Writer) error {
	var (
		checker     = laws.New()
		broken      int
		last, whole event.Position // ends of all events, and of whole transactions
		seals       []event.Recorded[any]
	)
	list := func(breaches ...laws.Breach) {
		for _, b := range breaches {
			if broken++; broken <= maxBroken {
				fmt.Fprintf(out, "laws: position %d, %s: %s\n", b.Position, b.Stream, b.Law)
			}
		}
	}
	for stored, err := range log {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if last == 0 && stored.Position != 1 {
			fmt.Fprintf(out, "laws: not checked, because the log begins at position %d\n", stored.Position)
			return nil
		}
		last = stored.Position
		category, _ := event.SplitStream(stored.Stream)
		var breaches []laws.Breach
		if _, known := domain.Catalogue.Lookup(stored.Type); known && laws.Reads(category) {
			e, err := domain.Catalogue.Decode(stored)
			if err != nil {
				return err
			}
			breaches = checker.Next(e)
			if _, is := e.Data.(period.Closed); is {
				seals = append(seals, e)
			}
		}
		if event.More(stored.Meta) == 0 {
			breaches, whole = append(breaches, checker.Commit()...), last
		}
		list(breaches...)
	}
	wrong, err := wrongRoots(log, seals)
	if err != nil {
		return err
	}
	list(wrong...)
	if whole != last {
		fmt.Fprintf(out, "laws: the transaction after position %d is incomplete, and not checked\n", whole)
	}
	if broken > 0 {
		fmt.Fprintf(out, "laws: broken %d times up to position %d\n", broken, whole)
		return ErrBroken
	}
	fmt.Fprintf(out, "laws: the log keeps the rules between records up to position %d\n", whole)
	return nil
}

// wrongRoots reads the log again. It returns a breach for each closed period with another root of the log in its seal.
func wrongRoots(log iter.Seq2[event.Stored, error], seals []event.Recorded[any]) (wrong []laws.Breach, err error) {
	var (
		tree   tlog.Tree
		hasher tlog.Hasher
	)
	slices.SortStableFunc(seals, func(a, b event.Recorded[any]) int { return cmp.Compare(sealOf(a).Position, sealOf(b).Position) })
	check := func(before event.Position) {
		for ; len(seals) > 0 && sealOf(seals[0]).Position < before; seals = seals[1:] {
			if s := sealOf(seals[0]); s.LogSize != tree.Size() || s.LogRoot != tree.Root().String() {
				wrong = append(wrong, laws.Breach{Position: seals[0].Position, Stream: seals[0].Stream, Law: "a closed period has the root of the log"})
			}
		}
	}
	if len(seals) == 0 {
		return nil, nil
	}
	for e, err := range log {
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		if check(e.Position); len(seals) == 0 {
			return wrong, nil
		}
		tree.Append(hasher.Leaf(e))
	}
	check(math.MaxInt64)
	return wrong, nil
}

func sealOf(e event.Recorded[any]) period.Seal { return e.Data.(period.Closed).Seal } //nolint:forcetypeassert // only such are listed

// examine compares projections with the log, as many at once as there are processors, and prints its findings. It fails if a table differs
// from the log.
func examine(ctx context.Context, s *app.System, out io.Writer, how projections.BuildOptions, chosen ...*projections.Projection) error {
	bars := progress.NewBars(s.Settings.Shell.Err, "events")
	reports := make([]string, len(chosen))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	var different atomic.Bool
	for i, p := range chosen {
		group.Go(func() error {
			began := time.Now()
			build := s.Build(p)
			build.How = how
			build.Progress = func(now projections.Progress) {
				bars.Show(p.Name, p.Name+": "+now.Phase, int64(now.Done), int64(now.Total), 0)
			}
			found, err := build.Examine(ctx)
			bars.Done(p.Name)
			if err != nil {
				return fmt.Errorf("examine %s: %w", p.Name, err)
			}
			for _, d := range found.Differences {
				different.Store(true)
				reports[i] += fmt.Sprintf("%s: %s\n", p.Name, d)
			}
			if len(found.Differences) == 0 {
				reports[i] = fmt.Sprintf("%s: generation %d agrees with the log, %d rows at position %d (%s)\n",
					p.Name, found.Generation, found.Rows, found.Position, time.Since(began).Round(time.Millisecond))
			}
			return nil
		})
	}
	err := group.Wait()
	bars.End()
	for _, report := range reports {
		fmt.Fprint(out, report)
	}
	if err == nil && different.Load() {
		err = app.ErrDifferent
	}
	return err
}
