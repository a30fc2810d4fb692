// Package messaging has the side effects of conversations and campaigns.
package messaging

import (
	"context"
	"errors"
	"strings"
	"time"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/reactors"
)

// Messages plays back what becomes of a message in the sandbox, and fetches the files that come in.
var Messages = reactors.Define("messages",
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Accepted]) error {
		if strings.HasPrefix(e.Data.ProviderID, sandbox) {
			q.Add(PlayReceipts{Message: e.StreamID()})
		}
		return nil
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Received]) error {
		if e.Data.Media != nil {
			q.Add(KeepFile{Message: e.StreamID()})
		}
		return nil
	}),
)

// KeepFile fetches the file of a message.
type KeepFile struct {
	Message string `json:"message"`
}

// Kind implements [reactors.Args].
func (KeepFile) Kind() string { return "keep_file" }

// sandbox is what the ids of messages begin with that the sandbox took.
const sandbox = "sandbox."

// PlayReceipts plays the receipts of a message in the sandbox.
type PlayReceipts struct {
	Message string `json:"message"`
}

// Kind implements [reactors.Args].
func (PlayReceipts) Kind() string { return "play_receipts" }

// Player plays receipts and keeps files.
type Player struct {
	Commands *commands.Handler
	Keep     func(ctx context.Context, message string) error // see flows.Messages.KeepFile
}

// fileWithin bounds an attempt to fetch a file.
const fileWithin = time.Minute

// playersAtOnce share the log's fsyncs. With the usual few, the receipts of a campaign would come long after its messages.
const playersAtOnce = 64

// Workers returns the workers.
func (p *Player) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(reactors.Policy{AtOnce: playersAtOnce}, p.play),
		reactors.Work(reactors.Policy{Timeout: fileWithin}, func(ctx context.Context, job reactors.Job[KeepFile]) error {
			err := p.Keep(ctx, job.Args.Message)
			if failed, ok := errors.AsType[*network.Failure](err); ok && !failed.Reason.Free() && failed.Reason != network.Unknown || ok && failed.Reason == network.Unconfigured {
				return reactors.GiveUp(err)
			}
			return err
		}),
	}
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
