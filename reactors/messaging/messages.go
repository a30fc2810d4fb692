// Package messaging has the side effects of conversations and campaigns.
package messaging

import (
	"context"
	"strings"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/reactors"
)

// Messages plays back what becomes of a message in the sandbox.
var Messages = reactors.Define("messages",
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Accepted]) error {
		if strings.HasPrefix(e.Data.ProviderID, sandbox) {
			q.Add(PlayReceipts{Message: e.StreamID()})
		}
		return nil
	}),
)

// sandbox is what the ids of messages begin with that the sandbox took.
const sandbox = "sandbox."

// PlayReceipts plays the receipts of a message in the sandbox.
type PlayReceipts struct {
	Message string `json:"message"`
}

// Kind implements [reactors.Args].
func (PlayReceipts) Kind() string { return "play_receipts" }

// Player plays receipts.
type Player struct {
	Commands *commands.Handler
}

// Workers returns the worker of receipts.
func (p *Player) Workers() reactors.Workers {
	return reactors.Workers{reactors.Work(reactors.Policy{}, p.play)}
}

func (p *Player) play(ctx context.Context, job reactors.Job[PlayReceipts]) error {
	l, err := commands.Load(ctx, p.Commands.Fresh(), message.Kind, job.Args.Message)
	if err != nil {
		return err
	}
	for _, status := range []string{message.Delivered, message.Read} {
		req := commands.Request{Workspace: l.Workspace}
		if _, err := commands.Handle(ctx, p.Commands, req, message.Kind, job.Args.Message, message.Receipt{Status: status}); err != nil {
			return err
		}
	}
	return nil
}
