package campaign

import (
	"fmt"
	"time"

	"bahi/domain/event"
)

// Blocks registers the events of streams campaignblock-<campaign>-<run>-<number> and campaignblock-<campaign>-c<contact>. They have the
// recipients of a campaign, so that the campaign's own stream stays short. Stored names are permanent.
var Blocks = event.NewKind("campaignblock", event.Of[Frozen]("CampaignAudienceFrozen", 1))

// BlockName returns the id of a run's block.
func BlockName(campaign string, run, block int) string {
	return fmt.Sprintf("%s-%d-%d", campaign, run, block)
}

// TriggeredName returns the id of the block of a contact that triggers a campaign.
func TriggeredName(campaign string, contact int64) string {
	return fmt.Sprintf("%s-c%d", campaign, contact)
}

// Block is the state of recipients that decisions require.
type Block struct {
	At   time.Time // time of the newest recipients; zero: none
	Last int64     // the last contact that was processed
	End  bool      // no further contacts follow
}

// Frozen records recipients and the ids of their messages. The ids of the first step's messages begin at First, in the order of contacts.
// The ids of each further step follow.
type Frozen struct {
	Campaign int64     `json:"campaign"`
	Run      int       `json:"run"`
	Block    int       `json:"block"` // from 0; -1: the contact triggered the campaign
	Channel  int64     `json:"channel"`
	First    int64     `json:"first"`
	Contacts []int64   `json:"contacts"`
	Skipped  int64     `json:"skipped"` // contacts that must not receive messages
	Last     int64     `json:"last"`
	End      bool      `json:"end"`
	At       time.Time `json:"at"`     // start of the delays
	Delays   []int     `json:"delays"` // hours, by step
}

// Evolve sets the progress.
func (e Frozen) Evolve(Block) Block { return Block{At: e.At, Last: e.Last, End: e.End} }

// TriggerCooldown is the time after a message in which a trigger ignores the same contact (CONTRACT.md 8.10).
const TriggerCooldown = 24 * time.Hour

// Freeze records recipients.
type Freeze struct {
	Frozen

	Again time.Duration // minimum time before the same contact is a recipient again; 0: a contact is a recipient only once
}

// Decide returns no events for an existing block.
func (c Freeze) Decide(b Block) ([]event.Event[Block], error) {
	if !b.At.IsZero() && (c.Again == 0 || c.At.Before(b.At.Add(c.Again))) {
		return nil, nil
	}
	return []event.Event[Block]{c.Frozen}, nil
}
