// Package draws sets how often the properties of a test package are tried.
package draws

import (
	"flag"
	"os"
	"strconv"
	"time"
)

// Default makes each property of the package draw n times, and shrink a failure for 5 seconds, unless -rapid.checks says otherwise.
// A TestMain calls it where rapid's hundred draws would take too long, because each has a database or processes of its own. With
// BAHI_ROUNDS, which make soak sets, there are a hundred.
func Default(n int) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue && os.Getenv("BAHI_ROUNDS") == "" {
		_ = checks.Value.Set(strconv.Itoa(n))
		_ = flag.Set("rapid.shrinktime", (5 * time.Second).String())
	}
}
