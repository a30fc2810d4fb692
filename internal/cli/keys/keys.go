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

	Overlap time.Duration `default:"168h" help:"Time for which tokens of former keys stay valid. With 168h, the lifetime of refresh tokens, no user is affected. After a theft of keys use 0: it signs out everyone, even the attacker."`
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
