package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/logtest"
	"bahi/internal/test/worktest"
)

var (
	shop   = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	branch = uuid.MustParse("22222222-2222-4222-8222-222222222222")
)

// people are the test's callers, by their bearer tokens.
type people map[string]actor.Actor

func (p people) Authenticate(_ context.Context, bearer string) (actor.Actor, error) {
	if bearer == "bahi_unknowable" {
		return actor.Actor{}, errors.New("the store is away")
	}
	who, known := p[bearer]
	if !known {
		return who, api.ErrNotAuthenticated
	}
	return who, nil
}

var everybody = people{
	"bahi_clerk":    {Type: "api_key", ID: "clerk", Workspace: shop, Permissions: actor.Permissions{Ledger: actor.Write}},
	"bahi_reader":   {Type: "api_key", ID: "reader", Workspace: shop, Permissions: actor.Permissions{Ledger: actor.Read}},
	"bahi_other":    {Type: "api_key", ID: "other", Workspace: branch, Permissions: actor.Permissions{Operator: true}},
	"bahi_operator": {Type: "api_key", ID: "op", Workspace: shop, Permissions: actor.Permissions{Operator: true}},
}

type entry struct {
	Description string     `json:"description,omitempty" maxLength:"10"`
	Amount      unit.Money `json:"amount"`
}

type row struct {
	Date  unit.Date   `json:"date"`
	In    []entry     `json:"in_entries,omitempty" maxItems:"3"`
	Grams *unit.Grams `json:"weight,omitempty"`
	Kind  string      `json:"kind,omitempty" enum:"cash,metal"`
	Count int         `json:"count,omitempty" minimum:"0"`
}

type rowAnswer struct {
	ID int64 `json:"id"`
	row
}

// server serves operations that show their input.
type server struct {
	*api.API

	url     string
	logs    *logtest.Buffer
	metrics *prometheus.Registry

	mu   sync.Mutex
	seen []commands.Request
}

func (s *server) last() commands.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

// ByAccount is exported, as huma requires.
type ByAccount struct {
	Account int64 `path:"account_id"`
}

var (
	errAway = errors.New("secret: connection to 10.0.0.1 refused")
	errOdd  = errors.New("secret: odd")
)

func serve(t testing.TB, change ...func(*api.Config)) *server {
	t.Helper()
	s := &server{logs: &logtest.Buffer{}, metrics: prometheus.NewRegistry()}
	config := api.Config{
		Version: "test", Credentials: []api.Credential{{Prefix: "bahi_", Authenticator: everybody}},
		Log: slog.New(slog.NewJSONHandler(s.logs, nil)), Metrics: s.metrics, Timeout: time.Minute, // however busy the machine is
		Classify: func(err error) *fault.Error {
			if errors.Is(err, errAway) {
				return fault.New(fault.Unavailable, "The store does not answer, try again")
			}
			return nil
		},
	}
	for _, f := range change {
		f(&config)
	}
	s.API = api.New(config)
	s.register()
	h := worktest.Serve(t, s.API)
	s.url = h.URL
	return s
}

func (s *server) as(t testing.TB, bearer string) *apitest.Client {
	return apitest.New(t, s.url, bearer)
}

func (s *server) note(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, api.Request(ctx))
}

func (s *server) register() {
	api.Handle(s.API, api.Op{
		ID: "post-row", Method: "POST", Path: "/ledger/{account_id}", Summary: "Add a row", Area: actor.Ledger,
		StrictBody: true, ReadOnly: []string{"id", "in_entries.balance"}, DryRun: true, Limit: "ledger",
	}, func(ctx context.Context, in *struct {
		ByAccount

		Body row
	}) (*api.Tagged[rowAnswer], error) {
		s.note(ctx)
		if in.Account == 404 {
			return nil, fmt.Errorf("add row: %w", fault.New(fault.NotFound, "Account not found"))
		}
		api.SetWriteHeaders(ctx, 41, api.Request(ctx).Key == "again")
		api.Prefers(ctx)
		return &api.Tagged[rowAnswer]{ETag: api.Revision(0), Body: rowAnswer{ID: 7, row: in.Body}}, nil
	})
	api.Handle(s.API, api.Op{
		ID: "get-rows", Method: "GET", Path: "/ledger/{account_id}", Area: actor.Ledger, Reads: []string{"books"}, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		ByAccount

		From  api.Optional[unit.Date] `query:"from"`
		Limit int64                   `query:"limit" minimum:"1" maximum:"1000"`
		ID    api.Optional[uuid.UUID] `query:"id"`
		At    api.Optional[time.Time] `query:"at"`
	}) (*api.Body[[]string], error) {
		s.note(ctx)
		answer := []string{fmt.Sprint(in.Account, in.Limit)}
		if from := in.From.Get(); from != nil {
			answer = append(answer, from.String())
		}
		return api.Answer(answer, nil)
	})
	api.Handle(s.API, api.Op{
		ID: "delete-row", Method: "DELETE", Path: "/ledger/{account_id}", Area: actor.Ledger,
	}, func(ctx context.Context, _ *struct{ ByAccount }) (*api.Nothing, error) {
		s.note(ctx)
		api.SetWriteHeaders(ctx, 42, false)
		return &api.Nothing{}, nil
	})
	api.Handle(s.API, api.Op{ID: "ops", Method: "GET", Path: "/ops/things", Operator: true},
		func(context.Context, *struct{}) (*api.Body[string], error) { return api.Answer("secret things", nil) })
	api.Handle(s.API, api.Op{ID: "me", Method: "GET", Path: "/me"},
		func(ctx context.Context, _ *struct{}) (*api.Body[string], error) {
			who := api.Caller(ctx)
			return api.Answer(who.String()+"@"+who.Workspace.String(), nil)
		})
	api.Handle(s.API, api.Op{ID: "echo", Method: "POST", Path: "/echo", Public: true, Status: 200, MaxBody: 64},
		func(_ context.Context, in *struct{ Body map[string]any }) (*api.Body[map[string]any], error) {
			return api.Answer(in.Body, nil)
		})
	api.Handle(s.API, api.Op{ID: "fail", Method: "GET", Path: "/fail/{how}", Public: true},
		func(ctx context.Context, in *struct {
			How string `path:"how"`
		}) (*api.Body[any], error) {
			switch in.How {
			case "panic":
				panic("secret: panic")
			case "away":
				return nil, fmt.Errorf("append: %w", errAway)
			case "slow":
				<-ctx.Done()
				return nil, fmt.Errorf("wait: %w", ctx.Err())
			case "unencodable":
				return api.Answer[any](func() {}, nil)
			}
			return nil, errOdd
		})
	api.Handle(s.API, api.Op{ID: "upload", Method: "POST", Path: "/upload", Public: true, MaxBody: 64, Status: 200},
		func(ctx context.Context, in *struct{ RawBody []byte }) (*api.Body[int], error) {
			s.note(ctx)
			return api.Answer(len(in.RawBody), nil)
		})
}
