package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"bahi/internal/test/bench"
)

// nodes measures two processes on one database and the same processors. It shows the cost of sharing: the lock on the log's head, and
// smaller groups of appends.
func (b *benchmark) nodes(ctx context.Context, s *server) error {
	master, err := os.ReadFile(filepath.Join(s.data, "keys", "master.key"))
	if err != nil {
		return err
	}
	second, err := b.serve(ctx, s.url, s.data+"_of_second", "BAHI_MASTER_KEY="+strings.TrimSpace(string(master)))
	if err != nil {
		return err
	}
	measure := func() error {
		accounts, err := s.openAccounts(ctx)
		if err != nil {
			return err
		}
		one := b.load(s, 64, s.postings(accounts))
		two := one
		two.Others = []string{second.address}
		if err := warm(rounds(ctx, two)); err != nil {
			return err
		}
		const title = "POST of a row, 64 clients, over two nodes on the same processors"
		return b.compare(ctx, "one node", rounds(ctx, one), rounds(ctx, two),
			figure{name: "nodes", title: title, number: bench.Rate, goal: bench.AtLeast(0.95)},
			figure{name: "nodes_p99", title: "the same: p99", number: bench.P99})
	}
	return errors.Join(measure(), second.stop())
}

// journal compares Bahi with and without a journal of its log. The journal is in the server that EVENTSTORE_TEST_URL names, or in the
// gateway of another Bahi.
func (b *benchmark) journal(ctx context.Context, s *server) error {
	address := os.Getenv("EVENTSTORE_TEST_URL")
	if address == "" {
		return b.besideGateway(ctx, func(address string) error { return b.withJournal(ctx, s, address) })
	}
	return b.withJournal(ctx, s, address)
}

// besideGateway starts a Bahi with a gateway.
func (b *benchmark) besideGateway(ctx context.Context, measure func(address string) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	database, err := b.database(ctx, "journals")
	if err = errors.Join(err, listener.Close()); err != nil { // frees the port for the gateway
		return err
	}
	data := filepath.Join(b.dir, "journals")
	g, err := b.serve(ctx, database, data, "BAHI_GATEWAY_GRPC_ADDR="+address, "BAHI_GATEWAY_WRITE=true")
	if err != nil {
		return err
	}
	return errors.Join(measure("esdb://"+url.UserPassword("bench", operatorKey).String()+"@"+address+
		"?tlsCAFile="+url.QueryEscape(filepath.Join(data, "gateway", "ca.crt"))), g.stop())
}

func (b *benchmark) withJournal(ctx context.Context, without *server, address string) error {
	database, err := b.database(ctx, "with_journal")
	if err != nil {
		return err
	}
	with, err := b.serve(ctx, database, filepath.Join(b.dir, "with_journal"), "EVENTSTORE_URL="+address)
	if err != nil {
		return err
	}
	measure := func() error {
		theirs, err := without.openAccounts(ctx)
		if err != nil {
			return err
		}
		ours, err := with.openAccounts(ctx)
		if err != nil {
			return err
		}
		for clients, goal := range map[int]*bench.Goal{1: nil, 8: bench.AtLeast(0.5), 64: bench.AtLeast(0.6)} {
			title := fmt.Sprintf("with a journal: POST of a row, %d clients", clients)
			name := fmt.Sprintf("journal_post_%d", clients)
			if err := b.compare(ctx, "without", rounds(ctx, b.load(without, clients, without.postings(theirs))),
				rounds(ctx, b.load(with, clients, with.postings(ours))),
				figure{name: name, title: title, number: bench.Rate, goal: goal},
				figure{name: name + "_p99", title: title + ": p99", number: bench.P99}); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.Join(measure(), with.stop())
}
