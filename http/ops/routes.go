// Package ops has the operators' operations.
package ops

import (
	"bahi/commands"
	"bahi/http/api"
	people "bahi/readmodels/access"
	views "bahi/readmodels/ops"
)

// Routes registers the operations.
type Routes struct {
	API   *api.API
	Views *views.Jobs
	Queue Queue

	Registry *views.Projections
	Builds   Builds

	People   *people.Views
	Commands *commands.Handler
	Inbox    Inbox
	Networks Channels
	Eraser   Eraser
	Captured map[string]Captured // by port; a missing port keeps nothing
}

var tags = []string{"Operations"}

// Register registers all operations of the area.
func (r *Routes) Register() {
	r.Jobs()
	r.Projections()
	r.Parked()
	r.Outbox()
	r.Webhooks()
	r.Erasures()
	r.Senders()
	r.Workspaces()
	r.Status()
}
