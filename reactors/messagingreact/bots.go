package messagingreact

import (
	"context"
	"time"

	"bahi/commands/messagingcmd/knowledge"
	"bahi/domain/event"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botsource"
	"bahi/domain/messaging/message"
	"bahi/reactors"
)

// Bots reads the sources of bots, and makes bots reply to messages.
var Bots = reactors.Define("bots",
	reactors.On(func(q *reactors.Queue, e event.Recorded[botsource.FileAdded]) {
		q.Add(readSource{Source: e.StreamID()})
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[botsource.PageAdded]) {
		q.Add(readSource{Source: e.StreamID()})
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[botsource.Requested]) {
		q.Add(readSource{Source: e.StreamID()})
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[botsource.Deleted]) {
		q.Add(eraseSource{Bot: e.Data.Bot, Source: e.StreamID()})
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[bot.Deleted]) {
		q.Add(eraseBot{Bot: e.StreamID()})
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Received]) {
		q.Add(AnswerMessage{Message: e.StreamID(), Contact: e.Data.Contact, Channel: e.Data.Channel})
	}),
)

// readSource reads a file or a page.
type readSource struct {
	Source string `json:"source"`
}

// Kind implements [reactors.Args].
func (readSource) Kind() string { return "read_bot_source" }

// eraseSource deletes the data derived from a file or a page.
type eraseSource struct {
	Bot    int64  `json:"bot"`
	Source string `json:"source"`
}

// Kind implements [reactors.Args].
func (eraseSource) Kind() string { return "erase_bot_source" }

// eraseBot deletes the data derived from a bot's files and pages.
type eraseBot struct {
	Bot string `json:"bot"`
}

// Kind implements [reactors.Args].
func (eraseBot) Kind() string { return "erase_bot" }

// SweepVectors reads sources again if their vectors are not of the current model.
type SweepVectors struct{}

// Kind implements [reactors.Args].
func (SweepVectors) Kind() string { return "sweep_bot_vectors" }

// Knowledge reads the sources of bots.
type Knowledge struct {
	Reading *knowledge.Indexer
}

// SweepVectorsInterval is the interval of SweepVectors.
const SweepVectorsInterval = 10 * time.Minute

const (
	tries       = 3 // attempts to read a page, in 60 s (CONTRACT.md B12)
	readTimeout = 5 * time.Minute
)

// Workers returns the workers that read and delete sources.
func (k *Knowledge) Workers() reactors.Workers {
	return reactors.Workers{
		reactors.Work(reactors.Policy{Attempts: tries, First: 10 * time.Second, Timeout: readTimeout, MaxConcurrent: 2},
			func(ctx context.Context, job reactors.Job[readSource]) error {
				return reactors.Later(k.Reading.Read(ctx, job.Args.Source, job.Attempt >= tries))
			}),
		reactors.Work(reactors.Policy{}, func(ctx context.Context, job reactors.Job[eraseSource]) error {
			return k.Reading.Forget(ctx, job.Args.Bot, job.Args.Source)
		}),
		reactors.Work(reactors.Policy{}, func(ctx context.Context, job reactors.Job[eraseBot]) error {
			return k.Reading.EraseBot(ctx, job.Args.Bot)
		}),
		reactors.Work(reactors.Policy{MaxConcurrent: 1, Timeout: readTimeout}, func(ctx context.Context, _ reactors.Job[SweepVectors]) error {
			return k.Reading.Revise(ctx)
		}),
	}
}
