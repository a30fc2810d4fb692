package ledgercmd_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/actor"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/unit"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	"bahi/internal/test/draws"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
	"bahi/projections"
	"bahi/projections/ledgerproj"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

func TestMain(m *testing.M) {
	draws.Default(20) // each draw posts to a database, or runs twenty interleavings
	os.Exit(m.Run())
}

// asked is a request for a row.
type asked = book.RowInput

var (
	today     = unit.DateOf(time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC))
	workspace = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	errCrash  = errors.New("the process is gone")
)

// rupees returns a side with one entry of n rupees.
func rupees(n int64) book.SideInput { return book.Entries([]bank.Entry{{Amount: unit.Money(100 * n)}}) }

// fixture is a database with tables of the books that follow the log.
type fixture struct {
	pool  *pgxpool.Pool
	store *postgres.Store
	views *ledgerview.Views
	vault *vault.Vault
}

func openFixture(t *testing.T) *fixture {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Template(t, "migrated", migrations.Up))
	log := slog.New(slog.DiscardHandler)
	o := &fixture{pool: pool}
	var err error
	o.store, err = postgres.Open(t.Context(), pool, log)
	require.NoError(t, err)
	t.Cleanup(o.store.Close)
	o.vault, err = vault.Open(t.Context(), pool, make([]byte, 32), log)
	require.NoError(t, err)
	runner := projections.NewRunner(o.store, pool, log)
	runner.Reveal = o.vault.OpenPersonal
	all := []*projections.Projection{ledgerproj.Books, ledgerproj.Orders, ledgerproj.OrderDrafts}
	versions := map[string]int{}
	for _, p := range all {
		versions[p.Name] = p.Version
	}
	o.views = &ledgerview.Views{Reader: readmodels.NewReader(logtest.Snapshots(t, pool), versions, runner.Follow)}
	o.views.Reader.Wait = time.Minute
	worktest.Background(t, func(ctx context.Context) error { return runner.Run(ctx, all...) })
	require.Eventually(t, func() bool {
		for _, p := range all {
			if !runner.Statuses()[p.Name].Ready {
				return false
			}
		}
		return true
	}, time.Minute, 5*time.Millisecond)
	return o
}

// node is one of several processes of the fixture.
type node struct{ *ledgercmd.Books }

// node starts a process.
func (o *fixture) node(t *testing.T) *node {
	t.Helper()
	log, err := postgres.Open(t.Context(), o.pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(log.Close)
	h := commands.New(log, o.vault, time.Now)
	n := &node{&ledgercmd.Books{
		Commands: h, Reads: o.views, Today: func() unit.Date { return today }, Log: slog.New(slog.DiscardHandler),
	}}
	worktest.Background(t, h.Run)
	return n
}

func as(t *testing.T, change ...func(*commands.Request)) commands.Request {
	t.Helper()
	r := commands.Request{
		Actor: actor.Actor{Type: "user", ID: "7", Workspace: workspace}, Workspace: workspace, Reason: "because",
		RequestID: "r1", CorrelationID: "c1", Operation: "op", Fingerprint: []byte("body"),
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func keyed(r *commands.Request) { r.Key = "k" }

func dryRun(r *commands.Request) { r.DryRun = true }

func id(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

func idText(n int64) string { return strconv.FormatInt(n, 10) }

func (n *node) open(t *testing.T) int64 {
	t.Helper()
	out, err := ledgercmd.OpenAccount(t.Context(), as(t), n.Books, bank.Ledger, book.OpenAccount{Name: "SBI"})
	require.NoError(t, err)
	return id(t, out.ID)
}

func (n *node) add(t *testing.T, account int64, date unit.Date) int64 {
	t.Helper()
	out, err := ledgercmd.AddRow(t.Context(), as(t), n.Books, bank.Ledger, account, asked{Date: new(date), In: rupees(1)})
	require.NoError(t, err)
	return id(t, out.ID)
}

func (n *node) lock(t *testing.T, through *unit.Date) {
	t.Helper()
	_, err := n.SetLock(t.Context(), as(t), bookslock.Set{Through: through})
	require.NoError(t, err)
}
