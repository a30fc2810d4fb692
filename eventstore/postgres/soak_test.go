package postgres

import (
	"os"
	"strconv"
	"time"
)

// rounds returns how often a test injects a fault: BAHI_ROUNDS in make soak, otherwise few times.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("BAHI_ROUNDS")); err == nil {
		return n
	}
	return few
}

// soakFor returns how long the test with many processes runs: BAHI_SOAK_SECONDS, otherwise two seconds a round.
func soakFor() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("BAHI_SOAK_SECONDS")); err == nil {
		return time.Duration(n) * time.Second
	}
	return time.Duration(rounds(1)) * 2 * time.Second
}
