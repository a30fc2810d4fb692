// Package messaging has the commands for campaigns.
package messagingcli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"bahi/commands"
	"bahi/domain/messaging/campaign"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
)

type CampaignsCommand struct {
	Watch watchCampaign `cmd:"" help:"Show how far a campaign is, until it is over or pauses."`
}

type watchCampaign struct {
	app.Settings

	ID    int64         `arg:"" help:"The campaign's id."`
	Every time.Duration `default:"1s" hidden:""`
}

// Run shows a bar of the messages that are settled. It ends without an error when they all are.
func (c watchCampaign) Run(ctx context.Context) error {
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	l, err := commands.Load(ctx, sys.Commands.Fresh(), campaign.Kind, strconv.FormatInt(c.ID, 10))
	if err == nil && l.State.Status == "" {
		err = campaign.ErrNotFound
	}
	if err != nil {
		return err
	}
	bar := progress.NewBar(c.Shell.Err, l.State.Name, "messages")
	defer bar.End()
	for {
		k, err := sys.Messaging.Campaign(ctx, nil, l.Workspace, c.ID)
		if err != nil {
			return err
		}
		s := k.Stats
		bar.Show(s.Sent+s.Failed, s.Total)
		switch k.Status {
		case campaign.Active:
		case campaign.Completed, campaign.Scheduled, campaign.Draft:
			fmt.Fprintf(c.Shell.Out, "%s is %s: %d sent, %d delivered, %d read, %d failed, %d skipped\n", k.Name, k.Status, s.Sent, s.Delivered,
				s.Read, s.Failed, s.Skipped)
			return nil
		default:
			return fmt.Errorf("%s is %s: %s; %d of %d are sent", k.Name, k.Status, *k.Reason, s.Sent, s.Total)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.Every):
		}
	}
}
