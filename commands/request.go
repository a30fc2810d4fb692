package commands

import (
	"context"

	"github.com/google/uuid"

	"bahi/domain/actor"
)

// Request is what is known about a command beside the command.
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

type requestKey struct{}

// With answers a context in which commands are carried out for the request.
func With(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// From answers the request of a context; the zero Request for work of the system itself.
func From(ctx context.Context) Request {
	r, _ := ctx.Value(requestKey{}).(Request)
	return r
}
