// Command bahi keeps the books: it serves the HTTP interface, and has the tools of those who run it.
package main

import (
	"fmt"
	"os"

	"bahi/internal/cli"
)

func main() {
	if err := cli.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bahi:", err)
		os.Exit(1)
	}
}
