// Package opshttp has the operators' operations.
package opshttp

import (
	"bahi/commands"
	"bahi/http/api"
	"bahi/readmodels/accessview"
	"bahi/readmodels/opsview"
)

// Routes registers the operations.
type Routes struct {
	API   *api.API
	Views *opsview.Jobs
	Queue Queue

	Registry *opsview.Projections
	Builds   Builds

	People   *accessview.Views
	Commands *commands.Handler
	Inbox    inbox
	Networks channels
	Eraser   eraser
	Captured map[string]Captured // by port; a missing port stores nothing
}

var tags = []string{"Operations"}

// Register registers all operations of the area.
func (r *Routes) Register() {
	r.Jobs()
	r.Projections()
	r.Parked()
	r.outbox()
	r.Webhooks()
	r.Erasures()
	r.senders()
	r.workspaces()
	r.Status()
}
