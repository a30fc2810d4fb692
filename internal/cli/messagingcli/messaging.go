// Package messagingcli has the commands for campaigns.
package messagingcli

import (
	"context"
	"fmt"
	"time"

	"bahi/domain/messaging/campaign"
	"bahi/eventstore/signal"
	"bahi/internal/cli/progress"
	"bahi/internal/cli/remote"
	"bahi/readmodels/messagingview"
)

type CampaignsCommand struct {
	Watch watchCampaign `cmd:"" help:"Show the progress of a campaign, until it ends or pauses."`
}

type watchCampaign struct {
	remote.Server

	ID        int64         `arg:"" help:"The campaign's id."`
	Workspace string        `placeholder:"UUID" help:"The campaign's workspace. Without it, the operator's."`
	Every     time.Duration `default:"1s" hidden:""`
}

// Run shows a bar of the settled messages. It ends without an error when all are settled.
func (c watchCampaign) Run(ctx context.Context) error {
	bar := progress.NewBar(c.Shell.Err, fmt.Sprintf("campaign %d", c.ID), "messages")
	defer bar.End()
	for {
		var k messagingview.Campaign
		if err := c.Do(ctx, remote.Request{Method: "GET", Path: fmt.Sprintf("/api/campaigns/%d", c.ID),
			Header: map[string]string{"Bahi-Workspace": c.Workspace}}, &k); err != nil {
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
		if err := signal.Sleep(ctx, c.Every); err != nil {
			return err
		}
	}
}
