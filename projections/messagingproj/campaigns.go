package messagingproj

import (
	_ "embed"
	"fmt"
	"slices"
	"time"

	"bahi/domain/event"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/projections"
)

//go:embed campaigns.sql
var campaignsDDL string

// answered records the response to a survey: the contact's first message in the three days after it (CONTRACT.md 8.10).
const answered = `
	with answering as (update recipient set response_id = $1 where id = (
		select r.id from recipient r join campaign c on c.id = r.campaign_id
		where r.contact_id = $2 and r.channel_id = $3 and c.type = 'survey' and r.response_id is null and r.called_at > $4 and r.called_at <= $5
		order by r.id desc limit 1) returning block_id)
	update block set responded = responded + 1 from answering where block.id = answering.block_id`

// skipTwice skips the message of a merged contact ($2) if the contact ($1) that absorbed it gets the same step of the same run.
const skipTwice = `
	with gone as (update recipient r set state = 'skipped', since = $3 where contact_id = $2 and state in ('open', 'held') and exists (
		select from recipient k join block b on b.id = k.block_id join block rb on rb.id = r.block_id
		where k.contact_id = $1 and k.campaign_id = r.campaign_id and b.run = rb.run and k.step = r.step and k.state <> 'skipped')
			returning block_id)
	update block set total = total - n, skipped = skipped + n from (select block_id, count(*) n from gone group by 1) gone
		where block.id = gone.block_id`

// skipOpen skips unsent messages: the messages of a campaign before the call of the network, or all messages of a contact. The sweep skips
// the deferred messages of a cancelled campaign by events, so that conversations show it.
const skipOpen = `
	with gone as (update recipient set state = 'skipped', since = $2 where %s = $1 and state in (%s) returning block_id)
	update block set total = total - n, skipped = skipped + n from (select block_id, count(*) n from gone group by 1) gone
		where block.id = gone.block_id`

// sendAgain reopens the messages of a campaign's newest run that the network refused.
const sendAgain = `
	with again as (update recipient r set state = 'held', since = $2 from block b
		where b.id = r.block_id and r.campaign_id = $1 and r.state = 'refused' and b.run = (select max(run) from run where campaign_id = $1)
			returning r.block_id)
	update block set failed = failed - n from (select block_id, count(*) n from again group by 1) again where block.id = again.block_id`

const surveyLifetime = 72 * time.Hour

// Campaigns has the campaigns of workspaces and the result for each recipient.
var Campaigns = projections.Define("campaigns", 5, campaignsDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.Created]) {
		p := e.Data.Plan
		b.Exec(`
			insert into campaign (id, workspace_id, name, type, template_id, channel_id, audience, schedule, scheduled_at, template_params, steps,
				trigger, recurrence,
				status, next_run_at, created_at, updated_at, revision)
			values ($1, $2, $3, $4, $5, $6, $7, nullif($8, ''), $9, $10, $11, $12, $13, $14, $15, $16, $16, $17)`,
			e.StreamID(), e.Meta.Workspace, p.Name, p.Type, p.Template, p.Channel, p.Audience, p.Schedule, p.At, p.Params, p.Steps, p.Trigger,
			p.Recurrence,
			e.Data.Evolve(campaign.State{}).Status, e.Data.Next, e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.Started]) {
		b.Exec(`insert into run (campaign_id, run, started_at) values ($1, $2, $3)`, e.StreamID(), e.Data.Run, e.Data.At)
		b.Exec(`update campaign set started_at = coalesce(started_at, $2), completed_at = null where id = $1`, e.StreamID(), e.Data.At)
		campaignIs(b, e, campaign.Active, "", nil, "next_run_at", e.Data.Next)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.AudienceCompleted]) {
		b.Set("campaign", e.StreamID(), "updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.Paused]) {
		campaignIs(b, e, campaign.Stopped, e.Data.Reason, e.Data.Until)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.Resumed]) {
		if e.Data.Insisted {
			b.Exec(sendAgain, e.StreamID(), e.At)
		}
		campaignIs(b, e, campaign.Active, "", nil)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.Failed]) {
		campaignIs(b, e, campaign.StatusFailed, e.Data.Reason, nil)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.Finished]) {
		b.Exec(`update run set completed_at = $3 where campaign_id = $1 and run = $2`, e.StreamID(), e.Data.Run, e.At)
		b.Exec(`update campaign set status = case when next_run_at is null then 'completed' else 'scheduled' end, reason = null,
			paused_until = null,
			completed_at = case when next_run_at is null then $2::timestamptz end, updated_at = $2, revision = $3 where id = $1`, e.StreamID(),
			e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.Cancelled]) {
		b.Exec(fmt.Sprintf(skipOpen, "campaign_id", "'open'"), e.StreamID(), e.At)
		b.Exec(`update run set completed_at = $2 where campaign_id = $1 and completed_at is null`, e.StreamID(), e.At)
		campaignIs(b, e, campaign.Completed, "", nil, "completed_at", e.At, "next_run_at", (*time.Time)(nil))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[campaign.Frozen]) {
		d := e.Data
		b.Exec(`
			insert into block (id, campaign_id, run, total, skipped) values ($1, $2, $3, $4, $5)
			on conflict (id) do update set total = block.total + excluded.total, skipped = block.skipped + excluded.skipped`,
			e.StreamID(), d.Campaign, d.Run, len(d.Contacts)*len(d.Delays), d.Skipped)
		if len(d.Contacts) > 0 {
			b.Exec(`insert into frozen (first_id, last_id, campaign_id, run) values ($1, $2, $3, $4)`, d.First,
				d.First+int64(len(d.Contacts)*len(d.Delays))-1, d.Campaign, d.Run)
		}
		b.Exec(`
			insert into recipient (id, campaign_id, block_id, channel_id, contact_id, step, due_at, state, since)
			select $1 + (step - 1) * $2 + nth - 1, $3, $4, $5, contact, step - 1, $6::timestamptz + hours * interval '1 hour', 'open', $7
			from unnest($8::bigint[]) with ordinality c (contact, nth), unnest($9::bigint[]) with ordinality d (hours, step)`,
			d.First, len(d.Contacts), d.Campaign, e.StreamID(), d.Channel, d.At, e.At, d.Contacts, d.Delays)
	}),
	projections.Apply(moveTypes(), foldMoves),
	projections.On(func(b *projections.Batch, e event.Recorded[message.Received]) {
		if e.Data.Type != "reaction" {
			b.Exec(answered, e.StreamID(), e.Data.Contact, e.Data.Channel, e.At.Add(-surveyLifetime), e.At)
		}
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Absorbed]) {
		b.Exec(skipTwice, e.StreamID(), e.Data.Contact, e.At)
		b.Exec(`update recipient set contact_id = $1 where contact_id = $2`, e.StreamID(), e.Data.Contact)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[contact.Deleted]) {
		b.Exec(fmt.Sprintf(skipOpen, "contact_id", "'open', 'held'"), e.StreamID(), e.At)
	}),
)

// campaignIs sets the status of a campaign and the other given columns.
func campaignIs[E any](b *projections.Batch, e event.Recorded[E], status, reason string, until *time.Time, columns ...any) {
	var why *string
	if reason != "" {
		why = &reason
	}
	b.Set("campaign", e.StreamID(), slices.Concat([]any{"status", status, "reason", why, "paused_until", until, "updated_at", e.At,
		"revision", e.Revision}, columns)...)
}
