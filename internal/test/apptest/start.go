package apptest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/commands/accesscmd/credentials"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/http/api"
	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/starter"
	"bahi/migrations"
)

// The keys of all test systems.
const (
	MasterKey   = starter.MasterKey
	OperatorKey = starter.OperatorKey
)

func Settings(t testing.TB, url string) app.Settings {
	s := app.Settings{
		Data: t.TempDir(), DatabaseURL: url, MasterKey: MasterKey, Timezone: "Asia/Kolkata", Connections: 8, ReadWait: ReadWait,
		LogLevel: slog.LevelError, LogFormat: "text",
	}
	s.AuditInterval = signInterval
	s.Outside.OCRTimeout = 20 * time.Minute // however busy the machine is
	s.Outside.Hash = credentials.HashCost{MemoryKiB: 64, Passes: 1, Threads: 1}
	return s
}

// signInterval is the interval of checkpoints in tests, which may wait for one. Each check for new events is a dozen statements, in every
// open test system. At 100 ms they took a seventh of the processor time of a test that mostly reads.
const signInterval = 250 * time.Millisecond

// ReadWait is the time for which reads in tests wait for the test's own writes, even on a busy machine. readmodels and http/api test
// shorter waits. The limit of a whole request is half a minute.
const ReadWait = 25 * time.Second

// Database returns a database on which Bahi has run once: the tables of its projections exist.
func Database(t testing.TB) string {
	t.Helper()
	if os.Getenv(journalVariable) != "" {
		return Migrated(t)
	}
	return pgtest.Template(t, "served", func(ctx context.Context, url string) error {
		sys, err := Settings(t, url).Open(ctx, true)
		if err != nil {
			return err
		}
		defer sys.Close()
		return sys.CatchUp(ctx)
	})
}

// Migrated returns a database on which Bahi has not run. Its log has its own id: all test databases are copies of one.
func Migrated(t testing.TB) string {
	t.Helper()
	url := pgtest.Template(t, "migrated", migrations.Up)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	pgtest.Exec(t, conn, `update log.identity set store_id = gen_random_uuid()`)
	return url
}

// Server is the whole system, served in this process.
type Server struct {
	T        testing.TB
	Sys      *app.System
	URL      string // URL of its API
	Database string
	Stop     func()

	Home, Abroad string // two workspaces, other than the operator's; in a shared system the test's own
	domain       string // domain of the email addresses in a shared system
}

// Start serves a system on a database of its own until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartOn(t, Database(t))
}

func StartOn(t testing.TB, database string) *Server {
	t.Helper()
	return StartAs(t, Settings(t, database))
}

// StartAs serves a system with these settings, which name the database.
func StartAs(t testing.TB, with app.Settings, adapt ...func(*app.System)) *Server {
	t.Helper()
	if with.EventStore == "" {
		with.EventStore = withJournal(t, with.DatabaseURL)
	}
	sys, err := with.Open(t.Context(), true)
	require.NoError(t, err)
	for _, change := range adapt {
		change(sys)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- sys.Serve(ctx, listener, OperatorKey, nil) }()
	var stopped atomic.Bool
	o := &Server{T: t, Sys: sys, URL: "http://" + listener.Addr().String(), Database: with.DatabaseURL, Home: Home, Abroad: OtherWorkspace}
	o.Stop = func() {
		if stopped.CompareAndSwap(false, true) {
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
			sys.Close()
		}
	}
	t.Cleanup(o.Stop)
	if with.EventStore != "" { // its tables are built from that log
		Readiness(t, o.Operator())
	}
	return o
}

// Api returns the interface without a server.
func (o *Server) Api(key string) *api.API {
	o.T.Helper()
	a, err := o.Sys.Api(key, api.Limiting{}, nil, nil)
	require.NoError(o.T, err)
	return a
}

// Operator returns a client with the operator's key.
func (o *Server) Operator() *apitest.Client { return apitest.New(o.T, o.URL, OperatorKey) }

// Anonymous returns a client without a credential.
func (o *Server) Anonymous() *apitest.Client { return apitest.New(o.T, o.URL, "") }

// ApiKey is the response to a new key.
type ApiKey struct {
	ID          string            `json:"id"`
	WorkspaceID string            `json:"workspace_id"`
	Name        string            `json:"name"`
	Permissions actor.Permissions `json:"permissions"`
	CreatedBy   string            `json:"created_by"`
	ExpiresAt   *time.Time        `json:"expires_at"`
	CreatedAt   time.Time         `json:"created_at"`
	RevokedAt   *time.Time        `json:"revoked_at"`
	Key         string            `json:"key"`
}

// Key creates an API key in a workspace; "": the operator's own.
func (o *Server) Key(workspace, permissions string) (k ApiKey) {
	o.T.Helper()
	body := map[string]any{"name": "for a test", "permissions": json.RawMessage(permissions)}
	if workspace != "" {
		body["workspace_id"] = workspace
	}
	o.Operator().POST("/api/v1/api-keys", body).Status(201).JSON(&k)
	return k
}

// These are the two workspaces, other than the operator's, of systems that are not shared.
const (
	Home           = "11111111-1111-4111-8111-111111111111"
	OtherWorkspace = "22222222-2222-4222-8222-222222222222"
)

// Clerk returns a client that may write the books of a workspace.
func (o *Server) Clerk(workspace string) *apitest.Client {
	o.T.Helper()
	return apitest.New(o.T, o.URL, o.Key(workspace, `{"ledger":"write"}`).Key)
}

// Reader returns a client that may only read them.
func (o *Server) Reader(workspace string) *apitest.Client {
	o.T.Helper()
	return apitest.New(o.T, o.URL, o.Key(workspace, `{"ledger":"read"}`).Key)
}

// Sql runs SQL on the database, bypassing Bahi.
func (o *Server) Sql(text string, args ...any) {
	o.T.Helper()
	conn, err := pgx.Connect(o.T.Context(), o.Database)
	require.NoError(o.T, err)
	defer conn.Close(context.WithoutCancel(o.T.Context()))
	_, err = conn.Exec(o.T.Context(), text, args...)
	require.NoError(o.T, err)
}

// Head returns the position of the newest event.
func (o *Server) Head() int64 {
	o.T.Helper()
	head, err := o.Sys.Store.Head(o.T.Context())
	require.NoError(o.T, err)
	return int64(head)
}

// Line is a line of a row.
type Line struct {
	Description string      `json:"description,omitempty"`
	Amount      json.Number `json:"amount"`
}

// BankRow is a row in a response.
type BankRow struct {
	ID       int64        `json:"id"`
	Date     string       `json:"date"`
	In       []Line       `json:"in_entries"`
	Out      []Line       `json:"out_entries"`
	Balance  *json.Number `json:"balance,omitempty"`
	Revision int64        `json:"revision"`

	Void       bool  `json:"void,omitempty"`
	Reverses   int64 `json:"reverses,omitempty"`
	ReversedBy int64 `json:"reversed_by,omitempty"`
}

// BankAccount is an account in a response.
type BankAccount struct {
	ID       int64        `json:"id"`
	Name     string       `json:"name"`
	Balance  *json.Number `json:"balance,omitempty"`
	Revision int64        `json:"revision"`
}

// Open opens an account and returns its id.
func Open(c *apitest.Client, name string) int64 {
	a := apitest.Read[BankAccount](c.POST("/bank", map[string]string{"name": name}).Status(201))
	return a.ID
}

// Entry returns a side with one line.
func Entry(amount string) string { return `[{"amount":` + amount + `}]` }

// Deposit returns the body of a row with money on the IN side.
func Deposit(date, amount string) string {
	return `{"date":"` + date + `","in_entries":` + Entry(amount) + `}`
}

// Withdrawal returns the body of a row with money on the OUT side.
func Withdrawal(date, amount string) string {
	return `{"date":"` + date + `","out_entries":` + Entry(amount) + `}`
}

// Post posts a row.
func Post(c *apitest.Client, account int64, body string) (row BankRow) {
	c.POST(Ledger(account), body).Status(201).JSON(&row)
	return row
}

// Balances formats a ledger as "date amount" with each row's running balance, in order.
func Balances(c *apitest.Client, path string) string {
	rows := apitest.Read[[]BankRow](c.GET(path).Status(200))
	short := make([]string, len(rows))
	for i, r := range rows {
		short[i] = r.Date[5:] + " " + r.Balance.String()
	}
	return strings.Join(short, ", ")
}

// Ledger returns the path of an account's ledger, with rest appended.
func Ledger(account int64, rest ...any) string {
	return fmt.Sprintf("/bank-ledger/%d", account) + fmt.Sprint(rest...)
}

// At returns the path of a row.
func At(account, row int64, rest ...any) string {
	return Ledger(account, "/row/", row) + fmt.Sprint(rest...)
}

// ClerkBanks decodes a list of accounts.
func ClerkBanks(a *apitest.Answer) (banks []BankAccount) {
	a.JSON(&banks)
	return banks
}

// Events returns the events after a position.
func (o *Server) Events(after int64) iter.Seq[event.Stored] {
	return func(yield func(event.Stored) bool) {
		for e, err := range o.Sys.Store.ReadAll(o.T.Context(), event.Position(after), eventstore.Forwards) {
			require.NoError(o.T, err)
			if !yield(e) {
				return
			}
		}
	}
}
