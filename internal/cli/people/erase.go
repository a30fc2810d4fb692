package people

import (
	"context"
	"fmt"

	"bahi/internal/app"
)

// EraseCommand erases a person from all areas.
type EraseCommand struct {
	app.Settings

	Email string `help:"Their address."`
	Phone string `help:"Their phone, with the country's code."`
}

// Run erases them. A server that runs, or the next one, rewrites the tables that had them.
func (c EraseCommand) Run(ctx context.Context) error {
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	if err := sys.CatchUp(ctx); err != nil {
		return err
	}
	subjects, err := sys.Everywhere().EraseEverywhere(ctx, sys.ByOperator(sys.Home), c.Email, c.Phone)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "erased: %d\n", subjects)
	return nil
}
