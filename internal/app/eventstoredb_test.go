package app_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
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

// What a start looks for in the log, such as the last signed event, and a moment after it are looked up in the table of places.
func TestAStartAndItsFirstKnownAtReadLittleOfTheLog(t *testing.T) {
	t.Parallel()
	const count = 20_000
	c, o := onVendors(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	var appended eventstore.Appended
	for i := range count / 100 {
		events := make([]event.New, 100)
		for n := range events {
			events[n] = event.New{ID: uuid.Must(uuid.NewV7()), Type: "OrderPlaced", Data: []byte(`{}`), Meta: fmt.Appendf(nil, `{"n":%d}`, i)}
		}
		var err error
		appended, err = o.Sys.Store.Append(t.Context(), eventstore.To("orders-1", eventstore.Expected(100*i-1), events...))
		require.NoError(t, err)
	}
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "2"))
	require.Eventually(t, func() bool { // all followers have saved that they are there
		var least event.Position
		require.NoError(t, o.Sys.Pool.QueryRow(t.Context(), `
			select least((select min(position) from projection.generation), (select min(position) from reactor.checkpoint))`).Scan(&least))
		return least >= appended.Position
	}, time.Minute, 10*time.Millisecond)
	var moment time.Time
	for e, err := range o.Sys.Store.ReadStream(t.Context(), "orders-1", count/2, eventstore.Forwards) {
		require.NoError(t, err)
		moment = e.At
		break
	}
	o.Stop()
	n := &c.Node(0).Counts
	before := n.Events.Load()
	o = apptest.StartAs(t, o.Sys.Settings)
	known := o.Clerk(apptest.Home).GET(apptest.Ledger(account) + "?known_at=" + url.QueryEscape(moment.Format(time.RFC3339Nano))).Status(200)
	require.Less(t, n.Events.Load()-before, int64(count/4), "a place is less than 512 events from what is looked for")
	var rows []apptest.BankRow
	known.JSON(&rows)
	require.Len(t, rows, 1)
}
