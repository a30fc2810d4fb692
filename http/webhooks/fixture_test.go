package webhooks_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bahi/commands/inbox"
	"bahi/domain/actor"
	"bahi/eventstore/vault"
	"bahi/http/api"
	"bahi/http/api/ratelimit"
	"bahi/http/opshttp"
	"bahi/http/webhooks"
	"bahi/internal/test/apitest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
	"bahi/readmodels/opsview"
)

const (
	path   = "/api/test-webhook"
	secret = "the provider's secret"
)

// operator is the only caller with a credential.
type operator struct{}

func (operator) Authenticate(context.Context, string) (actor.Actor, error) {
	return actor.Actor{Type: "api_key", ID: "operator", Permissions: actor.Permissions{Operator: true}}, nil
}

// provider handles bodies of the form "<id> <word>". The word determines the effect.
type provider struct {
	mu      sync.Mutex
	effects map[string]int // by id
	fails   map[string]error
	during  func(ctx context.Context, id string) // called in the middle of an effect
}

func (p *provider) handle(ctx context.Context, c inbox.Call) (inbox.Outcome, error) {
	id, word, _ := strings.Cut(string(c.Body), " ")
	if p.during != nil {
		p.during(ctx, id)
	}
	if ctx.Err() != nil {
		return inbox.Outcome{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fails[id]; err != nil {
		return inbox.Outcome{}, err
	}
	switch word {
	case "garbage":
		return inbox.Outcome{}, inbox.Unreadable(errors.New("no such word"))
	case "stranger":
		return inbox.Outcome{Forget: true}, nil
	case "nothing":
		return inbox.Outcome{}, nil
	}
	p.effects[id]++
	return inbox.Outcome{Effect: "noted " + id}, nil
}

func (p *provider) made() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.effects)
}

// fixture is a server with one webhook.
type fixture struct {
	*provider

	t        *testing.T
	url      string
	pool     *pgxpool.Pool
	vault    *vault.Vault
	inbox    *inbox.Inbox
	metrics  *prometheus.Registry
	now      func() time.Time
	operator *apitest.Client
}

func newFixture(t *testing.T, adapt ...func(*inbox.Config)) *fixture {
	t.Helper()
	r := &fixture{t: t, provider: &provider{effects: map[string]int{}, fails: map[string]error{}}, metrics: prometheus.NewRegistry()}
	log := slog.New(slog.DiscardHandler)
	var err error
	r.pool, err = pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(r.pool.Close)
	r.vault, err = vault.Open(t.Context(), r.pool, bytes.Repeat([]byte{1}, 32), log)
	require.NoError(t, err)
	hooks := []webhooks.Endpoint{{
		ID: "receive-test", Path: path, Summary: "Test",
		Verify: func(r *http.Request, _ netip.Addr, _ []byte) (about string, err error) {
			if !hmac.Equal([]byte(r.Header.Get("X-Secret")), []byte(secret)) {
				return "", webhooks.ErrUnverified
			}
			return "", nil
		},
		Key: func(_ string, body []byte) string {
			id, _, _ := strings.Cut(string(body), " ")
			return id
		},
		Handle: r.handle, Handshake: func(*http.Request) (answer, contentType string, err error) { return `"signed"`, "text/plain", nil },
	}}
	config := inbox.Config{Pool: r.pool, Vault: r.vault, Handlers: webhooks.Handlers(hooks), Now: time.Now, Log: log}
	for _, change := range adapt {
		change(&config)
	}
	r.now, r.inbox = config.Now, inbox.New(config)

	a := api.New(api.Config{
		Credentials: []api.Credential{{Authenticator: operator{}}},
		Limiting: api.Limiting{Limits: api.Limits{
			"webhooks": ratelimit.Limit{Requests: 3, Per: time.Hour}, api.GroupAPIKeys: {}, api.GroupRefused: {}, api.GroupPages: {},
		}, Now: time.Now},
	})
	(&webhooks.Routes{API: a, Inbox: r.inbox, Endpoints: hooks, Metrics: r.metrics}).Register()
	(&opshttp.Routes{API: a, Views: &opsview.Jobs{DB: r.pool}, Inbox: r.inbox}).Webhooks()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	r.url = server.URL
	r.operator = apitest.New(t, r.url, "operator")
	return r
}

// work handles calls until the test ends.
func (r *fixture) work() {
	r.t.Helper()
	r.workWith(r.inbox)
}

// workWith handles calls as the process of another inbox.
func (r *fixture) workWith(other *inbox.Inbox) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	var handling sync.WaitGroup
	handling.Go(func() { other.Run(ctx) })
	r.t.Cleanup(func() { cancel(); handling.Wait() })
}

// failing sets or removes the error of calls with an id.
func (r *fixture) failing(id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails[id] = err
}

// send calls the webhook with the secret.
func (r *fixture) send(body string) *apitest.Answer {
	r.t.Helper()
	return apitest.New(r.t, r.url, "").With("X-Secret", secret, "Content-Type", "text/plain").POST(path, body)
}

// list returns the calls that the operator sees.
func (r *fixture) list(query string) (calls []opsview.Webhook) {
	r.t.Helper()
	r.operator.GET("/ops/webhooks" + query).Status(200).JSON(&calls)
	return calls
}

// until waits for a number of calls with a verdict.
func (r *fixture) until(verdict string, count int) []opsview.Webhook {
	r.t.Helper()
	var calls []opsview.Webhook
	require.Eventually(r.t, func() bool {
		calls = r.list("?page_size=1000&verdict=" + verdict)
		return len(calls) == count
	}, time.Minute, 5*time.Millisecond, "%d %s", count, verdict)
	return calls
}

// count returns the value of a counter or gauge of the endpoint, -1 if it has none.
func (r *fixture) count(name string) float64 {
	r.t.Helper()
	families, err := r.metrics.Gather()
	require.NoError(r.t, err)
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			if m.GetCounter() != nil {
				return m.GetCounter().GetValue()
			}
			return m.GetGauge().GetValue()
		}
	}
	return -1
}
