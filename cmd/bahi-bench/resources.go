package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/pgcluster"
	"bahi/internal/test/bench"
)

// bytes measures the bytes of a row in tables and in the WAL, for Bahi and the hand-written ledger.
func (b *benchmark) bytes(ctx context.Context, s *server) error {
	return b.besideHandWritten(ctx, func(anchor *server, _ *pgcluster.Cluster) error {
		for _, of := range []struct {
			s           *server
			name, title string
			disk, wal   *bench.Goal
			after       func(context.Context) error
		}{
			{s, "bytes", "bytes of a row", bench.AtMost(900), bench.AtMost(1400), s.after(folding)},
			{anchor, "bytes_of_anchor", "bytes of a row, hand-written", nil, nil, func(context.Context) error { return nil }},
		} {
			load := b.load(of.s, 64, of.s.postings(of.s.accounts))
			if err := warm(rounds(ctx, load)); err != nil {
				return err
			}
			b.sayf("%s: rows for %s", of.title, b.Sustain)
			load.For = b.Sustain
			var sample bench.Sample
			disk, wal, err := grown(ctx, of.s.url, func() (err error) {
				if sample, err = load.Run(ctx); err == nil {
					err = of.after(ctx)
				}
				return err
			})
			if err != nil {
				return err
			}
			b.value(of.name+"_disk", of.title+" on disk", "bytes", of.disk, disk/float64(sample.Requests))
			b.value(of.name+"_wal", of.title+" in the WAL", "bytes", of.wal, wal/float64(sample.Requests))
		}
		return nil
	})
}

// grown returns by how many bytes a database and the WAL of its Postgres grew during an operation.
func grown(ctx context.Context, url string, do func() error) (disk, wal float64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(ctx) //nolint:errcheck // the connection is discarded
	sizes := func() (disk, wal float64, err error) {
		err = conn.QueryRow(ctx, `select pg_database_size(current_database())::float8, (pg_current_wal_lsn() - '0/0')::float8`).Scan(&disk, &wal)
		return disk, wal, err
	}
	diskBefore, walBefore, err := sizes()
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, 0, err
	}
	disk, wal, err = sizes()
	return disk - diskBefore, wal - walBefore, err
}

// idle measures a server without requests.
func (b *benchmark) idle(ctx context.Context, s *server) error {
	if err := s.after(folding)(ctx); err != nil {
		return err
	}
	memory, _ := bench.MemoryOf(s.pid)
	b.value("idle_memory", "resident memory of a server without requests", "MB", bench.AtMost(150), memory)
	if !hasProcessorTime {
		return nil
	}
	time.Sleep(2 * time.Second) // until the start's work has ended
	b.sayf("a server without requests for %s", b.Sustain)
	server, err := bench.ProcessorTime(s.pid)
	both, failed := processorTime(s.pid, b.cluster.PID())
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	time.Sleep(b.Sustain)
	serverAfter, err := bench.ProcessorTime(s.pid)
	bothAfter, failed := processorTime(s.pid, b.cluster.PID())
	share := func(d time.Duration) float64 { return 100 * d.Seconds() / b.Sustain.Seconds() }
	b.value("idle_processor", "processor of a server without requests", "% of a core", bench.AtMost(0.5), share(serverAfter-server))
	b.value("idle_processor_both", "the same, with its Postgres", "% of a core", nil, share(bothAfter-both))
	return errors.Join(err, failed)
}
