package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain"
	"bahi/domain/ledger"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/internal/test/bench"
	"bahi/internal/test/starter"
	"bahi/projections"
	"bahi/projections/ledgerproj"
)

// maxRebuilds limits the duration of a run: a rebuild takes many times a round.
const maxRebuilds = 2

// rebuilds measures offline rebuilds of the books of the bank and of five ledgers, and one beside the live tables.
func (b *benchmark) rebuilds(ctx context.Context) error {
	for _, of := range []struct {
		name, title string
		ledgers     []*book.Ledger
		goal        *bench.Goal
	}{
		{"rebuild", "offline rebuild of the books", []*book.Ledger{bank.Ledger}, bench.AtLeast(0.4)},
		{"rebuild_five", "offline rebuild of five ledgers", ledger.All, bench.AtLeast(0.45)},
	} {
		url, err := b.database(ctx, of.name)
		if err != nil {
			return err
		}
		if err := b.onDatabase(ctx, url, func(sys *app.System) error {
			bar := progress.NewBar(os.Stderr, "making a log", "events")
			err := fillLog(ctx, sys, b.Rows, bar.Show, of.ledgers...)
			if bar.End(); err != nil {
				return err
			}
			return b.besideReading(ctx, sys, figure{name: of.name, title: of.title, number: bench.Rate, goal: of.goal}, func() error {
				return fold(ctx, sys)
			})
		}); err != nil {
			return err
		}
		if of.name == "rebuild" {
			if err := b.rebuildLive(ctx, url); err != nil {
				return err
			}
		}
	}
	return nil
}

// rebuildLive measures a rebuild beside the live tables, with the comparison, in its own process. It also measures the process's memory.
func (b *benchmark) rebuildLive(ctx context.Context, url string) error {
	var peak float64
	err := b.onDatabase(ctx, url, func(sys *app.System) error {
		f := figure{
			name: "rebuild_live", title: "rebuild of the books beside the live ones, compared with them", number: bench.Rate,
			goal: bench.AtLeast(0.45),
		}
		return b.besideReading(ctx, sys, f, func() error {
			cmd := exec.CommandContext(ctx, b.Bahi, "projections", "rebuild", ledgerproj.Books.Name, "--keep", "0s") //nolint:gosec // as above
			cmd.Env = starter.Env(b.data(), "DATABASE_URL="+url)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				return err
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for {
				select {
				case err := <-ended:
					if err != nil {
						err = fmt.Errorf("the rebuild ended with %w: %s", err, said.Bytes())
					}
					return err
				case <-time.After(lookInterval): // the kernel's figure after the child's end includes the parent's memory
					_, most := bench.MemoryOf(cmd.Process.Pid)
					peak = max(peak, most)
				}
			}
		})
	})
	if err == nil {
		b.value("rebuild_memory", "memory of the process that rebuilds", "MB", bench.AtMost(300), peak)
	}
	return err
}

// besideReading measures an operation on the whole log a few times. Before and after each, it reads and decodes the log, which is the
// minimum work of any fold.
func (b *benchmark) besideReading(ctx context.Context, sys *app.System, f figure, do func() error) error {
	head, err := sys.Store.Head(ctx)
	if err != nil {
		return err
	}
	once := func(do func() error) round {
		return func() (bench.Sample, error) {
			began := time.Now()
			err := do()
			return bench.Sample{Rate: float64(head) / time.Since(began).Seconds()}, err
		}
	}
	read := func() error {
		for e, err := range sys.Store.ReadAll(ctx, 0, eventstore.Forwards) {
			if err == nil {
				_, err = domain.Catalogue.Decode(e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	few := *b
	few.Rounds, f.unit = min(b.Rounds, maxRebuilds), "events/s"
	return few.compare(ctx, "reading and decoding the log", once(read), once(do), f)
}

// fold drops the live tables of the books, so that there is nothing to compare with, and rebuilds them.
func fold(ctx context.Context, sys *app.System) error {
	p := ledgerproj.Books
	all, err := projections.List(ctx, sys.Pool)
	if err != nil {
		return err
	}
	if err := pgx.BeginFunc(ctx, sys.Pool, func(tx pgx.Tx) error {
		for _, g := range all {
			if g.Name != p.Name {
				continue
			}
			if _, err := tx.Exec(ctx, `drop schema `+projections.SchemaName(g.Name, g.Generation)+` cascade`); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `delete from projection.generation where name = $1`, p.Name)
		return err
	}); err != nil {
		return err
	}
	return sys.Build(p).Run(ctx)
}
