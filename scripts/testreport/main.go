// Command testreport reads the output of `go test -json`. It prints a line per package, the output of failed tests, slow tests, and at the
// end "N passed, N failed". It exits with 1 if anything failed, or is slow without a reason.
package main

import (
	"fmt"
	"os"
)

func main() {
	pace := &pacing{}
	go pace.run()
	slow, err := newSlowness(slowTests, pace.slower)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	ok, err := report(os.Stdin, os.Stdout, slow)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}
