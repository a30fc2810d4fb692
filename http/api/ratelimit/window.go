// Package ratelimit counts requests in sliding windows: it allows at most a number in any interval of the limit's length. The next request
// is allowed exactly when the oldest leaves the window.
//
// It stores the time of every allowed request, eight bytes each, for one window. The usual approximation by two fixed windows requires only
// two numbers per key. But it is inexact: if requests arrive unevenly, it refuses allowed requests or allows too many.
package ratelimit

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Limit is the maximum number of requests in any interval of a length. The zero Limit is no limit.
type Limit struct {
	Requests int
	Per      time.Duration // whole seconds, for the headers
}

// Off reports whether there is no limit.
func (l Limit) Off() bool { return l.Requests == 0 }

// String returns the form of a setting: 20/1m0s, or off.
func (l Limit) String() string {
	if l.Off() {
		return "off"
	}
	return fmt.Sprintf("%d/%s", l.Requests, l.Per)
}

// The maximum of a limit, because the times of a window take memory.
const (
	maxRequests = 1_000_000
	longest     = 24 * time.Hour
)

// Parse parses a limit such as 20/1m or 5/30s, or off.
func Parse(text string) (Limit, error) {
	if text == "off" {
		return Limit{}, nil
	}
	number, duration, found := strings.Cut(text, "/")
	requests, err := strconv.Atoi(number)
	if !found || err != nil || requests < 1 || requests > maxRequests {
		return Limit{}, fmt.Errorf("limit %q: expected 1 to %d requests in a time, such as 20/1m, or off", text, maxRequests)
	}
	per, err := time.ParseDuration(duration)
	if err != nil || per < time.Second || per > longest || per%time.Second != 0 {
		return Limit{}, fmt.Errorf("limit %q: the time is whole seconds, from 1s to %s", text, longest)
	}
	return Limit{Requests: requests, Per: per}, nil
}

// Key identifies requests that are counted together: a group, and a known caller or else an address.
type Key struct {
	Group   string
	Caller  string
	Address netip.Addr
}

// Decision is the result for a request.
type Decision struct {
	Allowed   bool          // the request is allowed and counted
	Remaining int           // number of further requests that are allowed now
	Next      time.Duration // time until the oldest counted request leaves the window; 0: none is counted
}
