// Package draws sets how often the properties of a test package are tried.
package draws

import (
	"flag"
	"os"
	"strconv"
	"time"
)

// Default makes each property of the package draw n times, and shrink a failure for 5 seconds, unless -rapid.checks sets another number.
// Call it in TestMain if each draw needs a database or processes: rapid's default of a hundred draws takes too long then. make soak sets
// BAHI_ROUNDS, which restores the default.
func Default(n int) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue && os.Getenv("BAHI_ROUNDS") == "" {
		_ = checks.Value.Set(strconv.Itoa(n))
		_ = flag.Set("rapid.shrinktime", (5 * time.Second).String())
	}
}
