package messagingcmd

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contactlist"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
)

// Campaigns creates campaigns, and loads the channels and templates for sending them.
type Campaigns struct {
	*Messages

	Zone     *time.Location // time zone of the workspaces
	Autosend bool           // a campaign without a time is sent when it is created (CONTRACT.md D22)
}

// Create creates a campaign in the request's workspace.
func (f *Campaigns) Create(ctx context.Context, req commands.Request, c campaign.Create) (commands.Outcome[campaign.State], error) {
	c.Now, c.Zone, c.Autosend = f.Commands.Now(), f.Zone, f.Autosend
	return commands.Do(ctx, f.Commands, req, campaign.Kind, func(ctx context.Context, tx *commands.Tx) (err error) {
		if c.Templates, err = templates(ctx, tx, req.Workspace, c.Named()); err != nil {
			return err
		}
		if list, ok := c.ListID(); ok && list != 0 {
			l, err := commands.Load(ctx, tx, contactlist.Kind, strconv.FormatInt(list, 10))
			if err != nil {
				return err
			}
			c.HasList = l.Workspace == req.Workspace && l.State.Name != ""
		}
		return addNew(ctx, tx, f.Commands, campaign.Kind, c)
	})
}

// templates returns the workspace's templates with these ids.
func templates(ctx context.Context, from commands.Source, workspace uuid.UUID, ids []int64) (map[int64]template.State, error) {
	all := map[int64]template.State{}
	for _, id := range ids {
		l, err := commands.Load(ctx, from, template.Kind, strconv.FormatInt(id, 10))
		if err != nil {
			return nil, err
		}
		if l.Workspace == workspace && l.State.Channel != 0 {
			all[id] = l.State
		}
	}
	return all, nil
}

// CampaignChannel is the channel of a campaign.
type CampaignChannel struct {
	Account   network.Account
	Sandboxed bool

	of commands.Loaded[channel.State]
}

// UnsendableError reports why a campaign cannot be sent.
type UnsendableError string

func (e UnsendableError) Error() string { return string(e) }

// ErrNoChannel ends a campaign even after its first messages (CONTRACT.md N8).
const ErrNoChannel UnsendableError = "The channel was deleted"

// Line loads the channel of a campaign. It returns [ErrNoChannel] if the channel was deleted. It asks the network for the templates' status
// if the last known one is old.
func (f *Campaigns) Line(ctx context.Context, workspace uuid.UUID, p campaign.Plan) (l CampaignChannel, err error) {
	id := strconv.FormatInt(p.Channel, 10)
	if l.of, err = commands.Load(ctx, f.Commands.Fresh(), channel.Kind, id); err != nil {
		return l, err
	}
	if l.of.State.Type == "" || l.of.Workspace != workspace {
		return l, ErrNoChannel
	}
	l.Account, err = f.account(ctx, id, l.of.State)
	switch {
	case errors.Is(err, channel.ErrNotFound):
		return l, ErrNoChannel
	case err != nil:
		return l, err
	}
	if _, err = f.Templates.Refresh(ctx, workspace, []int64{p.Channel}); err != nil { // after a failure, the last known status applies
		return l, err
	}
	l.Sandboxed = f.Sandboxed(l.Account)
	return l, nil
}

// TemplatesOf loads the templates of a campaign by id. It adds their revisions to reads. It returns an [UnsendableError] if a template must
// not be sent.
func (f *Campaigns) TemplatesOf(ctx context.Context, p campaign.Plan, reads commands.Reads) (
	map[int64]template.State, commands.Reads, error,
) {
	all := map[int64]template.State{}
	for _, s := range p.Sequence() {
		if _, known := all[s.TemplateID]; known {
			continue
		}
		id := strconv.FormatInt(s.TemplateID, 10)
		l, err := commands.Load(ctx, f.Commands.Fresh(), template.Kind, id)
		switch {
		case err != nil:
			return nil, reads, err
		case !l.State.Sendable():
			return nil, reads, UnsendableError("The template " + l.State.Name + " is not approved: " + l.State.Status)
		}
		all[s.TemplateID], reads = l.State, reads.And(template.Kind.Stream(id), l.Revision)
	}
	return all, reads, nil
}

// AccountHealth requests the network's report about the channel's account.
func (f *Campaigns) AccountHealth(ctx context.Context, l CampaignChannel) (network.Health, *network.Failure) {
	asking, cancel := f.within(ctx)
	defer cancel()
	h, err := f.Networks.Health(asking, l.Account)
	return h, failureOf(err)
}

func failureOf(err error) *network.Failure {
	failed, ok := errors.AsType[*network.Failure](err)
	if err != nil && !ok {
		failed = &network.Failure{Reason: network.Unknown}
	}
	return failed
}

// Call sends a campaign's message and returns the network's response. It continues after ctx ends: an interrupted call has an unknown
// result.
func (f *Campaigns) Call(ctx context.Context, req commands.Request, l CampaignChannel, m network.Message,
	contact int64) message.RecordSendResult {
	ctx = context.WithoutCancel(ctx)
	calling, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	as := ""
	m.As = &as
	id, err := f.Networks.Send(calling, l.Account, m)
	if err := f.alike(ctx, req, contact, m.To, as); err != nil {
		f.Log.Warn("recording another spelling of a contact's number failed", "channel", l.Account.Channel, "error", err)
	}
	return message.RecordSendResult{Contact: contact, ProviderID: id, Failure: failureOf(err)}
}

// Learn records the effect of the network's response on the channel.
func (f *Campaigns) Learn(ctx context.Context, l CampaignChannel, failed *network.Failure) error {
	return f.learn(ctx, l.of, strconv.FormatInt(l.Account.Channel, 10), failed)
}
