// Package ops has the operations of those who run the system.
package ops

import (
	"bahi/http/api"
	views "bahi/readmodels/ops"
)

// Routes registers the operations.
type Routes struct {
	API   *api.API
	Views *views.Jobs
	Queue Queue

	Registry *views.Projections
	Builds   Builds

	Captured map[string]Captured // by port; a port that is not there keeps nothing
}

var tags = []string{"Operations"}

// Register registers all operations of the area.
func (r *Routes) Register() {
	r.Jobs()
	r.Projections()
	r.Parked()
	r.Outbox()
}
