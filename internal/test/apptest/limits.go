package apptest

import (
	"fmt"
	"testing"
	"time"

	"bahi/http/api"
	"bahi/internal/test/apitest"
)

// StartLimited serves a system with the limits of the specification, but per hour instead of per minute, so that they also apply on a busy
// machine. It is behind a proxy on this machine.
func StartLimited(t *testing.T) *Server {
	t.Helper()
	s := Settings(t, Database(t))
	s.Outside.Limits, s.Outside.Proxies = api.DefaultLimits(), []string{"127.0.0.0/8"}
	for group, l := range s.Outside.Limits {
		if l.Per == time.Minute {
			l.Per = time.Hour
			s.Outside.Limits[group] = l
		}
	}
	return StartAs(t, s)
}

// From returns a client that the proxy forwards for an address.
func From(c *apitest.Client, address string) *apitest.Client {
	return c.With("X-Forwarded-For", "203.0.113.9, "+address)
}

// SignInFrom creates a session of Asha's from an address of its own.
func (o *Server) SignInFrom(address int) string {
	o.T.Helper()
	var in SignedIn
	From(o.Anonymous(), fmt.Sprintf("192.0.2.%d", address)).POST(Auth+"/login",
		map[string]string{"email": "asha@example.com", "password": GoodPassword}).Status(200).JSON(&in)
	return in.Access
}
