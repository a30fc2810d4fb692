package commands

import (
	"github.com/google/uuid"

	"bahi/domain/actor"
)

// Request is what is known about a command beside the command. The zero Request is for work of the system itself.
type Request struct {
	Actor         actor.Actor
	Workspace     uuid.UUID // in which it acts
	RequestID     string
	CorrelationID string
	Reason        string // why, in the caller's words
	DryRun        bool   // decide, append nothing
	IfMatch       *int64 // the revision that the caller has seen

	Key         string // Idempotency-Key, empty for none
	Operation   string // with the actor and the workspace, the scope of the key
	Fingerprint []byte // everything that makes it the same request
}

// FollowUp returns the request for what follows from it in other streams: the caller's key and If-Match are
// about the stream that decides.
func (r Request) FollowUp() Request {
	r.Key, r.IfMatch = "", nil
	return r
}

// In returns the request as it acts in another workspace.
func (r Request) In(workspace uuid.UUID) Request {
	r.Workspace = workspace
	return r
}
