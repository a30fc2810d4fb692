// Package health has the command that checks whether a server is ready.
package health

import (
	"context"
	"time"

	"bahi/internal/cli/remote"
)

// within is the request's timeout.
const within = 5 * time.Second

// Command checks the server on this machine, for a supervisor without curl, such as a container's.
type Command struct{ remote.Server }

// Run returns an error unless the server is ready.
func (c Command) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.Do(ctx, remote.Request{Method: "GET", Path: "/readyz"}, nil)
}
