// Package messagingreact has the side effects of conversations and campaigns.
package messagingreact

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/reactors"
)

// Messages simulates receipts in the sandbox, and fetches incoming files.
var Messages = reactors.Define("messages",
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Accepted]) {
		if strings.HasPrefix(e.Data.ProviderID, sandbox) {
			q.Add(simulateReceipts{Messages: []string{e.StreamID()}})
		}
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Received]) {
		if e.Data.Media != nil {
			q.Add(keepFile{Message: e.StreamID()})
		}
	}),
).WithBatchDelay(gather)

// gather is the maximum wait of a message for others, so that the same job handles them.
const gather = 100 * time.Millisecond

// keepFile fetches the file of a message.
type keepFile struct {
	Message string `json:"message"`
}

// Kind implements [reactors.Args].
func (keepFile) Kind() string { return "keep_file" }

// sandbox is the prefix of message ids that the sandbox creates.
const sandbox = "sandbox."

// simulateReceipts simulates the receipts of messages in the sandbox.
type simulateReceipts struct {
	Message  string   `json:"message,omitempty"` // set by older programs only
	Messages []string `json:"messages,omitempty"`
}

// maxPlayed limits the messages of a job.
const maxPlayed = 100

// Join implements [reactors.Mergeable].
func (p simulateReceipts) Join(other reactors.Args) (reactors.Args, bool) {
	more, ok := other.(simulateReceipts)
	if !ok || len(p.Messages) >= maxPlayed {
		return p, false
	}
	p.Messages = append(p.Messages, more.Messages...)
	return p, true
}

// Kind implements [reactors.Args].
func (simulateReceipts) Kind() string { return "simulate_receipts" }

// Player simulates receipts and stores files.
type Player struct {
	Commands *commands.Handler
	Keep     func(ctx context.Context, message string) error // see messagingcmd.Messages.KeepFile
}

// fileTimeout limits an attempt to fetch a file.
const fileTimeout = time.Minute

// Workers returns the workers.
func (p *Player) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(reactors.Policy{}, p.play),
		reactors.Work(reactors.Policy{Timeout: fileTimeout}, func(ctx context.Context, job reactors.Job[keepFile]) error {
			err := p.Keep(ctx, job.Args.Message)
			if failed, ok := errors.AsType[*network.Failure](err); ok && !failed.Reason.Retryable() && failed.Reason != network.Unknown ||
				ok && failed.Reason == network.Unconfigured {
				return reactors.GiveUp(err)
			}
			return err
		}),
	}
}

func (p *Player) play(ctx context.Context, job reactors.Job[simulateReceipts]) error {
	ids := job.Args.Messages
	if job.Args.Message != "" {
		ids = append(ids, job.Args.Message)
	}
	of := map[uuid.UUID][]commands.StreamCommand[message.State]{}
	for _, id := range ids {
		l, err := commands.Load(ctx, p.Commands.Cached(), message.Kind, id)
		if err != nil {
			return err
		}
		of[l.Workspace] = append(of[l.Workspace], commands.StreamCommand[message.State]{Loaded: l, ID: id, Command: message.SimulateReceipts{}})
	}
	for workspace, all := range of {
		if err := commands.HandleAll(ctx, p.Commands, commands.Request{Workspace: workspace}, message.Kind, all); err != nil {
			return err
		}
	}
	return nil
}
