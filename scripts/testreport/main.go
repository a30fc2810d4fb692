// Command testreport reads what `go test -json` prints, shows a line for each package and all that a failed test said,
// and closes with "N passed, N failed". It exits with 1 if anything failed.
package main

import (
	"fmt"
	"os"
)

func main() {
	ok, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}
