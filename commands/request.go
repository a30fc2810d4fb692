package commands

import (
	"github.com/google/uuid"

	"bahi/domain/actor"
)

// Request is the context of a command. The zero Request is for the system's own work.
type Request struct {
	Actor         actor.Actor
	Workspace     uuid.UUID // workspace in which the actor acts
	RequestID     string
	CorrelationID string
	Reason        string // the reason, in the caller's words
	DryRun        bool   // decide, append nothing
	IfMatch       *int64 // the revision that the caller has seen

	Key         string // Idempotency-Key, empty for none
	Operation   string // with actor and workspace, the scope of the key
	Fingerprint []byte // everything that identifies a repeated request
}

// FollowUp returns the request for follow-ups in other streams. It drops the caller's key and If-Match, which apply only to the first
// stream.
func (r Request) FollowUp() Request {
	r.Key, r.IfMatch = "", nil
	return r
}

// In returns the request in another workspace.
func (r Request) In(workspace uuid.UUID) Request {
	r.Workspace = workspace
	return r
}
