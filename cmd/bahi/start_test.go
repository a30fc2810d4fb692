package main_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/http/api"
	"bahi/http/api/apitest"
	"bahi/internal/app"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// masterKey is every test system's, since their databases are copies of one.
var masterKey = base64.StdEncoding.EncodeToString([]byte("a master key that tests may know"))

// testOperatorKey is configured, so that it need not be found.
const testOperatorKey = "bahi_admin_of-the-tests-1234567890"

func testSettings(t testing.TB, url string) app.Settings {
	return app.Settings{
		Data: t.TempDir(), DatabaseURL: url, MasterKey: masterKey, Timezone: "Asia/Kolkata", Connections: 8, ReadWait: testReadWait, LogLevel: slog.LevelError, LogFormat: "text",
	}
}

// testReadWait is how long reads of a test wait for what the test has written, however busy the machine is. What
// happens after half a second is for readmodels and http/api to test. A request may take half a minute in all.
const testReadWait = 25 * time.Second

// testDatabase is a database in which Bahi has run once: the tables of its projections are there.
func testDatabase(t testing.TB) string {
	t.Helper()
	if elsewhere {
		return pgtest.Template(t, "migrated", migrations.Up)
	}
	return pgtest.Template(t, "served", func(ctx context.Context, url string) error {
		sys, err := testSettings(t, url).Open(ctx, true)
		if err != nil {
			return err
		}
		defer sys.Close()
		return sys.CatchUp(ctx)
	})
}

// office is the whole system, served in this process.
type office struct {
	t        testing.TB
	sys      *app.System
	url      string // of its API
	database string
	stop     func()
}

// start serves a system on a database of its own until the test ends.
func start(t testing.TB) *office {
	t.Helper()
	return startOn(t, testDatabase(t))
}

func startOn(t testing.TB, database string) *office {
	t.Helper()
	return startAs(t, testSettings(t, database))
}

// startAs serves a system with these settings, which its database is one of.
func startAs(t testing.TB, with app.Settings, adapt ...func(*app.System)) *office {
	t.Helper()
	if elsewhere && with.EventStore == "" {
		with.EventStore = logBehindGateway(t, with.DatabaseURL)
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
	go func() { served <- sys.Serve(ctx, listener, testOperatorKey, nil) }()
	var stopped atomic.Bool
	o := &office{t: t, sys: sys, url: "http://" + listener.Addr().String(), database: with.DatabaseURL}
	o.stop = func() {
		if stopped.CompareAndSwap(false, true) {
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
			sys.Close()
		}
	}
	t.Cleanup(o.stop)
	if with.EventStore != "" { // its tables are made anew
		readiness(t, o.operator())
	}
	return o
}

// api is the interface without a server.
func (o *office) api(key string) *api.API {
	o.t.Helper()
	a, err := o.sys.Api(key, api.Limiting{}, nil, nil)
	require.NoError(o.t, err)
	return a
}

// operator asks with the operator's key.
func (o *office) operator() *apitest.Client { return apitest.New(o.t, o.url, testOperatorKey) }

// stranger asks without a key.
func (o *office) stranger() *apitest.Client { return apitest.New(o.t, o.url, "") }

// apiKey is the answer to a new key.
type apiKey struct {
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

// key makes an API key in a workspace, the operator's own if it is empty.
func (o *office) key(workspace, permissions string) (k apiKey) {
	o.t.Helper()
	body := map[string]any{"name": "for a test", "permissions": json.RawMessage(permissions)}
	if workspace != "" {
		body["workspace_id"] = workspace
	}
	o.operator().POST("/api/v1/api-keys", body).Status(201).JSON(&k)
	return k
}

// In other workspaces than the operator's.
const (
	home   = "11111111-1111-4111-8111-111111111111"
	abroad = "22222222-2222-4222-8222-222222222222"
)

// clerk may write the books of a workspace.
func (o *office) clerk(workspace string) *apitest.Client {
	o.t.Helper()
	return apitest.New(o.t, o.url, o.key(workspace, `{"ledger":"write"}`).Key)
}

// reader may only read them.
func (o *office) reader(workspace string) *apitest.Client {
	o.t.Helper()
	return apitest.New(o.t, o.url, o.key(workspace, `{"ledger":"read"}`).Key)
}

// sql does something to the database behind Bahi's back.
func (o *office) sql(text string, args ...any) {
	o.t.Helper()
	conn, err := pgx.Connect(o.t.Context(), o.database)
	require.NoError(o.t, err)
	defer conn.Close(context.WithoutCancel(o.t.Context()))
	_, err = conn.Exec(o.t.Context(), text, args...)
	require.NoError(o.t, err)
}

// head is the position of the newest event.
func (o *office) head() int64 {
	o.t.Helper()
	head, err := o.sys.Store.Head(o.t.Context())
	require.NoError(o.t, err)
	return int64(head)
}

// line is a line of a row.
type line struct {
	Description string      `json:"description,omitempty"`
	Amount      json.Number `json:"amount"`
}

// bankRow is a row as it is answered.
type bankRow struct {
	ID       int64        `json:"id"`
	Date     string       `json:"date"`
	In       []line       `json:"in_entries"`
	Out      []line       `json:"out_entries"`
	Balance  *json.Number `json:"balance,omitempty"`
	Revision int64        `json:"revision"`

	Void       bool  `json:"void,omitempty"`
	Reverses   int64 `json:"reverses,omitempty"`
	ReversedBy int64 `json:"reversed_by,omitempty"`
}

// bankAccount is an account as it is answered.
type bankAccount struct {
	ID       int64        `json:"id"`
	Name     string       `json:"name"`
	Balance  *json.Number `json:"balance,omitempty"`
	Revision int64        `json:"revision"`
}

// open opens an account and answers its id.
func open(c *apitest.Client, name string) int64 {
	var a bankAccount
	c.POST("/bank", map[string]string{"name": name}).Status(201).JSON(&a)
	return a.ID
}

// entry is a side with one line.
func entry(amount string) string { return `[{"amount":` + amount + `}]` }

// deposit is the body of a row that brings money in.
func deposit(date, amount string) string {
	return `{"date":"` + date + `","in_entries":` + entry(amount) + `}`
}

// withdrawal is the body of a row that takes money out.
func withdrawal(date, amount string) string {
	return `{"date":"` + date + `","out_entries":` + entry(amount) + `}`
}

// post posts a row.
func post(c *apitest.Client, account int64, body string) (row bankRow) {
	c.POST(ledger(account), body).Status(201).JSON(&row)
	return row
}

// balances is a ledger in short: "date amount" of each row's running balance, in order.
func balances(c *apitest.Client, path string) string {
	var rows []bankRow
	c.GET(path).Status(200).JSON(&rows)
	short := make([]string, len(rows))
	for i, r := range rows {
		short[i] = r.Date[5:] + " " + r.Balance.String()
	}
	return strings.Join(short, ", ")
}

// ledger is the path of an account's ledger, with what follows behind it.
func ledger(account int64, rest ...any) string {
	return fmt.Sprintf("/bank-ledger/%d", account) + fmt.Sprint(rest...)
}

// at is the path of a row.
func at(account, row int64, rest ...any) string {
	return ledger(account, "/row/", row) + fmt.Sprint(rest...)
}

// clerkBanks reads a list of accounts.
func clerkBanks(a *apitest.Answer) (banks []bankAccount) {
	a.JSON(&banks)
	return banks
}

// events are those behind a position.
func (o *office) events(after int64) iter.Seq[event.Stored] {
	return func(yield func(event.Stored) bool) {
		for e, err := range o.sys.Store.ReadAll(o.t.Context(), event.Position(after), eventstore.Forwards) {
			require.NoError(o.t, err)
			if !yield(e) {
				return
			}
		}
	}
}
