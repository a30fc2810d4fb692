package postgres

import (
	"os"
	"strconv"
	"time"
)

// rounds is how often a fault is made to happen: BAHI_ROUNDS in make soak, else few.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("BAHI_ROUNDS")); err == nil {
		return n
	}
	return few
}

// soakFor is how long the test of many processes goes on: BAHI_SOAK_SECONDS, else two seconds a round.
func soakFor() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("BAHI_SOAK_SECONDS")); err == nil {
		return time.Duration(n) * time.Second
	}
	return time.Duration(rounds(3)) * 2 * time.Second
}
