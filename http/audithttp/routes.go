// Package audithttp has the operations for auditors: the log's events, its checkpoints, proofs and the trail of the books.
package audithttp

import (
	"context"
	"time"

	"github.com/google/uuid"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/readmodels/auditview"
)

// feed follows the log.
type feed interface {
	// Follow calls take with the events after a position, in order, then with new ones, until ctx ends or take fails.
	Follow(ctx context.Context, after event.Position, take func([]event.Stored) error) error
}

// Routes registers the operations.
type Routes struct {
	API    *api.API
	Events *auditview.Events
	Proofs *auditview.Proofs
	Feed   feed
	Report *TrailReport
}

var tags = []string{"Audit"}

var errWorkspace = fault.New(fault.NotFound, "Workspace not found")

// scope returns the workspace of the events that the caller sees, nil for all, and the workspace with open personal values.
func scope(ctx context.Context, asked api.Optional[uuid.UUID]) (of *uuid.UUID, in uuid.UUID, err error) {
	caller := api.Caller(ctx)
	switch {
	case caller.Permissions.Operator && !asked.Set:
		return nil, caller.Workspace, nil
	case caller.Permissions.Operator:
		return &asked.Value, asked.Value, nil
	case asked.Set && asked.Value != caller.Workspace:
		return nil, uuid.Nil, errWorkspace
	}
	return &caller.Workspace, caller.Workspace, nil
}

// moment parses a time; nil without one.
func moment(name, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // absent
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1 || at.Year() > 9999 {
		return nil, fault.Wrong(name, "expected an RFC 3339 moment")
	}
	return &at, nil
}

const (
	area  = actor.Audit
	limit = "audit_general"
)

// Register registers all operations of the area.
func (r *Routes) Register() {
	r.trail()
	r.checkpoints()
	r.raw()
	r.Report.trail(r.API)
}
