package apptest

import (
	"cmp"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

// gatewayProcess is a bahi that serves its log to EventStoreDB clients.
type gatewayProcess struct {
	*Process

	data, address string
}

var gatewayServes = regexp.MustCompile(`msg="gateway listening" address=(\S+)`)

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
	return "esdb://" + url.UserPassword("bahi",
		key).String() + "@" + g.address + "?tlsCAFile=" + url.QueryEscape(filepath.Join(g.data, "gateway", "ca.crt"))
}

// EventStore returns the command of a bahi that only has a log, for the journals of other systems. It runs in the test's own process.
func EventStore(t testing.TB, data string) *Cmd {
	t.Helper()
	cmd := Command(t, data, "gateway")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+pgtest.Template(t, "migrated", migrations.Up), "BAHI_GATEWAY_WRITE=true")
	return cmd
}

// journalVariable has the address of the server of journals for all systems of a test run; gateways: each has one in this process.
const (
	journalVariable = "BAHI_TEST_JOURNAL"
	gateways        = "gateways"
)

var journals sync.Map // addresses of servers, by the database of the log

// withJournal returns the server of the journal of a database's log, the same for the same database; "": none.
func withJournal(t testing.TB, database string) string {
	t.Helper()
	server := os.Getenv(journalVariable)
	if known, ok := journals.Load(database); ok || server == "" {
		address, _ := known.(string)
		return address
	}
	if server == gateways {
		log, _ := EmptyLog(t)
		server = Served(t, log)
	}
	journals.Store(database, server)
	return server
}

// OnJournal runs tests of the calling package again, each system with a journal in the server at this address; "": in a gateway.
func OnJournal(t *testing.T, address string, tests ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^("+strings.Join(tests, "|")+")$", "-test.v", "-test.timeout", "20m")
	cmd.Env = append(os.Environ(), journalVariable+"="+cmp.Or(address, gateways))
	out, err := cmd.CombinedOutput()
	text := string(out)
	require.NoError(t, err, "%s", text[max(0, len(text)-20000):])
	for _, name := range tests {
		require.Contains(t, text, "--- PASS: "+name+" ", "the test ran")
	}
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
