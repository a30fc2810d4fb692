package answering

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botanswer"
)

// Try returns the reply of a bot in the request's workspace to a text. It sends no message and simulates effects on others. It calls
// webhooks only if calls is true. It records the model's tokens, because they cost money.
func (e *Engine) Try(ctx context.Context, req commands.Request, of int64, text string, calls bool) (r Result, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return r, fault.Wrong("text", "must not be empty")
	}
	l, err := commands.Load(ctx, e.Commands.Fresh(), bot.Kind, strconv.FormatInt(of, 10))
	if err != nil {
		return r, err
	}
	if l.Workspace != req.Workspace || l.State.Name == "" {
		return r, bot.ErrNotFound
	}
	q := Question{Request: req, Bot: of, State: l.State, Text: text, Answer: uuid.NewString(), Trial: true, Calls: calls}
	if r, err = e.Run(ctx, q); err != nil || r.Tokens == 0 {
		return r, err
	}
	return r, e.Finish(ctx, q, r, botanswer.Given{})
}
