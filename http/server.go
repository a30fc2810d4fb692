package http

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"bahi/domain/event"
	"bahi/http/api"
)

// Document is the OpenAPI document of all operations. A test generates it.
//
//go:embed testdata/openapi.json
var Document []byte

const (
	headTimeout  = 5 * time.Second
	readTimeout  = 30 * time.Second
	writeTimeout = 60 * time.Second
	idleTimeout  = 120 * time.Second
	maxHead      = 32 << 10

	// probeTimeout is the timeout of all readiness checks together.
	probeTimeout = 2 * time.Second

	defaultGrace = 8 * time.Second
)

// Readiness is the response of /readyz. A process with a parked, waiting or paused projection is ready, because its responses are
// marked stale (DESIGN.md, hard case 9).
type Readiness struct {
	Ready       bool           `json:"ready"`
	Reason      []string       `json:"why,omitempty"` // reasons for not being ready
	Head        event.Position `json:"head"`
	Projections []Projection   `json:"projections"`
	Feed        *Feed          `json:"feed,omitempty"`
	OCR         string         `json:"ocr,omitempty"` // programs that read scanned pages
}

// Projection is the progress of a projection.
type Projection struct {
	Name       string         `json:"name"`
	Version    int            `json:"version"`
	Generation int            `json:"generation"`
	State      string         `json:"state"` // live, building, parked, waiting, paused
	Position   event.Position `json:"position"`
	LagEvents  uint64         `json:"lag_events"`
	Error      string         `json:"error,omitempty"` // reason why the projection is parked, waits or is not built
}

// Feed is the progress of forwarding events. It does not affect readiness, because no response depends on it.
type Feed struct {
	State     string         `json:"state"` // live, waiting, parked
	Position  event.Position `json:"position"`
	LagEvents uint64         `json:"lag_events"`
	Error     string         `json:"error,omitempty"` // reason for waiting or parked
}

// Config has the parts and settings of a Server.
type Config struct {
	API     *api.API
	Ready   func(context.Context) Readiness // must return before the context ends
	Metrics prometheus.Gatherer             // nil: no /metrics
	Log     *slog.Logger                    // nil: none
	Grace   time.Duration                   // time for active requests after ctx ends; 0: 8 seconds
}

// Server serves HTTP.
type Server struct {
	http  *http.Server
	grace time.Duration
	end   context.CancelFunc // cancels the requests that outlast the grace
}

// NewServer returns a server, and adds /livez, /readyz and /metrics to the API.
func NewServer(config Config) *Server {
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	if config.Grace == 0 {
		config.Grace = defaultGrace
	}
	config.API.Page("/livez", http.HandlerFunc(live))
	config.API.Page("/readyz", ready(config.Ready))
	if config.Metrics != nil {
		config.API.Page("/metrics", promhttp.HandlerFor(config.Metrics, promhttp.HandlerOpts{
			ErrorLog: slog.NewLogLogger(config.Log.Handler(), slog.LevelError),
		}))
	}
	base, end := context.WithCancel(context.Background())
	s := &Server{
		grace: config.Grace, end: end,
		http: &http.Server{
			Handler:           config.API,
			ReadHeaderTimeout: headTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
			MaxHeaderBytes: maxHead,
			ErrorLog:       slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug), // faults of clients below HTTP
			BaseContext:    func(net.Listener) context.Context { return base },
		},
	}
	s.http.RegisterOnShutdown(config.API.EndStreams)
	return s
}

// Serve serves the connections of the listener until ctx ends, and closes it. Then active requests have the grace to finish.
// Serve cancels the others and returns an error.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	defer s.end()
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	err := s.http.Shutdown(grace)
	<-failed //nolint:errcheck // always http.ErrServerClosed
	if err != nil {
		s.end()
		return errors.Join(fmt.Errorf("requests were still under way %s after the end: %w", s.grace, err), s.http.Close())
	}
	return nil
}

func live(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, struct {
		Alive bool `json:"alive"`
	}{true})
}

func ready(check func(context.Context) Readiness) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		now := check(ctx)
		if now.Projections == nil {
			now.Projections = []Projection{}
		}
		status := http.StatusOK
		if !now.Ready {
			status = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", "1")
		}
		answer(w, status, now)
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // the client of the probe may be gone
}
