package ledgercmd

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/confirmation"
	"bahi/domain/ledger/party"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/template"
	"bahi/domain/unit"
)

// partyReads are the queries of confirmations.
type partyReads interface {
	// Candidates returns accounts with their balances as of a day, and the position of the log at which they were read.
	// The result includes all events that were in the log before the call.
	Candidates(ctx context.Context, workspace uuid.UUID, kind string, accounts []int64, day unit.Date) ([]confirmation.Candidate,
		event.Position, error)
	// Asked returns the newest request that a message's contact received before the message, false if there is none.
	Asked(ctx context.Context, workspace uuid.UUID, message int64) (confirmation.Asked, bool, error)
}

// Confirmations requests that parties confirm their balances.
type Confirmations struct {
	*Books

	Parties   partyReads
	PublicURL string
}

// SetContact sets the contact of an account of any ledger.
func (c *Confirmations) SetContact(ctx context.Context, req commands.Request, account int64, set party.SetContact) (
	out commands.Outcome[party.State], l *book.Ledger, err error) {
	out, err = commands.Do(ctx, c.Commands, req, party.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if l, err = ledgerOf(ctx, tx, account, req.Workspace); err != nil {
			return err
		}
		if set.Contact != nil {
			k, err := commands.Load(ctx, tx, contact.Kind, id(*set.Contact))
			if err != nil {
				return err
			}
			if k.State.Status == "" || k.Workspace != req.Workspace {
				return party.ErrContact
			}
		}
		_, err := commands.Decide(ctx, tx, party.Kind, id(account), set)
		return err
	})
	return out, l, err
}

// ledgerOf returns the ledger of an open account.
func ledgerOf(ctx context.Context, tx *commands.Tx, account int64, workspace uuid.UUID) (*book.Ledger, error) {
	for _, l := range ledger.All {
		if open, err := isOpen(ctx, tx, l, account, workspace); err != nil || open {
			return l, err
		}
	}
	return nil, book.ErrNoAccount
}

// Request sends the requests for confirmation by a campaign.
func (c *Confirmations) Request(ctx context.Context, req commands.Request, in confirmation.Request) (
	out commands.Outcome[confirmation.State], err error) {
	if out, done, err := commands.PreviousOutcome(ctx, c.Commands, req, confirmation.Kind); done || err != nil {
		return out, err
	}
	found, position, err := c.Parties.Candidates(ctx, req.Workspace, in.Kind, in.Accounts, in.AsOf)
	if err != nil {
		return out, err
	}
	parties, wrong := in.Choose(found)
	wrong = fault.Join(in.Check(c.Today()), wrong)
	return commands.Do(ctx, c.Commands, req, confirmation.Kind, func(ctx context.Context, tx *commands.Tx) error {
		t, unknown := c.templateOf(ctx, tx, in)
		if err := fault.Join(wrong, unknown); err != nil {
			return err
		}
		return c.request(ctx, tx, in, t, confirmation.Begin{Requested: confirmation.Requested{Kind: in.Kind, AsOf: in.AsOf,
			Position: position, Channel: in.Channel, Template: in.Template}, Parties: parties})
	})
}

// templateOf returns the template of a request, or the faults of its channel and template.
func (c *Confirmations) templateOf(ctx context.Context, tx *commands.Tx, in confirmation.Request) (template.State, error) {
	of, err := commands.Load(ctx, tx, channel.Kind, id(in.Channel))
	if err != nil {
		return template.State{}, err
	}
	t, err := commands.Load(ctx, tx, template.Kind, id(in.Template))
	if err != nil {
		return t.State, err
	}
	var wrong []error
	if of.State.Type == "" || of.Workspace != tx.Workspace() {
		wrong = append(wrong, fault.Wrong("channelId", "Channel not found"))
	}
	if t.State.Channel == 0 || t.Workspace != tx.Workspace() {
		wrong = append(wrong, fault.Wrong("templateId", template.ErrNotFound.Detail))
	}
	return t.State, fault.Join(wrong...)
}

func (c *Confirmations) request(ctx context.Context, tx *commands.Tx, in confirmation.Request, t template.State,
	requested confirmation.Begin) error {
	params, err := confirmation.Params(t.Parameters, t.Extras)
	if err != nil {
		return err
	}
	begin := campaign.Begin{Plan: campaign.Plan{Name: "Balances as of " + in.AsOf.String(), Type: campaign.Broadcast, Template: in.Template,
		Channel: in.Channel, Audience: campaign.Parties, Params: params}, Template: t, Now: tx.Now()}
	requested.Document = slices.Contains(t.Extras, "header_document")
	if tx.DryRun() {
		_, err = commands.DecideNew(ctx, tx, campaign.Kind, nil, func(string) event.Command[campaign.State] { return begin })
		if err == nil {
			_, err = commands.DecideNew(ctx, tx, confirmation.Kind, nil, func(string) event.Command[confirmation.State] { return requested })
		}
		return err
	}
	if begin.Confirmation, err = c.numbers(ctx, tx, confirmation.Kind.Category(), 1); err != nil {
		return err
	}
	if requested.Campaign, err = c.numbers(ctx, tx, campaign.Kind.Category(), 1); err != nil {
		return err
	}
	commands.NewRecord(tx, confirmation.Kind, id(begin.Confirmation))
	commands.NewRecord(tx, campaign.Kind, id(requested.Campaign))
	if begin.Blocks, err = c.freeze(ctx, tx, requested.Campaign, in.Channel, requested.Parties); err != nil {
		return err
	}
	if _, err = commands.Decide(ctx, tx, confirmation.Kind, id(begin.Confirmation), requested); err != nil {
		return err
	}
	_, err = commands.Decide(ctx, tx, campaign.Kind, id(requested.Campaign), begin)
	return err
}

// blockSize is the number of recipients in a block.
const blockSize = 1000

// freeze creates the recipients of a campaign from the parties that are not skipped. It sets their message ids, and returns the number of
// blocks.
func (c *Confirmations) freeze(ctx context.Context, tx *commands.Tx, number, channel int64, parties []confirmation.Party) (
	blocks int, err error) {
	contacts := []int64{}
	for _, p := range parties {
		if p.Skipped == "" {
			contacts = append(contacts, p.Contact)
		}
	}
	first := int64(0)
	if len(contacts) > 0 {
		if first, err = c.numbers(ctx, tx, message.Kind.Category(), len(contacts)); err != nil {
			return 0, err
		}
	}
	next := first
	for i := range parties {
		if parties[i].Message = 0; parties[i].Skipped == "" {
			parties[i].Message = next
			next++
		}
	}
	for from := 0; from == 0 || from < len(contacts); from += blockSize {
		part := contacts[from:min(from+blockSize, len(contacts))]
		f := campaign.Frozen{Campaign: number, Run: 1, Block: blocks, Channel: channel, First: first + int64(from), Contacts: part,
			End: from+blockSize >= len(contacts), At: tx.Now().UTC(), Delays: []int{0}}
		name := campaign.BlockName(id(number), 1, blocks)
		commands.NewRecord(tx, campaign.Blocks, name)
		if _, err := commands.Decide(ctx, tx, campaign.Blocks, name, campaign.Freeze{Frozen: f}); err != nil {
			return 0, err
		}
		blocks++
	}
	return blocks, nil
}

// Values returns the placeholder values of a campaign's messages to parties, by message. They do not contain the contact's name.
func (c *Confirmations) Values(ctx context.Context, number int64, language string, messages []int64) (map[int64][]string, error) {
	l, err := commands.Load(ctx, c.Commands.Fresh(), confirmation.Kind, id(number))
	if err != nil {
		return nil, err
	}
	parties := make(map[int64]confirmation.Party, len(l.State.Parties))
	for _, p := range l.State.Parties {
		parties[p.Message] = p
	}
	values := make(map[int64][]string, len(messages))
	for _, m := range messages {
		p := parties[m]
		token, err := c.token(ctx, number, p.Account)
		if err != nil {
			return nil, err
		}
		values[m] = l.State.Values(p, language, c.PublicURL+"/s/"+token)
	}
	return values, nil
}

// linkHash names the key of the tokens in links to statements.
const linkHash = "statement-link"

// tokenHash is the number of hexadecimal digits of a token's hash: 128 bits.
const tokenHash = 32

// token returns the token of the statement of an account in a confirmation.
func (c *Confirmations) token(ctx context.Context, number, account int64) (string, error) {
	hash, err := c.Commands.Hash(ctx, linkHash, []byte(id(number)), []byte(id(account)))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d-%d-%s", number, account, hash[:tokenHash]), nil
}

// Errors of links.
var (
	errNoStatement = fault.New(fault.NotFound, "Statement not found")
	ErrLinkEnded   = fault.New(fault.NotFound, "The link has expired: it is valid for 90 days")
)

// Shared is the statement of a link.
type Shared struct {
	confirmation.Party
	Workspace uuid.UUID
	AsOf      unit.Date
	Position  event.Position
}

// Statement returns the statement of a link's token.
func (c *Confirmations) Statement(ctx context.Context, token string) (s Shared, err error) {
	parts := strings.Split(token, "-")
	if len(parts) != 3 { //nolint:mnd // the parts of a token
		return s, errNoStatement
	}
	number, account := event.Number(parts[0]), event.Number(parts[1])
	want, err := c.token(ctx, number, account)
	if err != nil {
		return s, err
	}
	if subtle.ConstantTimeCompare([]byte(want), []byte(token)) == 0 {
		return s, errNoStatement
	}
	l, err := commands.Load(ctx, c.Commands.Cached(), confirmation.Kind, id(number))
	if err != nil {
		return s, err
	}
	p, is := l.State.Parties[account]
	switch {
	case !is:
		return s, errNoStatement
	case c.Commands.Now().After(l.CreatedAt.Add(confirmation.LinkLifetime)):
		return s, ErrLinkEnded
	}
	return Shared{Party: p, Workspace: l.Workspace, AsOf: l.State.AsOf, Position: l.State.Position}, nil
}

// Decision is a user's decision about a party's reply.
type Decision struct {
	Outcome string `json:"outcome" enum:"confirmed,disputed" doc:"Reply of the party"`
	Note    string `json:"note,omitempty" maxLength:"1000" doc:"Note of the user; erased with the contact"`
}

var errNote = fault.New(fault.Conflict, "The contact was erased: no note about it is stored")

// Decide records a user's decision about a party's reply.
func (c *Confirmations) Decide(ctx context.Context, req commands.Request, number, account int64, d Decision) (
	commands.Outcome[party.State], error) {
	out, err := commands.Do(ctx, c.Commands, req, party.Kind, func(ctx context.Context, tx *commands.Tx) error {
		l, err := commands.Load(ctx, tx, confirmation.Kind, id(number))
		if err != nil {
			return err
		}
		if l.Revision < 0 || l.Workspace != req.Workspace {
			return confirmation.ErrNotFound
		}
		p, is := l.State.Parties[account]
		switch {
		case !is:
			return confirmation.ErrNoParty
		case p.Message == 0:
			return confirmation.ErrNotAsked
		}
		if d.Note = strings.TrimSpace(d.Note); d.Note != "" {
			k, err := commands.Load(ctx, tx, contact.Kind, id(p.Contact))
			if err != nil {
				return err
			}
			if k.State.Status == "" && k.State.Into == 0 {
				return errNote
			}
		}
		_, err = commands.Decide(ctx, tx, party.Kind, id(account), party.Reply{
			Said:    party.Said{Outcome: d.Outcome, Answer: party.Answer{Confirmation: number, Position: l.State.Position}},
			Contact: p.Contact, Text: d.Note,
		})
		return err
	})
	if errors.Is(err, event.ErrErased) {
		err = errNote
	}
	return out, err
}

// answer returns the request to which a message is the first reply, and the reply's outcome; false for other messages.
func (c *Confirmations) answer(ctx context.Context, workspace uuid.UUID, number int64) (asked confirmation.Asked, outcome string, is bool,
	err error) {
	asked, found, err := c.Parties.Asked(ctx, workspace, number)
	if err != nil || !found {
		return asked, "", false, err
	}
	for i, text := range asked.Texts {
		if agrees, is := contact.BalanceKeyword(text); is {
			if outcome = party.OutcomeDisputed; agrees {
				outcome = party.OutcomeConfirmed
			}
			return asked, outcome, asked.Messages[i] == number, nil
		}
	}
	return asked, "", false, nil
}

// Answers reports whether a message is the first reply to a request.
func (c *Confirmations) Answers(ctx context.Context, workspace uuid.UUID, number int64) (bool, error) {
	_, _, is, err := c.answer(ctx, workspace, number)
	return is, err
}

// Answer records the reply in a message about balances, if it is the first reply to a request.
func (c *Confirmations) Answer(ctx context.Context, workspace uuid.UUID, number int64) error {
	asked, outcome, is, err := c.answer(ctx, workspace, number)
	if err != nil || !is {
		return err
	}
	req := commands.Request{Workspace: workspace, Actor: actor.Actor{Type: "contact", ID: strconv.FormatInt(asked.Contact, 10)}}
	_, err = commands.Handle(ctx, c.Commands, req, party.Kind, id(asked.Account), party.Reply{Said: party.Said{Outcome: outcome,
		Answer: party.Answer{Confirmation: asked.Confirmation, Message: number, Position: asked.Position}}})
	return err
}
