package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bahi/internal/bench"
)

const serverVariable = "EVENTSTORE_TEST_URL"

// journals measures Bahi with a journal of its log in the server that EVENTSTORE_TEST_URL names, or in a gateway, beside Bahi without one.
func (b *benchmark) journals(ctx context.Context) (err error) {
	url := os.Getenv(serverVariable)
	if url == "" {
		database, err := b.database(ctx, "journals")
		if err != nil {
			return err
		}
		sys, err := b.system(ctx, database)
		if err != nil {
			return err
		}
		defer sys.Close()
		d, err := b.openDoor(ctx, sys)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.stop()) }()
		url = d.url()
	}
	database, err := b.database(ctx, "books_with_journal")
	if err != nil {
		return err
	}
	data := filepath.Join(b.dir, "data_with_journal") // two servers do not share a folder
	s, err := b.serve(ctx, database, b.process(database, "EVENTSTORE_URL="+url, "BAHI_DATA="+data))
	if err != nil {
		return err
	}
	defer s.stop() //nolint:errcheck // a failure of its end is told by the next part
	accounts, err := s.openAccounts(ctx)
	if err != nil {
		return err
	}
	return b.onServer(ctx, "books_beside_journal", func(ctx context.Context, here *server, beside []int64) error {
		return b.postsWithJournal(ctx, s, here, accounts, beside)
	})
}

func (b *benchmark) postsWithJournal(ctx context.Context, s, here *server, accounts, beside []int64) error {
	post := func(s *server, accounts []int64, clients int) func() (bench.Sample, error) {
		load := bench.Load{Address: s.address, Clients: clients, For: b.Round, Requests: s.postings(accounts)}
		return func() (bench.Sample, error) { return load.Run(ctx) }
	}
	without, found, err := b.interleave(ctx, "journal, 1 client", post(here, beside, 1), post(s, accounts, 1))
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "journal_post_1", Title: "with a journal: POST of a row, 1 client: p50", Unit: "ms"},
		found[0].By(bench.P50), "without", without.By(bench.P50))
	for _, of := range []struct {
		clients int
		goal    float64
	}{{8, 0.5}, {64, 0.6}} {
		without, found, err := b.interleave(ctx, fmt.Sprintf("journal, %d clients", of.clients), post(here, beside, of.clients), post(s, accounts, of.clients))
		if err != nil {
			return err
		}
		title := fmt.Sprintf("with a journal: POST of rows, %d clients", of.clients)
		b.conclude(bench.Figure{Name: fmt.Sprintf("journal_post_%d", of.clients), Title: title, Unit: "/s", Goal: bench.AtLeast(of.goal)},
			found[0].By(bench.Rate), "without", without.By(bench.Rate))
		b.conclude(bench.Figure{Name: fmt.Sprintf("journal_post_%d_p99", of.clients), Title: title + ": p99", Unit: "ms"}, found[0].By(bench.P99), "", nil)
	}
	return nil
}
