package api

import (
	"net/netip"
	"time"

	"bahi/http/api/ratelimit"
)

// AuthFailures counts the credentials that a process refused, by address. All listeners of the process share it, so that a guesser
// has as many tries at all of them together as at one.
type AuthFailures struct {
	refused *ratelimit.Memory
	limit   ratelimit.Limit
}

// NewGuesses returns a count that the limit [GroupRefused] bounds.
func NewGuesses(limits Limits, now func() time.Time) *AuthFailures {
	return &AuthFailures{ratelimit.NewMemory(now, 0), limits[GroupRefused]}
}

// Refused counts a refused credential, and reports whether it was one too many.
func (g *AuthFailures) Refused(from netip.Addr) (tooMany bool) {
	return !g.limit.Off() && !g.take(counted(plainAddress(from))).Allowed
}

func (g *AuthFailures) take(from netip.Addr) ratelimit.Decision {
	return g.refused.Take(ratelimit.Key{Group: GroupRefused, Address: from}, g.limit)
}
