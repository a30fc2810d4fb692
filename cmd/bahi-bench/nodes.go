package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"bahi/internal/bench"
)

// nodes measures two processes on one database and the same processors. It shows the cost of sharing: the lock on the log's head,
// and smaller groups of appends.
func (b *benchmark) nodes(ctx context.Context) (err error) {
	url, err := b.database(ctx, "nodes")
	if err != nil {
		return err
	}
	b.sayf("starting two servers")
	first, err := b.serve(ctx, url, b.process(url))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.stop()) }()
	second, err := b.serveBeside(ctx, url, b.data())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.stop()) }()
	accounts, err := first.openAccounts(ctx)
	if err != nil {
		return err
	}
	load := bench.Load{Address: first.address, Clients: postClients, For: b.Round, Requests: first.postings(accounts)}
	one := func() (bench.Sample, error) { return load.Run(ctx) }
	shared := load
	shared.Others = []string{second.address}
	two := func() (bench.Sample, error) { return shared.Run(ctx) }
	if _, err := two(); err != nil { // warm up: servers that have just started are slower
		return err
	}
	limit, found, err := b.interleave(ctx, "POST of rows, to one node and to two", one, two)
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "nodes", Title: "POST of a row, 64 clients, over two nodes on the same processors", Unit: "/s", Goal: bench.AtLeast(0.7)},
		found[0].By(bench.Rate), "one node", limit.By(bench.Rate))
	b.conclude(bench.Figure{Name: "nodes_p99", Title: "the same: p99", Unit: "ms"}, found[0].By(bench.P99), "one node", limit.By(bench.P99))
	return nil
}

// serveBeside starts a server beside another one, with the master key in that one's folder and further settings.
func (b *benchmark) serveBeside(ctx context.Context, url, data string, more ...string) (*server, error) {
	master, err := os.ReadFile(filepath.Join(data, "keys", "master.key")) //nolint:gosec // G304: of a server that the run has started
	if err != nil {
		return nil, err
	}
	return b.serve(ctx, url, b.process(url, append(more, "BAHI_DATA="+data+"_of_second", "BAHI_MASTER_KEY="+strings.TrimSpace(string(master)))...))
}
