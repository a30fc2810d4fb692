package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/feedtest"
	"bahi/internal/test/pgtest"
	"bahi/readmodels/opsview"
)

// logged is an event of the log.
type logged struct {
	ID, Stream, Type, Data string
	Position               int64
}

func loggedIn(t *testing.T, database string) []logged {
	t.Helper()
	conn := pgtest.Connect(t, database)
	rows, _ := conn.Query(t.Context(), `select id::text, stream, type, data::text, position from log.event order by position`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[logged])
	require.NoError(t, err)
	return all
}

// forwarded waits until the broker has all events of the log as messages, except the skipped ones. Some events of a bulk come after its
// response.
func forwarded(t *testing.T, broker *feedtest.NATS, database string, skipped int) (log []logged, messages []jetstream.Msg) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; {
		log = loggedIn(t, database)
		messages = broker.Messages("BAHI", len(log)-skipped)
		if len(messages) == len(log)-skipped {
			return log, messages
		}
		require.True(t, time.Now().Before(late), "%d messages of %d events", len(messages), len(log))
	}
}

func TestParkedFeedIsReportedAndSkipped(t *testing.T) {
	t.Parallel()
	broker := feedtest.Start(t, func(o *natsserver.Options) { o.MaxPayload = 4096 })
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.FeedURL = broker.Address
	o := apptest.StartAs(t, with)
	c := o.Operator()
	entries := slices.Repeat([]string{`{"description":"A pair of bangles, and the box that they come in","amount":18400}`}, 60)
	c.POST(apptest.Ledger(apptest.Open(c, "SBI")), `{"date":"2026-10-14","in_entries":[`+strings.Join(entries, ",")+`]}`).Status(201)
	require.Eventually(t, func() bool {
		return strings.Contains(c.GET("/readyz").Text, `"feed":{"state":"parked"`)
	}, takenOverTimeout, 10*time.Millisecond)
	require.Contains(t, apptest.Readiness(t, c).Text, "NATS takes messages of 4096 bytes at most (max_payload)")
	// noted a moment later
	require.Eventually(t, func() bool { return strings.Contains(c.GET("/metrics").Text, "bahi_feed_parked 1") }, time.Minute,
		10*time.Millisecond)
	require.Contains(t, o.Done(t, "feed", "status"), "parked")

	parked := apitest.Read[[]opsview.Parked](c.GET("/ops/parked").Status(200))
	require.Len(t, parked, 1)
	require.Equal(t, "feed reactor BankRowAdded", parked[0].Name+" "+parked[0].Kind+" "+parked[0].Type)
	at := fmt.Sprint(parked[0].Position)
	require.Contains(t, o.Done(t, "feed", "skip", "--position", at, "--reason", "the broker is too small"), "skips")
	log, _ := forwarded(t, broker, o.Database, 1)
	require.Contains(t, o.Done(t, "feed", "status"), "live")

	require.NoError(t, broker.JetStream().DeleteStream(t.Context(), "BAHI"))
	require.Contains(t, o.Done(t, "feed", "replay", "--from", at), "continues at position")
	require.Len(t, broker.Messages("BAHI", len(log)-int(parked[0].Position)), len(log)-int(parked[0].Position))
}
