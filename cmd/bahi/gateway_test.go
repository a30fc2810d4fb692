package main_test

import (
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/esdb"
	"bahi/internal/app"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// elsewhere says that the systems of this test run have their logs in EventStoreDB: behind the gateways of processes of their own.
var elsewhere = os.Getenv(elsewhereVariable) != ""

// elsewhereVariable has the path of the program, which serves the gateways; or farApart.
const elsewhereVariable = "BAHI_TEST_LOG_BEHIND_GATEWAY"

// farApart stands for gateways in this process, before logs whose positions are far apart.
const farApart = "apart"

// gatewayProcess is a bahi whose log is served to EventStoreDB clients.
type gatewayProcess struct {
	*process

	data, address string
}

var gatewayServes = regexp.MustCompile(`msg="the gateway serves" address=(\S+)`)

func serveGateway(t testing.TB, cmd *exec.Cmd, data string) *gatewayProcess {
	t.Helper()
	cmd.Env = append(cmd.Env, "BAHI_GATEWAY_GRPC_ADDR=127.0.0.1:0")
	g := &gatewayProcess{process: launch(t, cmd), data: data}
	g.until(func(said, _ string) bool {
		if m := gatewayServes.FindStringSubmatch(said); m != nil {
			g.address = m[1]
		}
		return g.address != ""
	})
	return g
}

// connection is a connection string with an API key.
func (g *gatewayProcess) connection(key string) string {
	return "esdb://" + url.UserPassword("bahi", key).String() + "@" + g.address + "?tlsCAFile=" + url.QueryEscape(filepath.Join(g.data, "gateway", "ca.crt"))
}

// eventStore is a bahi that has a log, for others to write and read, and nothing else.
func eventStore(t testing.TB, program, data string) *exec.Cmd {
	cmd := exec.Command(program, "gateway")
	cmd.Env = append(os.Environ(), "BAHI_DATA="+data, "BAHI_ADMIN_API_KEY="+testOperatorKey, "BAHI_MASTER_KEY="+masterKey,
		"DATABASE_URL="+pgtest.Template(t, "migrated", migrations.Up), "BAHI_GATEWAY_WRITE=true")
	return cmd
}

var logsBehindGateways sync.Map // connection strings, by the database of the system that uses the log

var logDatabases sync.Map // where logs are that are farApart, by the database of the system that uses the log

// logBehindGateway is the log of a second process, the same for the same database.
func logBehindGateway(t testing.TB, database string) string {
	t.Helper()
	if known, ok := logsBehindGateways.Load(database); ok {
		return known.(string)
	}
	var connection string
	if program := os.Getenv(elsewhereVariable); program == farApart {
		log, behind := emptyLog(t)
		connection = served(t, apart{log})
		logDatabases.Store(database, behind)
	} else {
		data := t.TempDir()
		connection = serveGateway(t, eventStore(t, program, data), data).connection(testOperatorKey)
	}
	logsBehindGateways.Store(database, connection)
	return connection
}

// onGateway runs tests of this package once more, each system with its log behind a gateway: the program's, or farApart.
func onGateway(t *testing.T, gateway string, tests ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^("+strings.Join(tests, "|")+")$", "-test.v", "-test.timeout", "20m")
	cmd.Env = append(os.Environ(), elsewhereVariable+"="+gateway)
	out, err := cmd.CombinedOutput()
	text := string(out)
	require.NoError(t, err, "%s", text[max(0, len(text)-20000):])
	for _, name := range tests {
		require.Contains(t, text, "--- PASS: "+name+" ", "it ran")
	}
}

var testNamed = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testsOf are all tests of files of this package.
func testsOf(t *testing.T, pattern string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range testNamed.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	require.NotEmpty(t, names)
	return names
}

func TestTheBankLedgerIsKeptInALogOfAnotherProcess(t *testing.T) {
	t.Parallel()
	if elsewhere {
		return // this is that run
	}
	program, err := binary()
	require.NoError(t, err)
	var tests []string
	for _, about := range []string{"bank_*", "books_lock", "conditions", "dry_run", "freshness", "idempotency"} {
		tests = append(tests, testsOf(t, about+"_test.go")...)
	}
	onGateway(t, program, tests...)
}

// What looks at the log as a whole must not count by positions, nor read from where no event begins.
func TestALogWhosePositionsAreFarApartIsShownAndProved(t *testing.T) {
	t.Parallel()
	if elsewhere {
		return // this is that run
	}
	onGateway(t, farApart,
		"TestAParkedEventIsShownAndSkippedWithAReason", "TestAProjectionIsRebuiltOverHTTP", "TestAParkedProjectionIsShownAndSkippedAtTheShell", "TestAPausedProjectionIsReportedAndAnswersAreStale", "TestARowsProofIsForWhoMayReadTheRowAndHoldsOffline",
		"TestADeletedAccountIsGoneWithItsRowsButNotFromThePast", "TestALedgerIsReadByDatesPagesAndAsItWasKnown", "TestRowsArePostedTogether",
		"TestWhatIsLockedStaysAsItIs", "TestBackDatedChangesAreShownWithTheClosingBalancesThatTheyMoved",
		"TestAStatementAsKnownIsAlwaysTheSame", "TestATrailFromBeforeTheFirstEventSaysSo", "TestAuditorsSeeTheirWorkspaceAndOperatorsAll",
		"TestEventsAreFollowedFromWhereTheClientWas", "TestEventsAreFoundByWhatIsKnownOfThem", "TestEventsAreShownFromTheShell",
		"TestTheLogIsSignedAndProvedWhereverItIs", "TestTheTrailAsPDFSaysWhereItWasDrawnFrom", "TestTheTrailIsNarrowedByRecordPartyUserAndDay",
		"TestTheTrailIsWrittenFromTheShell", "TestTheTrailTellsWhoChangedWhatFromWhatToWhatAndWhy", "TestWithoutAScriptWhatIsParkedIsRetriedOrSkippedForAReason")
}

func TestTheGatewayIsForOperatorsOnly(t *testing.T) {
	t.Parallel()
	if elsewhere {
		return // there is nothing behind its gateway
	}
	data := t.TempDir()
	cmd := command(t, data, "serve")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+testDatabase(t))
	g := serveGateway(t, cmd, data)
	operator := g.client()
	var member apiKey
	operator.POST("/api/v1/api-keys", `{"name":"reader","permissions":{"ledger":"read"}}`).Status(201).JSON(&member)

	for key, why := range map[string]string{member.Key: "permission operator", "bahi_nobody": "no such API key"} {
		_, err := esdb.Open(t.Context(), g.connection(key), slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, why)
	}
	log, err := esdb.Open(t.Context(), g.connection(testOperatorKey), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer log.Close()
	require.Contains(t, g.text(), "log="+log.ID().String(), "it is the same log")
	head, err := log.Head(t.Context())
	require.NoError(t, err)
	require.NotZero(t, head)
	_, err = log.Append(t.Context(), "orders-1", eventstore.NoStream, event.New{ID: uuid.New(), Type: "OrderPlaced", Data: []byte(`{}`), Meta: []byte(`{}`)})
	require.ErrorContains(t, err, "BAHI_GATEWAY_WRITE")
}

func TestEventsFromOutsideAreChecked(t *testing.T) {
	t.Parallel()
	e := func(kind, data, meta string) event.New {
		return event.New{ID: uuid.New(), Type: kind, Data: []byte(data), Meta: []byte(meta)}
	}
	for stream, c := range map[string]struct {
		event event.New
		why   string
	}{
		"orders-1":  {e("OrderPlaced", `[]`, `{}`), ""},
		"orders-3":  {e("OrderPlaced", `[]`, `{"by":"\u0000"}`), "the metadata of OrderPlaced have a NUL in them, or half of a character"},
		"orders-4":  {e("OrderPlaced", `[]`, `{"by":"\\\uD83d"}`), "half of a character"},
		"orders-5":  {e("OrderPlaced", `["\u0000"]`, `{"by":"\ud83d\uDE00\\u0000\u0041"}`), ""},
		"bank-1":    {e("OrderPlaced", `{}`, `{}`), "streams bank-… hold events of Bahi, and OrderPlaced is none"},
		"orders-2":  {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), "BankAccountRenamed stands in streams bank-…, not in orders-2"},
		"bank-2":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), ""},
		"bank-3":    {e("BankAccountRenamed", `{"from":"HDFC","to":7}`, `{"schema":1}`), "BankAccountRenamed cannot be read: json"},
		"bank-4":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{}`), "schema version 0 is unknown"},
		"bank-5":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":2}`), "schema version 2 is unknown"},
		"bank-6":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `[]`), "BankAccountRenamed cannot be read: json"},
		"bankrow-1": {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), "not in bankrow-1"},

		// What Go reads and SQL does not would change the books and stand in no trail.
		"bank-7":     {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"of":0}`), "no event stands at position 0"},
		"bank-8":     {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"of":3,"Of":0}`), `"Of" is called "of"`},
		"bank-9":     {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"reaſon":"x"}`), `"reaſon" is called "reason"`},
		"bank-10":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"workspace":"0195E8A0-7C1E-7000-8000-0000000000AA"}`), `the workspace is written "0195e8a0-7c1e-7000-8000-0000000000aa"`},
		"bank-11":    {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1,"workspace":"0195e8a0-7c1e-7000-8000-0000000000aa","$correlationId":"A"}`), ""},
		"bank-12":    {e("BankAccountRenamed", `{"from":"HDFC","To":"SBI"}`, `{"schema":1}`), `has the name "To"`},
		"bank-13":    {e("BankAccountRenamed", `{"from":"HDFC","to":"\u0000"}`, `{"schema":1}`), "has a NUL in it"},
		"bankbulk-1": {e("BankRowsPosted", `{"account":1,"rows":[{"date":"2025-03-01","in_entries":[{"Amount":5}]}]}`, `{"schema":1}`), `has the name "Amount"`},
		"bankbulk-2": {e("BankRowsPosted", `{"account":1,"rows":[{"date":"2025-03-01","in_entries":[{"amount":5}]}]}`, `{"schema":1}`), ""},
	} {
		err := app.CheckForeign(stream, c.event)
		if c.why == "" {
			require.NoError(t, err, "%s", stream)
		} else {
			require.ErrorContains(t, err, c.why, "%s", stream)
		}
	}
}

func TestWhatWorksOnALogInPostgresSaysSo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"backup", "folder"}, {"restore", "folder"}, {"events", "import", "folder"}} {
		cmd := command(t, t.TempDir(), args...)
		cmd.Env = append(cmd.Env, "EVENTSTORE_URL=esdb://127.0.0.1:1")
		_, stderr, status := execute(t, cmd)
		require.NotZero(t, status)
		require.Contains(t, stderr, "works on a log in Postgres, and EVENTSTORE_URL says that it is elsewhere")
	}
}
