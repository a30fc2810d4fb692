// Package ledgerreact has the side effects of the books.
package ledgerreact

import (
	"context"
	"errors"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/ledger/orderdraft"
	"bahi/providers/chat"
	"bahi/reactors"
)

// Drafts confirms drafts to their senders.
var Drafts = reactors.Define("order_drafts",
	reactors.On(func(q *reactors.Queue, e event.Recorded[orderdraft.Received]) {
		if e.Data.Reply {
			q.Add(replyToDraft{Draft: e.StreamID()})
		}
	}),
)

// replyToDraft confirms a draft to its sender.
type replyToDraft struct {
	Draft string `json:"draft"`
}

// Kind implements [reactors.Args].
func (replyToDraft) Kind() string { return "reply_to_draft" }

// Replies sends the confirmations.
type Replies struct {
	Commands *commands.Handler
	Gateway  *chat.Replies
	Status   string // status of an accepted reply: sent, or kept in the sandbox
}

// attempts end after about three hours: the network accepts replies for a day.
const attempts = 9

// Workers returns the worker of confirmations.
func (r *Replies) Workers() reactors.Workers {
	return reactors.Workers{reactors.Work(reactors.Policy{Attempts: attempts}, r.reply)}
}

func (r *Replies) reply(ctx context.Context, job reactors.Job[replyToDraft]) error {
	l, err := commands.Load(ctx, r.Commands.Fresh(), orderdraft.Kind, job.Args.Draft)
	if err != nil || !l.State.Reply || l.State.Replied || l.State.Deleted {
		return err
	}
	s, err := commands.Reveal(ctx, r.Commands, l.State)
	if err != nil {
		return err
	}
	phone, err := s.Phone.Text()
	if errors.Is(err, event.ErrErased) || phone == "" {
		return nil
	}
	if err != nil {
		return err
	}
	c := orderdraft.NoteReply{Status: r.Status, Text: orderdraft.Confirmation(job.Args.Draft, s.Entries)}
	c.ID, err = r.Gateway.Reply(ctx, "order-draft-"+job.Args.Draft, phone, c.Text)
	if err != nil {
		if c.Status = r.Gateway.Ended(err); c.Status == "" && job.Attempt < attempts {
			return err
		}
		if c.Status == "" {
			c.Status = "failed"
		}
	}
	_, err = commands.Handle(ctx, r.Commands, commands.Request{Workspace: l.Workspace}, orderdraft.Kind, job.Args.Draft, c)
	return err
}
