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

	Overlap time.Duration `default:"168h" help:"How long tokens of the keys before are still taken. 168h is how long a refresh token lives, so nobody notices; 0 after a theft of keys: everybody has to sign in again, and who has stolen them is out."`
}

// Run makes the key.
func (c rotateKeys) Run(ctx context.Context) error {
	if c.Overlap < 0 {
		return fmt.Errorf("an overlap of %s is less than nothing", c.Overlap)
	}
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	return sys.Accounts.Credentials.Keys.Rotate(ctx, c.Overlap)
}
