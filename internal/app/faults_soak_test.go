//go:build soak

package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/feedtest"
)

func TestHangingNodeLosesItsWork(t *testing.T) {
	t.Parallel()
	database, broker := apptest.Database(t), feedtest.Start(t)
	n := &nodes{t: t, database: database}
	for i := range n.serving {
		n.data[i] = t.TempDir()
		cmd := apptest.Program(t, n.data[i], "serve", "--takeover-after", "3s").With("DATABASE_URL="+database, "FEED_URL="+broker.Address)
		n.serving[i] = apptest.Serve(t, cmd)
		n.serving[i].Ready()
	}
	eventually := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, 2*takenOverTimeout, 20*time.Millisecond, what)
	}
	nth := n.worker()
	hangs, lives := n.serving[nth], n.serving[1-nth]
	account := apptest.Open(hangs.Client(), "HDFC")
	require.NoError(t, hangs.Cmd.Process.Signal(syscall.SIGSTOP))

	position := lives.Client().POST(apptest.Ledger(account), apptest.Deposit("2026-10-14", "100")).Status(201).Header("Bahi-Position")
	reader := lives.Client().With("Bahi-Min-Position", position)
	eventually("the other node folds", func() bool { return reader.GET("/banks").Response.StatusCode == http.StatusOK })
	n.register(1-nth, "asha@example.com")
	eventually("the other node forwards", func() bool { return broker.Count("BAHI") == len(loggedIn(t, database)) })

	require.NoError(t, hangs.Cmd.Process.Signal(syscall.SIGCONT))
	position = hangs.Client().POST(apptest.Ledger(account), apptest.Deposit("2026-10-14", "1")).Status(201).Header("Bahi-Position")
	for _, p := range n.serving {
		reader := p.Client().With("Bahi-Min-Position", position)
		eventually("both nodes read", func() bool {
			return strings.Contains(reader.GET(fmt.Sprintf("/bank/%d", account)).Text, `"balance":101`)
		})
	}
	eventually("one of the two folds", func() bool {
		works := func(p *apptest.Process) bool {
			return strings.Contains(p.Client().GET("/metrics").Status(200).Text, `bahi_projection_active{projection="books"} 1`)
		}
		return works(hangs) != works(lives)
	})
	forwarded(t, broker, database, 0)
	doctor := apptest.Command(t, t.TempDir(), "doctor")
	doctor.Env = append(doctor.Env, "DATABASE_URL="+database)
	apptest.Healthy(t, doctor)
}

// Each of 10,000 parties gets its statement once, and each answer counts once.
func TestEachOfManyPartiesIsAskedOnceThoughTheProgramIsKilled(t *testing.T) {
	t.Parallel()
	surviveConfirmation(t, 10_000, 3, 100)
}

func TestNodesWithAJournalTakeOverFromEachOther(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	store := apptest.ServeGateway(t, apptest.EventStore(t, data), data)
	failOver(t, &nodes{t: t, database: apptest.Migrated(t), log: store.Connection(apptest.OperatorKey)})
}

func TestKilledServerWithAJournalLosesNothing(t *testing.T) {
	t.Parallel()
	losesNothingWhenKilled(t, 2, "EVENTSTORE_URL="+journalServer(t))
}
