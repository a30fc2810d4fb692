package campaign

import (
	"fmt"
	"time"

	"bahi/domain/event"
)

// Blocks names what a stream campaignblock-<campaign>-<run>-<number> or campaignblock-<campaign>-c<contact> holds: recipients of a
// campaign. A name is for ever: old logs have it. A campaign's own stream has none of them, so that it stays short.
var Blocks = event.NewKind("campaignblock", event.Of[Frozen]("CampaignAudienceFrozen", 1))

// BlockName returns the id of a run's block.
func BlockName(campaign string, run, block int) string {
	return fmt.Sprintf("%s-%d-%d", campaign, run, block)
}

// TriggeredName returns the id of the blocks that a contact's doings begin.
func TriggeredName(campaign string, contact int64) string {
	return fmt.Sprintf("%s-c%d", campaign, contact)
}

// Block is what decisions need of recipients.
type Block struct {
	At   time.Time // of the newest; zero: there are none
	Last int64     // the last contact that was looked at
	End  bool      // nobody comes after it
}

// Frozen records recipients, and the numbers of their messages: the first step's messages begin at First, in the contacts' order, and those
// of each further step follow.
type Frozen struct {
	Campaign int64     `json:"campaign"`
	Run      int       `json:"run"`
	Block    int       `json:"block"` // from 0; -1: the contact gave a cause
	Channel  int64     `json:"channel"`
	First    int64     `json:"first"`
	Contacts []int64   `json:"contacts"`
	Skipped  int64     `json:"skipped"` // contacts that may not be written to
	Last     int64     `json:"last"`
	End      bool      `json:"end"`
	At       time.Time `json:"at"`     // from when the delays count
	Delays   []int     `json:"delays"` // hours, of each step
}

// Evolve keeps how far the audience is known.
func (e Frozen) Evolve(Block) Block { return Block{At: e.At, Last: e.Last, End: e.End} }

// TriggerCooldown is how long a trigger passes over a contact that it has written to (CONTRACT.md 8.10).
const TriggerCooldown = 24 * time.Hour

// Freeze fixes recipients.
type Freeze struct {
	Frozen

	Again time.Duration // after which the same contact may be one more time; 0: never
}

// Decide passes over a block that is there.
func (c Freeze) Decide(b Block) ([]event.Event[Block], error) {
	if !b.At.IsZero() && (c.Again == 0 || c.At.Before(b.At.Add(c.Again))) {
		return nil, nil
	}
	return []event.Event[Block]{c.Frozen}, nil
}
