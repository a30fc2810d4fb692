package people

import (
	"context"
	"fmt"

	"bahi/http/opshttp"
	"bahi/internal/cli/remote"
)

// EraseCommand erases a person from all areas.
type EraseCommand struct {
	remote.Server

	Email string `help:"The person's address."`
	Phone string `help:"The person's phone, with the country code."`
}

// Run erases the person. The server rewrites the tables that had the person's data.
func (c EraseCommand) Run(ctx context.Context) error {
	var erased opshttp.Erased
	err := c.Do(ctx, remote.Request{Method: "POST", Path: "/ops/erasures",
		Body: map[string]string{"email": c.Email, "phone": c.Phone}}, &erased)
	if err == nil {
		fmt.Fprintf(c.Shell.Out, "erased: %d\n", erased.Subjects)
	}
	return err
}
