package apptest

import (
	"testing"

	"bahi/readmodels/opsview"
)

// Jobs returns the jobs of a kind, newest first.
func (o *Server) Jobs(query string) (all []opsview.Job) {
	o.T.Helper()
	o.Operator().GET("/ops/jobs?" + query).Status(200).JSON(&all)
	return all
}

// StartWithMailServer serves a system that sends its mails to an address.
func StartWithMailServer(t *testing.T, address string) *Server {
	t.Helper()
	s := Settings(t, Database(t))
	s.Outside.SMTPURL = "smtp://" + address + "?from=bahi@example.com&tls=none"
	return StartAs(t, s)
}
