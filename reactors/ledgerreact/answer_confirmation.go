package ledgerreact

import (
	"context"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/domain/messaging/message"
	"bahi/reactors"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// Confirmations records the replies of parties to requests to confirm balances.
var Confirmations = reactors.Define("confirmations",
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Received]) {
		if e.Data.Type != "reaction" {
			q.Add(answerConfirmation{Message: e.StreamID(), Channel: e.Data.Channel})
		}
	}),
	reactors.On(func(q *reactors.Queue, e event.Recorded[message.Edited]) {
		q.Add(answerConfirmation{Message: e.StreamID(), Edited: true})
	}),
)

// answerConfirmation records a message that replies to a request.
type answerConfirmation struct {
	Message string `json:"message"`
	Channel int64  `json:"channel"`
	Edited  bool   `json:"edited,omitempty"` // the edited message may be such a reply
}

// Kind implements [reactors.Args].
func (answerConfirmation) Kind() string { return "answer_confirmation" }

// ConfirmationAnswers has the worker that records replies.
type ConfirmationAnswers struct {
	*ledgercmd.Confirmations

	Views *ledgerview.Views
}

// Workers returns the worker of replies. Most channels have no open request. Their messages need no job, except edited ones.
func (a *ConfirmationAnswers) Workers() reactors.Workers {
	work := func(ctx context.Context, job reactors.Job[answerConfirmation]) error {
		l, err := commands.Load(ctx, a.Commands.Fresh(), message.Kind, job.Args.Message)
		if err != nil {
			return err
		}
		return a.Answer(ctx, l.Workspace, event.Number(job.Args.Message))
	}
	return reactors.Workers{reactors.WorkIf(reactors.Policy{}, a.needed, work)}
}

func (a *ConfirmationAnswers) needed(ctx context.Context, asOf event.Position, all []reactors.Wanted[answerConfirmation]) ([]bool, error) {
	type key struct {
		workspace uuid.UUID
		channel   int64
	}
	needed, open := make([]bool, len(all)), map[key]bool{}
	for i, w := range all {
		if needed[i] = w.Args.Edited; needed[i] {
			continue
		}
		k := key{w.Workspace, w.Args.Channel}
		if _, looked := open[k]; !looked {
			found, err := a.Views.Unanswered(ctx, new(readmodels.At).AsKnownAt(asOf), k.workspace, k.channel)
			if err != nil {
				return nil, err
			}
			open[k] = len(found) > 0
		}
		needed[i] = open[k]
	}
	return needed, nil
}
