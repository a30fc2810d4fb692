package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bahi/commands/messagingcmd"
	"bahi/reactors/messagingreact"
)

// campaignSettings configure the sending of campaigns.
type campaignSettings struct {
	CampaignRate     float64 `env:"BAHI_CAMPAIGN_RATE" name:"campaign-rate" default:"20" unit:"messages a second" help:"Maximum rate of campaigns on one channel; 0: no limit. A sandbox has none."`
	CampaignAutosend bool    `env:"BAHI_CAMPAIGN_AUTOSEND" name:"campaign-autosend" help:"Send a campaign without a time as soon as it is created, and not only by POST /api/campaigns/send."`
}

// campaignsAtOnce is the maximum number of campaigns sent concurrently. They mostly wait for their rate or their network, and each holds a
// connection meanwhile. They may hold half of the connections at most; otherwise they could all wait for another one for ever.
const campaignsAtOnce = 8

// openCampaigns connects campaigns with messages, tables and jobs.
func (s *System) openCampaigns() error {
	zone, err := s.Settings.Zone()
	if err != nil {
		return err
	}
	s.Campaigns = &messagingreact.Dispatcher{
		Campaigns: &messagingcmd.Campaigns{Messages: s.Messages, Zone: zone, Autosend: s.Settings.Outside.CampaignAutosend},
		Views:     s.Messaging, Queue: later{s}, Alone: s.aloneOnChannel, Values: s.Confirming.Values,
		AtOnce: max(min(campaignsAtOnce, int(s.Settings.Connections)/2), 1), Rate: s.Settings.Outside.CampaignRate,
	}
	return nil
}

// campaignLocks is the class of the advisory locks of channels: "bahi" in ASCII, and one more.
const campaignLocks = 0x62616869 + 1

// unlockTimeout limits the release of a lock. Afterwards the connection is closed, which releases the lock too.
const unlockTimeout = 5 * time.Second

// aloneOnChannel implements the dispatcher's Alone with a lock of the database. A process that dies loses its lock.
func (s *System) aloneOnChannel(ctx context.Context, channel int64, do func(context.Context) error) (ran bool, err error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return false, fmt.Errorf("lock channel %d: %w", channel, err)
	}
	defer conn.Release()
	// two channels with one lock only wait for each other
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1, $2)`, campaignLocks, int32(channel)).Scan(&ran); err != nil || !ran {
		return false, err
	}
	defer func() {
		unlocking, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		if _, failed := conn.Exec(unlocking, `select pg_advisory_unlock($1, $2)`, campaignLocks, int32(channel)); failed != nil { // as above
			err = errors.Join(err, conn.Conn().Close(unlocking))
		}
	}()
	return true, do(ctx)
}
