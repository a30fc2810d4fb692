package apptest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/idptest"
	"bahi/internal/test/journaltest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
)

// gatewayProcess is a bahi that serves its log to EventStoreDB clients.
type gatewayProcess struct {
	*Process

	data string
}

func ServeGateway(t testing.TB, cmd *Cmd, data string) *gatewayProcess {
	t.Helper()
	cmd.Env = append(cmd.Env, "BAHI_GATEWAY_GRPC_ADDR=127.0.0.1:0")
	g := &gatewayProcess{Launch(t, cmd), data}
	g.Until(func(string, string) bool { return g.Gateway != "" })
	return g
}

// Connection returns a connection string with an API key.
func (g *gatewayProcess) Connection(key string) string {
	return "esdb://" + url.UserPassword("bahi",
		key).String() + "@" + g.Gateway + "?tlsCAFile=" + url.QueryEscape(filepath.Join(g.data, "gateway", "ca.crt"))
}

// EventStore returns the command of a bahi that only has a log, for the journals of other systems. It runs in the test's own process.
func EventStore(t testing.TB, data string) *Cmd {
	t.Helper()
	return Command(t, data, "gateway").With("DATABASE_URL="+pgtest.Template(t, "migrated", migrations.Up), "BAHI_GATEWAY_WRITE=true")
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
		server = journaltest.Served(t, log)
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
			text := worktest.File(t, file)
			for _, m := range testNamed.FindAllStringSubmatch(string(text), -1) {
				names = append(names, m[1])
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}

// Decided returns the events after a position, without follow-ups of earlier ones and without reservations of numbers, which come at any
// time.
func (o *Server) Decided(after int64) (all []string) {
	for e := range o.Events(after) {
		var meta event.Meta
		require.NoError(o.T, json.Unmarshal(e.Meta, &meta))
		if meta.FollowUpOf == 0 && e.Type != "NumbersReserved" {
			all = append(all, e.Type+" of "+e.Stream)
		}
	}
	return all
}

// BeginSignIn starts a sign-in, and returns the provider's address and the browser's cookie.
func (o *Server) BeginSignIn() (consent string, cookie *http.Cookie) {
	o.T.Helper()
	a := o.Anonymous().GET(Auth + "/idp").Status(302)
	require.Equal(o.T, "no-store", a.Header("Cache-Control"))
	cookie = Cookies(a.Response)["bahi_sign_in"]
	require.NotNil(o.T, cookie)
	return a.Header("Location"), cookie
}

// FinishSignIn returns from the provider with its response.
func (o *Server) FinishSignIn(query string, cookie *http.Cookie) (a *apitest.Answer, landed url.Values) {
	o.T.Helper()
	browser := o.Anonymous()
	if cookie != nil {
		browser = browser.With("Cookie", cookie.Name+"="+cookie.Value)
	}
	a = browser.GET(Auth + "/idp/callback?" + query).Status(302)
	require.Equal(o.T, "no-store", a.Header("Cache-Control"))
	require.Equal(o.T, "no-referrer", a.Header("Referrer-Policy"))
	to, err := url.Parse(a.Header("Location"))
	require.NoError(o.T, err)
	require.Equal(o.T, "https://shop.example/app/auth/callback", to.Scheme+"://"+to.Host+to.Path, "always to the frontend")
	gone := Cookies(a.Response)["bahi_sign_in"]
	require.NotNil(o.T, gone)
	require.Negative(o.T, gone.MaxAge, "the cookie of the flow is removed")
	return a, to.Query()
}

// Through signs in the provider's next user.
func (o *Server) Through(provider *idptest.Provider) Person {
	o.T.Helper()
	consent, flow := o.BeginSignIn()
	_, landed := o.FinishSignIn(provider.Consent(consent).RawQuery, flow)
	require.NotEmpty(o.T, landed.Get("access_token"), landed)
	return Person{Client: o.Bearer(landed.Get("access_token"))}
}

// StartLimited serves a system with the limits of the specification, but per hour instead of per minute, so that they also apply on a busy
// machine. It is behind a proxy on this machine.
func StartLimited(t *testing.T) *Server {
	t.Helper()
	s := Settings(t, Database(t))
	s.Outside.Limits, s.Outside.Proxies = api.DefaultLimits(), []string{"127.0.0.0/8"}
	for group, l := range s.Outside.Limits {
		if l.Per == time.Minute {
			l.Per = time.Hour
			s.Outside.Limits[group] = l
		}
	}
	return StartAs(t, s)
}

// From returns a client that the proxy forwards for an address.
func From(c *apitest.Client, address string) *apitest.Client {
	return c.With("X-Forwarded-For", "203.0.113.9, "+address)
}

// Token returns the secret that the system has created for the calls of a provider.
func (o *Server) Token(port string) string {
	o.T.Helper()
	text := worktest.File(o.T, filepath.Join(o.Sys.Settings.Data, "keys", port+".token"))
	return strings.TrimSpace(string(text))
}
