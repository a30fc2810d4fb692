// Package ratelimit counts requests in sliding windows: at most a number within any interval of the limit's length. The next request is
// allowed exactly when the oldest leaves the window.
//
// It stores the time of every allowed request. The usual approximation, two fixed windows of which the earlier one counts in part, needs
// only two numbers per key. But it is inexact: depending on how unevenly requests come, it refuses allowed ones or allows too many. The
// times take eight bytes each, for one window only.
package ratelimit

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Limit is the number of requests allowed within any interval of its length. The zero Limit is no limit.
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

// These limit a limit, because the times of a window take memory.
const (
	MaxRequests = 1_000_000
	Longest     = 24 * time.Hour
)

// Parse parses a limit such as 20/1m or 5/30s, or off.
func Parse(text string) (Limit, error) {
	if text == "off" {
		return Limit{}, nil
	}
	number, duration, found := strings.Cut(text, "/")
	requests, err := strconv.Atoi(number)
	if !found || err != nil || requests < 1 || requests > MaxRequests {
		return Limit{}, fmt.Errorf("limit %q: expected 1 to %d requests in a time, such as 20/1m, or off", text, MaxRequests)
	}
	per, err := time.ParseDuration(duration)
	if err != nil || per < time.Second || per > Longest || per%time.Second != 0 {
		return Limit{}, fmt.Errorf("limit %q: the time is whole seconds, from 1s to %s", text, Longest)
	}
	return Limit{Requests: requests, Per: per}, nil
}

// Key identifies requests that count together: a group, and a known caller or otherwise an address.
type Key struct {
	Group   string
	Caller  string
	Address netip.Addr
}

// Decision is the result for a request.
type Decision struct {
	Allowed   bool          // and counted; a refused one is not
	Remaining int           // how many more are allowed now
	Next      time.Duration // until the oldest counted one leaves the window; 0: none counts
}
