package main

import (
	"context"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// part is a part of the benchmark.
type part struct {
	of    string   // what it measures, in the help
	names []string // of its figures
	run   func(*benchmark, context.Context) error
	asked bool // it takes long, and runs only where it is named
}

// parts are in the order in which they run.
var parts = []part{
	{of: "the log", names: []string{"store", "busy"}, run: (*benchmark).appends},
	{of: "rows", names: []string{"post", "bulk"}, run: func(b *benchmark, ctx context.Context) error { return b.onServer(ctx, "http", b.requests) }},
	{of: "rows with a key, beside a lock and beside bulks", names: []string{"beside"}, run: func(b *benchmark, ctx context.Context) error {
		return b.onServer(ctx, "beside", b.disturbed)
	}},
	{of: "rows beside a hand-written ledger", names: []string{"handwritten"}, run: (*benchmark).handWritten},
	{of: "a thousand accounts", names: []string{"shop", "mix", "single", "few"}, run: (*benchmark).shop},
	{of: "the books", names: []string{"rebuild", "doctor", "page", "edit", "balance"}, run: (*benchmark).books},
	{of: "the audit log", names: []string{"verify", "proof", "tree"}, run: (*benchmark).audits},
	{of: "two nodes", names: []string{"nodes"}, run: (*benchmark).nodes},
	{of: "the gateway", names: []string{"gateway"}, run: (*benchmark).gateways},
	{of: "a journal, in the EventStoreDB that EVENTSTORE_TEST_URL names or in a gateway", names: []string{"journal"}, run: (*benchmark).journals},
	{of: "memory", names: []string{"memory"}, run: (*benchmark).memory},
	{of: "the party ledgers", names: []string{"party"}, run: (*benchmark).party},
	{of: "many accounts", names: []string{"karigars", "summary"}, run: (*benchmark).manyAccounts},
	{of: "all five ledgers", names: []string{"workshop"}, run: (*benchmark).workshop},
	{of: "documents", names: []string{"sheets"}, run: (*benchmark).sheets},
	{of: "orders by chat", names: []string{"webhook", "rules", "drafts"}, run: (*benchmark).chat},
	{of: "scanned pages", names: []string{"ocr"}, run: (*benchmark).scans},
	{of: "the marketplace", names: []string{"search", "catalog", "feed", "import", "enquiries"}, run: (*benchmark).market},
	{of: "conversations", names: []string{"send", "inbound", "history", "followers"}, run: (*benchmark).conversations},
	{of: "campaigns", names: []string{"broadcast", "receipts", "inbox", "audience"}, run: (*benchmark).campaigns},
	{of: "bots", names: []string{"ingest", "answer", "overhead", "talks"}, run: (*benchmark).bots},
	{of: "retrieval", names: []string{"retrieval"}, run: (*benchmark).retrieval},
	{of: "a rebuild of ten times as many events, only where it is named", names: []string{"long"}, run: (*benchmark).long, asked: true},
	{of: "a busy evening over the demo, ten times --sustain, only where it is named", names: []string{"evening"}, run: (*benchmark).evening, asked: true},
}

// partVars are what the command line's help and checks know of the parts.
func partVars() kong.Vars {
	var names, about []string
	for _, p := range parts {
		names = append(names, p.names...)
		about = append(about, p.of+": "+strings.Join(p.names, ", "))
	}
	return kong.Vars{"parts": strings.Join(names, ","), "about_parts": strings.Join(about, "; ")}
}

// runParts runs the wanted ones.
func (b *benchmark) runParts(ctx context.Context) error {
	for _, p := range parts {
		if p.asked && len(b.Only) == 0 || !slices.ContainsFunc(p.names, b.wanted) {
			continue
		}
		if err := p.run(b, ctx); err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether a figure of a part that runs is to be measured.
func (b *benchmark) wanted(name string) bool {
	return len(b.Only) == 0 || slices.Contains(b.Only, name)
}
