package messaginghttp

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/fault"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/template"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// ByCampaign names a campaign.
type ByCampaign struct {
	ID int64 `path:"id" minimum:"1" doc:"The campaign's id"`
}

func (in ByCampaign) stream() string { return strconv.FormatInt(in.ID, 10) }

// audience is campaign.Audience in the OpenAPI document.
type audience struct{}

// Schema implements huma's SchemaProvider.
func (audience) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString, MaxLength: new(20)}, {Type: huma.TypeInteger}},
		Description: "all, or the id of a contact list"}
}

// toSend names the campaign to send.
type toSend struct {
	CampaignID int64 `json:"campaignId" minimum:"1" doc:"ID of the campaign"`
}

// dispatched is the status of a campaign and the number of its recipients.
type dispatched struct {
	CampaignID int64  `json:"campaignId" doc:"ID of the campaign"`
	Status     string `json:"status" enum:"draft,scheduled,active,paused,completed,failed" doc:"Status of the campaign"`
	Total      int64  `json:"total" doc:"Number of contacts"`
	Skipped    int64  `json:"skipped" doc:"Number of skipped contacts"`
}

// campaignProgress is the progress of a campaign.
type campaignProgress struct {
	Status string                      `json:"status" enum:"draft,scheduled,active,paused,completed,failed" doc:"Status of the campaign"`
	Reason *string                     `json:"reason" doc:"Reason of the status; null: none"`
	Stats  messagingview.CampaignStats `json:"stats" doc:"Number of messages by status"`
}

// campaigns registers the operations of campaigns.
func (r *Routes) campaigns() {
	r.API.ShowAs(reflect.TypeFor[campaign.Audience](), reflect.TypeFor[audience]())
	api.Handle(r.API, campaignOp("list-campaigns", "GET", "", "List the campaigns, newest first"),
		func(ctx context.Context, in *struct {
			api.Limited
			messagingview.CampaignFilter
		}) (*api.Array[messagingview.Campaign], error) {
			return api.Listed(r.Views.Campaigns(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.Get(), in.CampaignFilter))
		})

	api.Handle(r.API, campaignOp("create-campaign", "POST", "",
		"Create a campaign. Bahi sends the campaign at its scheduled time, or when a client dispatches it."),
		func(ctx context.Context, in *struct{ Body campaign.Create }) (*api.Tagged[messagingview.Campaign], error) {
			out, err := r.Campaigning.Create(ctx, api.Request(ctx), in.Body)
			return api.WriteResult(ctx, out, err, shownCampaign)
		})

	send := campaignOp("send-campaign", "POST", "/send",
		"Dispatch a campaign now. A paused or failed campaign resumes.")
	send.Limit, send.Status = "campaign_send", 202
	api.Handle(r.API, send, func(ctx context.Context, in *struct{ Body toSend }) (*api.Body[dispatched], error) {
		out, err := commands.Handle(ctx, r.Commands, api.Request(ctx), campaign.Kind, strconv.FormatInt(in.Body.CampaignID, 10),
			campaign.Send{Now: r.Commands.Now().UTC()})
		if errors.Is(err, campaign.ErrNotFound) {
			err = fault.Wrong("campaignId", campaign.ErrNotFound.Detail)
		}
		if err != nil {
			return nil, err
		}
		d, err := r.dispatched(ctx, api.Caller(ctx).Workspace, in.Body.CampaignID, out.State)
		if err != nil {
			return nil, err
		}
		return api.Reply(ctx, out, nil, func(commands.Outcome[campaign.State]) dispatched { return d })
	})

	api.Handle(r.API, campaignOp("get-campaign", "GET", "/{id}", "Read a campaign with the counts of its messages by status"),
		func(ctx context.Context, in *ByCampaign) (*api.Tagged[messagingview.Campaign], error) {
			c, err := r.Views.Campaign(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID)
			return api.WithETag(c, c.Revision, err)
		})

	cancel := campaignOp("cancel-campaign", "POST", "/{id}/cancel", "Cancel a campaign. Messages that are not sent yet are never sent.")
	cancel.Status = 200
	api.Handle(r.API, cancel, func(ctx context.Context, in *ByCampaign) (*api.Body[dispatched], error) {
		out, err := commands.Handle(ctx, r.Commands, api.Request(ctx), campaign.Kind, in.stream(), campaign.Cancel{})
		if err != nil {
			return nil, err
		}
		c, err := r.Views.Campaign(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID)
		return api.Reply(ctx, out, err, func(out commands.Outcome[campaign.State]) dispatched {
			return dispatched{CampaignID: in.ID, Status: out.State.Status, Total: c.Stats.Total, Skipped: c.Stats.Skipped}
		})
	})

	answers := campaignOp("list-campaign-responses", "GET", "/{id}/responses", "List the responses to a survey, newest first")
	answers.Reads = append(answers.Reads, "messages")
	api.Handle(r.API, answers, func(ctx context.Context, in *struct {
		ByCampaign
		api.Limited
	}) (*api.Array[messagingview.CampaignResponse], error) {
		workspace := api.Caller(ctx).Workspace
		if _, err := r.Views.Campaign(ctx, api.At(ctx), workspace, in.ID); err != nil {
			return nil, err
		}
		return api.Listed(r.Views.CampaignResponses(ctx, api.At(ctx), workspace, in.Get(), in.ID))
	})

	recipients := campaignOp("list-campaign-recipients", "GET", "/{id}/recipients",
		"List the messages of a campaign with their status and reason, newest first")
	recipients.Reads = append(recipients.Reads, "messages", "messaging_contacts")
	api.Handle(r.API, recipients, func(ctx context.Context, in *struct {
		ByCampaign
		api.Limited
		messagingview.RecipientFilter
	}) (*api.Array[messagingview.CampaignRecipient], error) {
		workspace := api.Caller(ctx).Workspace
		if _, err := r.Views.Campaign(ctx, api.At(ctx), workspace, in.ID); err != nil {
			return nil, err
		}
		return api.Listed(r.Views.CampaignRecipients(ctx, api.At(ctx), workspace, in.Get(), in.ID, in.RecipientFilter))
	})

	api.Stream(r.API, campaignOp("watch-campaign", "GET", "/{id}/progress", "Stream the progress of a campaign until it ends"),
		map[string]any{"progress": campaignProgress{}}, func(ctx context.Context, in *ByCampaign) (api.Source, error) {
			workspace := api.Caller(ctx).Workspace
			if _, err := r.Views.Campaign(ctx, api.At(ctx), workspace, in.ID); err != nil {
				return nil, err
			}
			return func(ctx context.Context, send func(api.Event) error) error {
				return r.watchCampaign(ctx, workspace, in.ID, send)
			}, nil
		})
}

// dispatched counts the audience until all recipients are recorded.
func (r *Routes) dispatched(ctx context.Context, workspace uuid.UUID, id int64, s campaign.State) (dispatched, error) {
	d := dispatched{CampaignID: id, Status: s.Status}
	if !s.Known {
		var err error
		d.Total, d.Skipped, err = r.Views.AudienceSize(ctx, api.At(ctx), workspace, s.List)
		d.Total *= int64(len(s.Sequence()))
		return d, err
	}
	c, err := r.Views.Campaign(ctx, api.At(ctx), workspace, id)
	d.Total, d.Skipped = c.Stats.Total, c.Stats.Skipped
	return d, err
}

// watchCampaign sends each change until the campaign ends.
func (r *Routes) watchCampaign(ctx context.Context, workspace uuid.UUID, id int64, send func(api.Event) error) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	var last campaignProgress
	for {
		c, err := r.Views.Campaign(ctx, api.At(ctx), workspace, id)
		if err != nil {
			return err
		}
		if now := (campaignProgress{Status: c.Status, Reason: c.Reason, Stats: c.Stats}); !reflect.DeepEqual(now, last) {
			last = now
			if err := send(api.Event{Data: now}); err != nil {
				return err
			}
		}
		if c.Status == campaign.Completed || c.Status == campaign.StatusFailed {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// shownCampaign returns a new campaign.
func shownCampaign(out commands.Outcome[campaign.State]) messagingview.Campaign {
	s := out.State
	c := messagingview.Campaign{
		ID: out.Number(), Name: s.Name, Type: s.Type, TemplateID: s.Template, ChannelID: s.Channel, Audience: s.Audience,
		Schedule: orNull(s.Schedule), ScheduledAt: s.At,
		TemplateParams: s.Params, Steps: s.Steps, Trigger: s.Trigger, Recurrence: s.Recurrence,
		CampaignStatus: messagingview.CampaignStatus{Status: s.Status, NextRunAt: s.Next}, Runs: []messagingview.CampaignRun{},
		CreatedAt: out.CreatedAt, UpdatedAt: out.At, Revision: out.Revision,
	}
	if c.TemplateParams == nil {
		c.TemplateParams = template.Values{}
	}
	if s.Run > 0 {
		c.StartedAt = &s.Started
	}
	if s.Type == campaign.Survey {
		c.Stats.Responded = new(int64)
	}
	return c
}
