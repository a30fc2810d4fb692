package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bahi/domain/actor"
	"bahi/http/api"
	"bahi/http/api/ratelimit"
)

// discard is a ResponseWriter without cost, so that the benchmark measures our code.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// BenchmarkPost takes one POST through everything but the network: routing among 150 operations,
// authentication, permission, headers, the body, the handler, the answer, metrics.
func BenchmarkPost(b *testing.B) {
	for name, change := range map[string]func(*api.Config, http.Header){
		"plain": func(*api.Config, http.Header) {},
		"log":   func(c *api.Config, _ http.Header) { c.Log = slog.New(slog.NewJSONHandler(nowhere{}, nil)) },
		"limited": func(c *api.Config, _ http.Header) {
			c.Limiting.Limits = api.DefaultLimits()
			c.Limiting.Limits[api.GroupAPIKeys] = ratelimit.Limit{Requests: ratelimit.MaxRequests, Per: time.Second}
		},
		"keyed": func(_ *api.Config, h http.Header) {
			h.Set("Idempotency-Key", "0b9f2f0e-5a3a-4c55-8c5a-3f0f3d8f1c11")
			h.Set("If-Match", `"3"`)
		},
	} {
		b.Run(name, func(b *testing.B) {
			header := http.Header{
				"Authorization": {"Bearer bahi_clerk"}, "Content-Type": {"application/json"}, "Accept": {"*/*"}, "User-Agent": {"bench"},
			}
			config := api.Config{Credentials: []api.Credential{{Prefix: "bahi_", Authenticator: everybody}}}
			change(&config, header)
			a := api.New(config)
			for area := range strings.FieldsSeq("banks bullions clients karigars polishers orders takada drafts khata users enquiries companies " +
				"catalog contacts channels") {
				for path := range strings.FieldsSeq("{id} {id}/a {id}/b {id}/c {id}/d {id}/e {id}/f {id}/g {id}/h {id}/i") {
					api.Handle(a, api.Op{ID: area + path, Method: "GET", Path: "/" + area + "/" + path, Area: actor.Ledger}, none[struct {
						ID int64 `path:"id"`
					}])
				}
			}
			api.Handle(a, api.Op{ID: "post-row", Method: "POST", Path: "/ledger/{account_id}", Area: actor.Ledger, StrictBody: true, DryRun: true},
				func(ctx context.Context, in *struct {
					ByAccount

					Body row
				}) (*api.Tagged[rowAnswer], error) {
					api.SetWriteHeaders(ctx, 41, false)
					return &api.Tagged[rowAnswer]{ETag: api.Revision(0), Body: rowAnswer{ID: 7, row: in.Body}}, nil
				})
			body := `{"date":"2025-03-31","in_entries":[{"amount":1250.50,"description":"cash sale"}]}`
			request := httptest.NewRequest(http.MethodPost, "/ledger/3", nil)
			request.Header = header
			request.ContentLength = int64(len(body))
			w := &discard{}
			b.ReportAllocs()
			for b.Loop() {
				request.Body = readCloser{strings.NewReader(body)}
				w.header = make(http.Header, 8)
				a.ServeHTTP(w, request)
				if w.status != http.StatusCreated {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// BenchmarkHTTP is the same over loopback connections, client included, to show the share of the network
// stack.
func BenchmarkHTTP(b *testing.B) {
	s := quiet()
	server := httptest.NewServer(s.API)
	b.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request, err := http.NewRequest(http.MethodPost, server.URL+"/ledger/3", strings.NewReader(good))
			if err != nil {
				b.Error(err)
				return
			}
			request.Header.Set("Authorization", "Bearer bahi_clerk")
			response, err := client.Do(request)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	})
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
