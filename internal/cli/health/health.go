// Package health has the command that asks a server whether it is ready.
package health

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// within bounds the question.
const within = 5 * time.Second

// Command asks the server on this machine, for a supervisor without curl: a container's, for example.
type Command struct {
	Addr string `env:"BAHI_ADDR" default:"127.0.0.1:8080" help:"Where the server's HTTP listens."`
}

// Run returns an error unless the server is ready.
func (c Command) Run(ctx context.Context) error {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf("BAHI_ADDR: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens everywhere, and a container may not know localhost
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("BAHI_ADDR: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("the server does not respond: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // only its status is of interest
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server is not ready: %s", answer.Status)
	}
	return nil
}
