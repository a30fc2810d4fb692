package messagingreact

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/commands"
	"bahi/commands/messagingcmd"
	"bahi/commands/messagingcmd/answering"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botanswer"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/patch"
	"bahi/reactors"
	"bahi/readmodels"
	"bahi/readmodels/messagingview"
)

// AnswerMessage makes a bot reply to a message, and to all others that wait by then.
type AnswerMessage struct {
	Message string `json:"message"`
	Contact int64  `json:"contact"`
	Channel int64  `json:"channel"`
}

// Kind implements [reactors.Args].
func (AnswerMessage) Kind() string { return "answer_message" }

// Answers has the workers of bots' replies.
type Answers struct {
	Commands *commands.Handler
	Engine   *answering.Engine
	Messages *messagingcmd.Messages
	Views    *messagingview.Views
	Pool     *pgxpool.Pool // has the leases

	// Balances reports whether a message replies to a request to confirm a balance. Bots ignore such messages.
	Balances func(ctx context.Context, workspace uuid.UUID, message int64) (bool, error)
}

const (
	answerTries          = 4
	answerTimeout        = 4 * time.Minute // six calls of a model, and its tools
	maxConcurrentAnswers = 64              // they mostly wait for a model

	maxReplies = 20 // maximum replies to a contact in an hour
	maxHistory = 20

	leaseAgain = time.Second // delay of a job while another one answers the contact

	// TakeOverInterval is the interval of the search for answers of dead processes.
	TakeOverInterval = 10 * time.Second
)

// Workers returns the workers of answers.
func (a *Answers) Workers() reactors.Workers {
	policy := reactors.Policy{Attempts: answerTries, First: 2 * time.Second, Timeout: answerTimeout, MaxConcurrent: maxConcurrentAnswers}
	return reactors.Workers{reactors.WorkIf(policy, a.needed, func(ctx context.Context, job reactors.Job[AnswerMessage]) error {
		held, err := WithLease(ctx, a.Pool, job.Args.Contact, func(ctx context.Context) error {
			return a.answer(ctx, job.Args, job.Attempt >= answerTries)
		})
		if err == nil && !held {
			err = reactors.Snooze(leaseAgain)
		}
		return err
	}), reactors.Work(reactors.Policy{Attempts: 1}, a.takeOver)}
}

// needed returns the messages on channels with an active bot.
func (a *Answers) needed(ctx context.Context, asOf event.Position, all []reactors.Wanted[AnswerMessage]) ([]bool, error) {
	return ofEach(all, func(w reactors.Wanted[AnswerMessage]) int64 { return w.Args.Channel },
		func(w reactors.Wanted[AnswerMessage]) ([]int64, error) {
			return a.Views.BotsOf(ctx, new(readmodels.At).AsKnownAt(asOf), w.Workspace, w.Args.Channel)
		})
}

// ofEach returns the elements for which a check holds. It checks each key once.
func ofEach[E any, K comparable](all []E, key func(E) K, look func(E) ([]int64, error)) ([]bool, error) {
	there, found := make([]bool, len(all)), map[K]bool{}
	for i, e := range all {
		k := key(e)
		if _, looked := found[k]; !looked {
			ids, err := look(e)
			if err != nil {
				return nil, err
			}
			found[k] = len(ids) > 0
		}
		there[i] = found[k]
	}
	return there, nil
}

// TakeOver frees the answers of dead processes: running answers without a renewed lease. Otherwise these would wait for their timeout.
type TakeOver struct{}

// Kind implements [reactors.Args].
func (TakeOver) Kind() string { return "take_over_answers" }

// takeOver restarts answers whose lease expired. It leaves last attempts to the queue.
func (a *Answers) takeOver(ctx context.Context, _ reactors.Job[TakeOver]) error {
	_, err := a.Pool.Exec(ctx, `
		update river.river_job j set state = 'available', scheduled_at = now() from knowledge.lease l
		where j.kind = $1 and j.state = 'running' and j.attempt < j.max_attempts and l.until < now() and j.attempted_at < l.until
		and l.contact_id = (j.args->>'contact')::bigint`, AnswerMessage{}.Kind())
	return err
}

// turn is an answer that a bot must give.
type turn struct {
	AnswerMessage
	answering.Question

	workspace uuid.UUID
	person    string // stream of the contact
	upto      int64
	silent    bool // too many replies
}

// answer lets the first active bot of the channel reply to the waiting messages. last: no attempt follows an error.
func (a *Answers) answer(ctx context.Context, args AnswerMessage, last bool) error {
	t, asOf, err := readmodels.CompleteAsOf(func(at *readmodels.At) (*turn, error) { return a.turn(ctx, at, args) })
	if errors.Is(err, errNothing) || err == nil && t == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if t.silent {
		return a.finish(ctx, t, answering.Result{Handover: true, Reason: "too many replies in an hour"}, 0)
	}
	t.Question.AsOf = asOf
	// The engine may read a state as old as the question. Otherwise each of its reads would wait for the latest writes of others.
	r, err := a.Engine.Run(ctx, t.Question)
	if err != nil {
		if !last || ctx.Err() != nil {
			return err
		}
		r = answering.Result{Answer: answering.Fallback(t.State, t.Text), Handover: true, Reason: "the model is down"}
	}
	req := answering.By(t.Request, t.Bot)
	req.Key, req.Operation = t.Answer, "answer-message"
	out, err := a.Messages.SendTo(ctx, req, t.AnswerMessage.Contact, message.ToContact{ChannelID: t.Channel, Text: r.Answer},
		func(int64) error { return nil })
	refused, ok := errors.AsType[*fault.Error](err)
	switch {
	case err == nil:
	case ok && (refused.Kind == fault.TooMany || refused.Kind == fault.Unavailable) && !last:
		return err
	case ok: // the network refuses, or the window is closed: a person must answer
		r.Handover, r.Reason = true, "the answer could not be sent"
	default:
		return err
	}
	reply := out.Number() // empty if nothing was sent
	if err != nil {
		reply = 0
	}
	return a.finish(ctx, t, r, reply)
}

// finish records the answer, and hands the contact over to people if the bot has no answer.
func (a *Answers) finish(ctx context.Context, t *turn, r answering.Result, reply int64) error {
	if r.Handover {
		req := answering.By(t.Request, t.Bot)
		_, err := commands.Handle(ctx, a.Commands, req, contact.Kind, t.person, contact.Edit{ID: t.person, Status: patch.Set(contact.Pending)})
		if err != nil && !errors.Is(err, contact.ErrNotFound) {
			return err
		}
	}
	return a.Engine.Finish(ctx, t.Question, r, botanswer.Given{Channel: t.Channel, Upto: t.upto, Reply: reply})
}

// turn returns the messages to answer, nil if there are none.
func (a *Answers) turn(ctx context.Context, at *readmodels.At, args AnswerMessage) (*turn, error) {
	t := &turn{AnswerMessage: args, person: strconv.FormatInt(args.Contact, 10)}
	done, err := commands.Load(ctx, a.Commands.Fresh(), botanswer.Kind, args.Message)
	if err != nil || done.State.Upto != 0 {
		return nil, err
	}
	l, err := commands.Load(ctx, a.Commands.Fresh(), contact.Kind, t.person)
	if err != nil || l.State.Status == "" || l.State.Status == contact.Pending || !l.State.ReplyBot {
		return nil, err
	}
	if t.Phone, err = a.sender(ctx, args.Message); err != nil {
		return nil, err
	}
	t.workspace, t.Request = l.Workspace, commands.Request{Workspace: l.Workspace}
	if t.Bot, t.State, err = a.bot(ctx, at, t); err != nil || t.Bot == 0 {
		return nil, err
	}
	talk, err := a.Views.Talk(ctx, at, t.workspace, args.Contact, a.Commands.Now().Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	waiting, err := a.Views.Waiting(ctx, at, t.workspace, args.Channel, args.Contact, talk.Upto)
	if err != nil {
		return nil, err
	}
	return t, a.fill(ctx, at, t, talk, waiting)
}

// sender returns the phone that the channel's network reports as a message's sender, "" for none. A phone typed into a contact does not
// identify the sender.
func (a *Answers) sender(ctx context.Context, id string) (string, error) {
	return commands.RevealOf(ctx, a.Commands, message.Kind, id, func(s message.State) event.Personal { return s.Phone })
}

// bot returns the first active bot of the channel, by its id; 0: there is none.
func (a *Answers) bot(ctx context.Context, at *readmodels.At, t *turn) (int64, bot.State, error) {
	ids, err := a.Views.BotsOf(ctx, at, t.workspace, t.Channel)
	if err != nil || len(ids) == 0 {
		return 0, bot.State{}, err
	}
	l, err := commands.Load(ctx, a.Commands.Fresh(), bot.Kind, strconv.FormatInt(ids[0], 10))
	if err != nil || !l.State.Active {
		return 0, bot.State{}, err
	}
	return ids[0], l.State, nil
}

// number returns the number of a message.
func number(id string) int64 { return event.Number(strings.TrimPrefix(id, message.Name(""))) }

// fill adds the conversation to the turn.
func (a *Answers) fill(ctx context.Context, at *readmodels.At, t *turn, talk messagingview.Talk, waiting []messagingview.Message) error {
	own := number(t.Message)
	t.Answer, t.Question.Contact, t.silent = t.Message, t.AnswerMessage.Contact, talk.Replies >= maxReplies
	var texts []string
	mine := false
	for _, m := range waiting {
		t.upto = max(t.upto, int64(m.Began))
		if m.Type == "reaction" || m.Text == nil || strings.TrimSpace(*m.Text) == "" {
			continue
		}
		_, taken := contact.ConsentKeyword(*m.Text) // STOP gets no answer
		if _, said := contact.BalanceKeyword(*m.Text); said {
			var err error
			if taken, err = a.Balances(ctx, t.workspace, number(m.ID)); err != nil {
				return err
			}
		}
		if !taken {
			texts, mine = append(texts, *m.Text), mine || number(m.ID) == own
		}
	}
	if !mine { // the other waiting messages have their own turn
		return errNothing
	}
	t.Text = strings.Join(texts, "\n")
	before, err := a.Views.Messages(ctx, at, t.workspace, t.AnswerMessage.Contact, number(waiting[0].ID), maxHistory)
	for _, m := range slices.Backward(before) {
		if m.Text != nil {
			t.History = append(t.History, answering.Line{Ours: m.Direction == "out", Text: *m.Text})
		}
	}
	return err
}

// errNothing reports that no message waits for a reply.
var errNothing = errors.New("nothing waits for an answer")
