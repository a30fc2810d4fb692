package messagingreact

import (
	"context"
	"errors"
	"strconv"

	"bahi/commands"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/message"
	"bahi/readmodels"
	"bahi/readmodels/messagingview"
)

// freezeAudience fixes the recipients of the campaign in blocks. It continues after a crash.
func (s *sending) freezeAudience(ctx context.Context) error {
	c := s.campaign.State
	if c.Known {
		return nil
	}
	n, last := 0, int64(0)
	for ; ; n++ {
		name := campaign.BlockName(s.id, c.Run, n)
		b, err := commands.Load(ctx, s.Commands.Cached(), campaign.Blocks, name)
		if err != nil {
			return err
		}
		if b.State.At.IsZero() {
			people, err := readmodels.Complete(func(at *readmodels.At) ([]messagingview.Person, error) {
				return s.Views.Audience(ctx, at, s.req.Workspace, c.List, last, blockSize)
			})
			if err != nil {
				return err
			}
			f := campaign.Frozen{
				Campaign: s.number, Run: c.Run, Block: n, Channel: c.Channel, Contacts: []int64{}, Last: last, End: len(people) < blockSize,
				At: c.Started, Delays: c.Delays(),
			}
			for _, p := range people {
				if f.Last = p.ID; p.Reachable() {
					f.Contacts = append(f.Contacts, p.ID)
				} else {
					f.Skipped++
				}
			}
			if err := s.freeze(ctx, s.req, name, campaign.Freeze{Frozen: f}); err != nil {
				return err
			}
			if b, err = commands.Load(ctx, s.Commands.Fresh(), campaign.Blocks, name); err != nil { // another process may have done it
				return err
			}
		}
		if last = b.State.Last; b.State.End {
			break
		}
	}
	_, err := commands.Handle(ctx, s.Commands, s.req, campaign.Kind, s.id, campaign.Advance{Run: c.Run, Blocks: n + 1})
	return err
}

// errNotActive reports that a campaign's run has ended meanwhile.
var errNotActive = errors.New("the run of the campaign has ended")

// freeze records a block, with numbers for its messages. It returns [errNotActive] after the end of the run.
func (d *Dispatcher) freeze(ctx context.Context, req commands.Request, name string, f campaign.Freeze) (err error) {
	if messages := int64(len(f.Contacts) * len(f.Delays)); messages > 0 {
		if f.First, err = d.Commands.Numbers(ctx, message.Kind.Category(), messages); err != nil {
			return err
		}
	}
	_, err = commands.Do(ctx, d.Commands, req, campaign.Blocks, func(ctx context.Context, tx *commands.Tx) error {
		of, err := commands.Load(ctx, tx, campaign.Kind, strconv.FormatInt(f.Campaign, 10))
		if err == nil && (of.State.Status != campaign.Active || of.State.Run != f.Run) {
			err = errNotActive
		}
		if err == nil {
			_, err = commands.Decide(ctx, tx, campaign.Blocks, name, f)
		}
		return err
	})
	return err
}
