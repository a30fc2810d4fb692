// Package window counts requests in sliding windows: at most so many within any stretch of time, and
// the next one exactly when the oldest leaves it.
//
// It keeps the moment of every request that it allowed. The usual approximation, two fixed windows of
// which the earlier one counts in part, needs two numbers a key instead, and is wrong at the edges: it
// refuses what is allowed or allows what is not, by how unevenly the requests came. The moments are eight
// bytes each, of the requests of one window alone.
package window

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Limit is how many requests are allowed within any stretch of time. The zero Limit is none.
type Limit struct {
	Requests int
	Per      time.Duration // whole seconds, as the headers tell it
}

// Off says whether there is no limit.
func (l Limit) Off() bool { return l.Requests == 0 }

// String is how a setting has it: 20/1m0s, or off.
func (l Limit) String() string {
	if l.Off() {
		return "off"
	}
	return fmt.Sprintf("%d/%s", l.Requests, l.Per)
}

// What a limit may be at most. The moments of a window are kept, so that neither may be endless.
const (
	MostRequests = 1_000_000
	Longest      = 24 * time.Hour
)

// Parse reads a limit such as 20/1m or 5/30s, or off.
func Parse(text string) (Limit, error) {
	if text == "off" {
		return Limit{}, nil
	}
	number, duration, found := strings.Cut(text, "/")
	requests, err := strconv.Atoi(number)
	if !found || err != nil || requests < 1 || requests > MostRequests {
		return Limit{}, fmt.Errorf("limit %q: expected 1 to %d requests in a time, such as 20/1m, or off", text, MostRequests)
	}
	per, err := time.ParseDuration(duration)
	if err != nil || per < time.Second || per > Longest || per%time.Second != 0 {
		return Limit{}, fmt.Errorf("limit %q: the time is whole seconds, from 1s to %s", text, Longest)
	}
	return Limit{Requests: requests, Per: per}, nil
}

// Key is whose requests are counted together, and for what: somebody known, else an address.
type Key struct {
	Group   string
	Caller  string
	Address netip.Addr
}

// Decision is what became of a request.
type Decision struct {
	Allowed   bool          // and counted; one that is refused is not
	Remaining int           // how many more are allowed now
	Next      time.Duration // until the oldest that counts leaves the window; 0: none counts
}
