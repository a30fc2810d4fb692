package apptest

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/esdb/esdbtest"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// Elsewhere: the systems of this test run have their logs in EventStoreDB, behind gateways in processes of their own.
var Elsewhere = os.Getenv(elsewhereVariable) != ""

// elsewhereVariable has the path of the program that serves the gateways, or vendors, or a server's address, which one system at a time uses.
const elsewhereVariable = "BAHI_TEST_LOG_BEHIND_GATEWAY"

// vendors means servers in this process that behave as the vendor's do.
const vendors = "vendors"

// gatewayProcess is a bahi that serves its log to EventStoreDB clients.
type gatewayProcess struct {
	*Process

	data, address string
}

var gatewayServes = regexp.MustCompile(`msg="the gateway serves" address=(\S+)`)

func ServeGateway(t testing.TB, cmd *Cmd, data string) *gatewayProcess {
	t.Helper()
	cmd.Env = append(cmd.Env, "BAHI_GATEWAY_GRPC_ADDR=127.0.0.1:0")
	g := &gatewayProcess{Process: Launch(t, cmd), data: data}
	g.Until(func(said, _ string) bool {
		if m := gatewayServes.FindStringSubmatch(said); m != nil {
			g.address = m[1]
		}
		return g.address != ""
	})
	return g
}

// Connection returns a connection string with an API key.
func (g *gatewayProcess) Connection(key string) string {
	return "esdb://" + url.UserPassword("bahi", key).String() + "@" + g.address + "?tlsCAFile=" + url.QueryEscape(filepath.Join(g.data, "gateway", "ca.crt"))
}

// EventStore returns the command of a bahi that only has a log, for other systems. Without a program it runs in the test's own process.
func EventStore(t testing.TB, program, data string) *Cmd {
	t.Helper()
	cmd := Command(t, data, "gateway")
	cmd.Program = program
	cmd.Env = append(cmd.Env, "DATABASE_URL="+pgtest.Template(t, "migrated", migrations.Up), "BAHI_GATEWAY_WRITE=true")
	return cmd
}

var logsBehindGateways sync.Map // connection strings, by the database of the system that uses the log

var logClusters sync.Map // servers of logs, by the database of the system that uses the log

// logBehindGateway returns the log of a second process, the same for the same database.
func logBehindGateway(t testing.TB, database string) string {
	t.Helper()
	if known, ok := logsBehindGateways.Load(database); ok {
		return known.(string)
	}
	var connection string
	switch program := os.Getenv(elsewhereVariable); {
	case strings.HasPrefix(program, "esdb"):
		connection = program
	case program == vendors:
		cluster := esdbtest.Start(t, 1)
		connection = cluster.URL()
		logClusters.Store(database, cluster)
	default:
		data := t.TempDir()
		connection = ServeGateway(t, EventStore(t, program, data), data).Connection(OperatorKey)
	}
	logsBehindGateways.Store(database, connection)
	return connection
}

// OnGateway runs tests of the calling package again, each system with its log behind a gateway in a process of its own, or on a server like the vendor's,
// or on the server with this address.
func OnGateway(t *testing.T, gateway string, tests ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^("+strings.Join(tests, "|")+")$", "-test.v", "-test.timeout", "20m")
	cmd.Env = append(os.Environ(), elsewhereVariable+"="+gateway)
	out, err := cmd.CombinedOutput()
	text := string(out)
	require.NoError(t, err, "%s", text[max(0, len(text)-20000):])
	for _, name := range tests {
		require.Contains(t, text, "--- PASS: "+name+" ", "the test ran")
	}
}

// InAnotherProcess runs tests of the calling package again, each system with its log in another process. Within that run it does nothing.
func InAnotherProcess(t *testing.T, tests ...string) {
	t.Helper()
	if Elsewhere {
		return
	}
	program, err := Binary()
	require.NoError(t, err)
	OnGateway(t, program, tests...)
}

// OnEventStoreDB runs tests of the calling package again, each system on a log in a server that behaves as the vendor's does. Within
// that run it does nothing.
func OnEventStoreDB(t *testing.T, tests ...string) {
	t.Helper()
	if Elsewhere {
		return
	}
	OnGateway(t, vendors, tests...)
}

var testNamed = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// TestsOf returns all tests in files of the calling package.
func TestsOf(t *testing.T, patterns ...string) (names []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern + "_test.go")
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range testNamed.FindAllStringSubmatch(string(text), -1) {
				names = append(names, m[1])
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}
