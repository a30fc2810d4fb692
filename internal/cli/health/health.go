// Package health has the command that asks a server whether it is ready.
package health

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"bahi/internal/app"
)

// within bounds the question.
const within = 5 * time.Second

// Command asks the server on this machine, for a supervisor without curl: a container's, for example.
type Command struct {
	Data string `env:"BAHI_DATA" default:"./data" help:"The server's data folder, which says where the server listens."`
	Addr string `env:"BAHI_ADDR" placeholder:"ADDRESS" help:"Where the server's HTTP listens. Without it, as the data folder says."`
}

// Run returns an error unless the server is ready.
func (c Command) Run(ctx context.Context) error {
	addr, err := app.ServerAddr(c.Data, c.Addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
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
