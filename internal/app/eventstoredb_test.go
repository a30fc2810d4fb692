package app_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/esdb/esdbtest"
	"bahi/internal/app"
	"bahi/internal/app/apptest"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// onVendors serves a system whose log is on a server that behaves as the vendor's does.
func onVendors(t *testing.T, change ...func(*app.Settings)) (*esdbtest.Cluster, *apptest.Office) {
	t.Helper()
	c := esdbtest.Start(t, 1)
	with := apptest.Settings(t, pgtest.Template(t, "migrated", migrations.Up))
	with.EventStore = c.URL()
	for _, set := range change {
		set(&with)
	}
	return c, apptest.StartAs(t, with)
}

func TestServersOwnEventsDoNotMoveThePosition(t *testing.T) {
	t.Parallel()
	c, o := onVendors(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	at := clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "12.5")).Status(201).Header("Bahi-Position")
	for range 5 {
		c.System(30)
		got := clerk.GET(apptest.Ledger(account)).Status(200)
		require.Equal(t, at, got.Header("Bahi-Position"))
		require.Empty(t, got.Header("Bahi-Stale"))
	}
}

// Of many requests with one Idempotency-Key, one is answered as the first.
func TestOneOfManyEqualRequestsIsTheFirst(t *testing.T) {
	t.Parallel()
	_, o := onVendors(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	for round := range 4 {
		var (
			all    sync.WaitGroup
			mu     sync.Mutex
			firsts int
			rows   = map[string]bool{}
		)
		for range 16 {
			all.Go(func() {
				a := clerk.With("Idempotency-Key", fmt.Sprint("round ", round)).POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Status(201)
				mu.Lock()
				defer mu.Unlock()
				rows[a.Text] = true
				if a.Header("Idempotency-Replayed") == "" {
					firsts++
				}
			})
		}
		all.Wait()
		require.Len(t, rows, 1)
		require.Equal(t, 1, firsts)
	}
}

// What a request costs the server is counted, not timed.
func TestCallsOfARequest(t *testing.T) {
	t.Parallel()
	c, o := onVendors(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	n := &c.Node(0).Counts
	var appends atomic.Int64
	c.Node(0).Appending(func(stream string, put func() error) error {
		if !strings.HasPrefix(stream, "number-") { // ids are reserved in blocks
			appends.Add(1)
		}
		return put()
	})
	// Background work reads the log now and then, but not during each of so many requests.
	const count = 100
	leastReads, leastLooks, leastEvents := int64(count), int64(count), int64(count)
	for range count {
		reads := n.Reads.Load()
		clerk.POST(apptest.Ledger(account), apptest.Deposit("2025-03-01", "1")).Status(201)
		leastReads = min(leastReads, n.Reads.Load()-reads)
	}
	require.EqualValues(t, count, appends.Load(), "a row is one append")
	require.Zero(t, leastReads, "a row reads nothing")
	leastReads = count
	for range count {
		reads, looks, events := n.Reads.Load(), n.Looks.Load(), n.Events.Load()
		clerk.GET(apptest.Ledger(account)).Status(200)
		leastReads, leastLooks = min(leastReads, n.Reads.Load()-reads), min(leastLooks, n.Looks.Load()-looks)
		leastEvents = min(leastEvents, n.Events.Load()-events)
	}
	require.EqualValues(t, 1, leastLooks, "a read looks at the newest event")
	require.EqualValues(t, 1, leastReads, "and calls the server for nothing else")
	require.EqualValues(t, 1, leastEvents, "which sends one event")
}
