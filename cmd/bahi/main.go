// Command bahi serves the HTTP interface and has the operators' tools.
package main

import (
	"errors"
	"fmt"
	"os"

	"bahi/internal/cli"
)

func main() {
	if err := cli.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bahi:", err)
		var other interface{ ExitCode() int } // than 1
		if errors.As(err, &other) {
			os.Exit(other.ExitCode())
		}
		os.Exit(1)
	}
}
