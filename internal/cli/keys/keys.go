package keys

import (
	"context"
	"fmt"
	"time"

	"bahi/internal/app"
)

type Command struct {
	Rotate rotateKeys `cmd:"" help:"Sign access and refresh tokens with a new key from now on."`
}

type rotateKeys struct {
	app.Settings

	Overlap time.Duration `default:"168h" help:"How long tokens of former keys stay valid. Refresh tokens live 168h, so nobody notices; 0 after a theft of keys: it signs everybody out, also the thief."`
}

// Run creates the key.
func (c rotateKeys) Run(ctx context.Context) error {
	if c.Overlap < 0 {
		return fmt.Errorf("an overlap of %s is negative", c.Overlap)
	}
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	return sys.Accounts.Credentials.Keys.Rotate(ctx, c.Overlap)
}
