package messagingview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
	"bahi/readmodels"
)

// CampaignStats counts messages by their last state, in all runs and all steps of a drip.
type CampaignStats struct {
	Total     int64  `json:"total" doc:"Number of sent, failed and open messages"`
	Sent      int64  `json:"sent" doc:"Number of sent messages"`
	Delivered int64  `json:"delivered" doc:"Number of delivered messages"`
	Read      int64  `json:"read" doc:"Number of read messages"`
	Failed    int64  `json:"failed" doc:"Number of failed messages"`
	Skipped   int64  `json:"skipped" doc:"Number of recipients without consent or phone, and of skipped messages"`
	Responded *int64 `json:"responded,omitempty" doc:"Number of responses to a survey"`
}

// CampaignRun is a run of a campaign.
type CampaignRun struct {
	Run         int           `json:"run" doc:"Number of the run, from 1"`
	StartedAt   time.Time     `json:"startedAt" doc:"Time of the start"`
	CompletedAt *time.Time    `json:"completedAt" doc:"Time of completion; null: not completed"`
	Stats       CampaignStats `json:"stats" doc:"Numbers of messages by status"`
}

// Campaign is a template message to many contacts.
type Campaign struct {
	ID             int64                      `json:"id" doc:"ID of the campaign"`
	Name           string                     `json:"name" doc:"Name of the campaign"`
	Type           string                     `json:"type" enum:"broadcast,drip,trigger,survey" doc:"Type of the campaign"`
	TemplateID     int64                      `json:"templateId" doc:"ID of the template"`
	ChannelID      int64                      `json:"channelId" doc:"ID of the template's channel"`
	Audience       string                     `json:"audience" doc:"Contacts that receive the campaign"`
	Schedule       *string                    `json:"schedule" enum:"immediate,scheduled,recurring" doc:"Kind of schedule; null: none"`
	ScheduledAt    *time.Time                 `json:"scheduledAt" doc:"Scheduled time; null: none"`
	TemplateParams template.Values            `json:"templateParams" doc:"Values of the template's parameters"`
	Steps          []campaign.Step            `json:"steps,omitempty" doc:"Further messages after the first"`
	Trigger        *campaign.TriggerCondition `json:"trigger,omitempty" doc:"Condition that starts a run; null: none"`
	Recurrence     *campaign.Recurrence       `json:"recurrence,omitempty" doc:"Recurrence; null: none"`
	CampaignStatus
	Stats       CampaignStats `json:"stats" doc:"Numbers of messages by status"`
	Runs        []CampaignRun `json:"runs" doc:"Runs, newest first, at most 100; empty in lists"`
	CreatedAt   time.Time     `json:"createdAt" doc:"Time when the campaign was created"`
	UpdatedAt   time.Time     `json:"updatedAt" doc:"Time of the last change of the campaign"`
	StartedAt   *time.Time    `json:"startedAt" doc:"Time of the start; null: not started"`
	CompletedAt *time.Time    `json:"completedAt" doc:"Time of completion; null: not completed"`
	Revision    int64         `json:"revision" doc:"Revision, 0 for the first"`
}

// CampaignStatus is the status of a campaign, with the reason and the end of a pause.
type CampaignStatus struct {
	Status      string     `json:"status" enum:"draft,scheduled,active,paused,completed,failed" doc:"Status"`
	Reason      *string    `json:"reason" doc:"Reason why the campaign is paused, has failed or waits"`
	PausedUntil *time.Time `json:"pausedUntil" doc:"Time of the automatic resumption; null: none"`
	NextRunAt   *time.Time `json:"nextRunAt" doc:"Time of the next run; null: none"`
}

// CampaignFilter selects campaigns that match all of its fields. An empty field matches all.
type CampaignFilter struct {
	Status string `query:"status" enum:"draft,scheduled,active,paused,completed,failed" doc:"Only this status"`
	Type   string `query:"type" enum:"broadcast,drip,trigger,survey" doc:"Only this type"`
}

const (
	sums = `coalesce(sum(total), 0)::bigint, coalesce(sum(sent), 0)::bigint, coalesce(sum(delivered), 0)::bigint, coalesce(sum(read), ` +
		`0)::bigint,
		coalesce(sum(failed), 0)::bigint, coalesce(sum(skipped), 0)::bigint, coalesce(sum(responded), 0)::bigint`

	campaignColumns = `
		select c.id, name, type, template_id, channel_id, audience, schedule, scheduled_at, template_params, steps, trigger, recurrence, status,
			reason, paused_until, next_run_at,
			created_at, updated_at, started_at, completed_at, revision, case when status = 'active' and s.total - s.sent - s.failed <= 1000 then (
				select count(*) from campaigns.recipient where campaign_id = c.id and state = 'calling'
					and since < now() - interval '30 seconds') else 0 end, s.*
		from campaigns.campaign c cross join lateral (select ` + sums + ` from campaigns.block where campaign_id = c.id) s
			(total, sent, delivered, read, failed, skipped, responded)`
)

func asCampaign(row pgx.CollectableRow) (c Campaign, err error) {
	c.Runs = []CampaignRun{}
	var doubtful, responded int64
	s := &c.Stats
	err = row.Scan(&c.ID, &c.Name, &c.Type, &c.TemplateID, &c.ChannelID, &c.Audience, &c.Schedule, &c.ScheduledAt, &c.TemplateParams,
		&c.Steps, &c.Trigger, &c.Recurrence,
		&c.Status, &c.Reason, &c.PausedUntil, &c.NextRunAt, &c.CreatedAt, &c.UpdatedAt, &c.StartedAt, &c.CompletedAt, &c.Revision,
		&doubtful, &s.Total, &s.Sent, &s.Delivered, &s.Read, &s.Failed, &s.Skipped, &responded)
	if c.TemplateParams == nil {
		c.TemplateParams = template.Values{}
	}
	if c.Type == campaign.Survey {
		s.Responded = &responded
	}
	if doubtful > 0 { // its sender may have died
		c.Reason = new("The network has not responded, and some sent messages have no delivery receipt. Bahi sends these messages once more " +
			"ten minutes after their call")
	}
	return c, err
}

// Campaign reads a campaign with its runs, or returns [campaign.ErrNotFound].
func (v *Views) Campaign(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (Campaign, error) {
	c, err := readmodels.Row(ctx, v.Reader.From(at, "campaigns"), campaign.ErrNotFound, asCampaign,
		campaignColumns+` where c.id = $1 and workspace_id = $2`,
		id, workspace)
	if err != nil {
		return c, err
	}
	runs, err := readmodels.Rows(ctx, v.Reader.From(at, "campaigns"), func(row pgx.CollectableRow) (r CampaignRun, err error) {
		s, responded := &r.Stats, int64(0)
		err = row.Scan(&r.Run, &r.StartedAt, &r.CompletedAt, &s.Total, &s.Sent, &s.Delivered, &s.Read, &s.Failed, &s.Skipped, &responded)
		if c.Type == campaign.Survey {
			s.Responded = &responded
		}
		return r, err
	}, `
		select r.run, r.started_at, r.completed_at, s.* from campaigns.campaign c join campaigns.run r on r.campaign_id = c.id
		cross join lateral (select `+sums+` from campaigns.block b where b.campaign_id = r.campaign_id and b.run = r.run) s
		where c.id = $1 and workspace_id = $2 order by r.run desc limit 100`, id, workspace)
	c.Runs = append(c.Runs, runs...)
	return c, err
}

// Campaigns lists a page of a workspace's campaigns, newest first.
func (v *Views) Campaigns(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page,
	f CampaignFilter) (rows []Campaign,
	total int64, err error) {
	return readmodels.List[Campaign]{
		As: asCampaign, Order: `id desc`, SQL: campaignColumns + `
			where workspace_id = @workspace and (@status = '' or status = @status) and (@type = '' or type = @type)`,
		Args: pgx.NamedArgs{"workspace": workspace, "status": f.Status, "type": f.Type},
	}.Page(ctx, v.Reader.From(at, "campaigns"), page)
}

// CampaignResponse is a recipient's response to a survey.
type CampaignResponse struct {
	ContactID int64     `json:"contactId" doc:"ID of the contact"`
	MessageID string    `json:"messageId" doc:"ID of the message"`
	Text      *string   `json:"text" doc:"Text of the response; null: a file without text. Responses of deleted contacts are not listed"`
	At        time.Time `json:"at" doc:"Time of the response"`
}

// CampaignResponses lists a page of the responses to a survey, newest first.
func (v *Views) CampaignResponses(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page,
	id int64) (rows []CampaignResponse,
	total int64, err error) {
	return readmodels.List[CampaignResponse]{As: func(row pgx.CollectableRow) (r CampaignResponse, err error) {
		var id string
		err = row.Scan(&id, &r.ContactID, &r.Text, &r.At)
		r.MessageID = message.Name(id)
		return r, err
	}, Order: `response_id desc`, SQL: `
		select r.response_id, r.contact_id, m.text, m.at from campaigns.recipient r join campaigns.campaign c on c.id = r.campaign_id
			join messages.message m on m.id = r.response_id
		where c.id = @campaign and c.workspace_id = @workspace and r.response_id is not null`,
		Args: pgx.NamedArgs{"campaign": id, "workspace": workspace},
	}.Page(ctx, v.Reader.From(at, "campaigns", "messages"), page)
}

// CampaignRecipient is a message of a campaign and its state.
type CampaignRecipient struct {
	MessageID string        `json:"messageId" doc:"ID of the message"`
	ContactID int64         `json:"contactId" doc:"ID of the contact"`
	Name      *string       `json:"name" doc:"Name of the contact; null: none, or the contact was deleted"`
	Phone     *string       `json:"phone" doc:"Phone number in E.164 form"`
	Run       int           `json:"run" doc:"Number of the run, from 1"`
	Step      int           `json:"step" doc:"Number of the step, from 1; above 1 only in a drip"`
	Status    string        `json:"status" enum:"open,sent,delivered,read,failed,skipped" doc:"Last status of the message"`
	Reason    *string       `json:"reason" doc:"Reason why the message has failed, was skipped or waits"`
	Error     *MessageError `json:"error" doc:"Network's error of a failed or waiting message; null: none"`
	At        time.Time     `json:"at" doc:"Time of the last change of the status"`
}

// RecipientFilter selects recipients. An empty status matches all.
type RecipientFilter struct {
	Status string `query:"status" enum:"open,sent,delivered,read,failed,skipped" doc:"Only this status"`
}

// CampaignRecipients lists a page of a campaign's messages, newest first.
func (v *Views) CampaignRecipients(
	ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, id int64, f RecipientFilter,
) (rows []CampaignRecipient, total int64, err error) {
	return readmodels.List[CampaignRecipient]{As: func(row pgx.CollectableRow) (r CampaignRecipient, err error) {
		var (
			id     string
			reason *string
			code   *int
			failed MessageError
		)
		err = row.Scan(&id, &r.ContactID, &r.Name, &r.Phone, &r.Run, &r.Step, &r.Status, &r.At, &reason, &code, &failed.Title, &failed.Details)
		r.MessageID = message.Name(id)
		if reason != nil {
			f := network.Failure{Reason: network.Reason(*reason)}
			if code != nil {
				f.Code = *code
			}
			failed.Code = f.Reason.Word()
			r.Reason, r.Error = new(f.Error()), &failed
		}
		return r, err
	}, Order: `id desc`, SQL: `
		select r.id, r.contact_id, k.name, k.phone, f.run, r.step + 1 as step,
			case when r.state in ('open', 'held', 'calling') then 'open' when r.state = 'refused' then 'failed' else r.state end as state, r.since,
			case when r.state = 'skipped' then 'passed_over' else m.reason end, m.code, m.title, m.details
		from campaigns.campaign c join campaigns.frozen f on f.campaign_id = c.id join campaigns.recipient r on r.id between f.first_id
			and f.last_id
			left join messages.message m on m.id = r.id left join messaging_contacts.contact k on k.id = r.contact_id
		where c.id = @campaign and c.workspace_id = @workspace and (@status = '' or r.state = @status
			or @status = 'open' and r.state in ('held', 'calling') or @status = 'failed' and r.state = 'refused')`,
		Args: pgx.NamedArgs{"campaign": id, "workspace": workspace, "status": f.Status},
	}.Page(ctx, v.Reader.From(at, "campaigns", "messages", "messaging_contacts"), page)
}

// Person has the data of a contact that campaigns need.
type Person struct {
	ID          int64
	Name, Phone string
	OptIn       bool
	Revision    int64
}

// Reachable reports whether a campaign may write to the contact.
func (p Person) Reachable() bool { return p.OptIn && p.Phone != "" }

const persons = `select id, coalesce(name, ''), coalesce(phone, ''), opt_in, revision from messaging_contacts.contact
	where workspace_id = $1 and ($2::bigint = 0 or exists (select from messaging_contacts.member where contact_id = contact.id
		and list_id = $2))`

// Audience returns the next contacts of an audience after an id, by their ids. List 0 has all contacts.
func (v *Views) Audience(ctx context.Context, at *readmodels.At, workspace uuid.UUID, list, after int64, limit int) ([]Person, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "messaging_contacts"), pgx.RowToStructByPos[Person],
		persons+` and id > $3 order by id limit $4`, workspace,
		list, after, limit)
}

// Persons returns contacts by their ids. It omits deleted contacts.
func (v *Views) Persons(ctx context.Context, at *readmodels.At, workspace uuid.UUID, ids []int64) (map[int64]Person, error) {
	rows, err := readmodels.Rows(ctx, v.Reader.From(at, "messaging_contacts"), pgx.RowToStructByPos[Person], persons+` and id = any($3)`,
		workspace, int64(0), ids)
	all := make(map[int64]Person, len(rows))
	for _, p := range rows {
		all[p.ID] = p
	}
	return all, err
}

// AudienceSize counts the contacts that would receive a campaign's message, and those that it would skip.
func (v *Views) AudienceSize(ctx context.Context, at *readmodels.At, workspace uuid.UUID, list int64) (total, skipped int64, err error) {
	type size struct{ Total, Skipped int64 }
	s, err := readmodels.Row(ctx, v.Reader.From(at, "messaging_contacts"), nil, pgx.RowToStructByPos[size], `
		select count(*) filter (where opt_in and phone <> ''), count(*) filter (where not opt_in or phone is null or phone = '')
			from messaging_contacts.contact
		where workspace_id = $1 and ($2::bigint = 0 or exists (select from messaging_contacts.member where contact_id = contact.id
			and list_id = $2))`, workspace, list)
	return s.Total, s.Skipped, err
}

// Recipient is a message of a campaign without a final result.
type Recipient struct {
	ID, Contact int64
	Step        int
	State       string // open, held or calling
}

// Due selects messages of a campaign to send: due messages, and messages whose call at UnansweredSince or earlier has no result.
type Due struct {
	Now, UnansweredSince time.Time
	After                int64 // id of the message before the first
	Limit                int
}

// CampaignWork returns messages to send, by their ids. A step waits until the previous step has a result and the step's hours have passed.
func (v *Views) CampaignWork(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64, due Due) ([]Recipient, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "campaigns"), pgx.RowToStructByPos[Recipient], `
		select r.id, r.contact_id, r.step, r.state from campaigns.recipient r
		where r.campaign_id = $1 and r.id > $3 and (state in ('open', 'held') and due_at <= $4 or state = 'calling' and since <= $5)
			and exists (select from campaigns.campaign c where c.id = $1 and c.workspace_id = $2)
			and (r.step = 0 or not exists (select from campaigns.recipient p
				where p.contact_id = r.contact_id and p.block_id = r.block_id and p.step < r.step
					and (p.state in ('open', 'held', 'calling') or r.state = 'open' and p.called_at + (r.due_at - p.due_at) > $4)))
		order by r.id limit $6`, id, workspace, due.After, due.Now, due.UnansweredSince, due.Limit)
}

// CampaignEnd is the state of a run without due messages.
type CampaignEnd struct {
	Settled bool // no message is open
	Refused bool // the network has refused every message that was sent, and only later steps are open
}

// CampaignEnd returns the state of a run of a campaign.
func (v *Views) CampaignEnd(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64, run int) (CampaignEnd, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "campaigns"), nil, pgx.RowToStructByPos[CampaignEnd], `
		select not exists (select from campaigns.recipient where campaign_id = c.id and state in ('open', 'held', 'calling')),
			s.sent = 0 and s.failed > 0 and s.failed = (
				select count(*) from campaigns.recipient r join campaigns.block b on b.id = r.block_id where r.campaign_id = c.id
					and r.state = 'refused' and b.run = $3)
			and not exists (select from campaigns.recipient where campaign_id = c.id and state in ('open', 'held', 'calling') and (step = 0
				or state <> 'open'))
		from campaigns.campaign c cross join lateral (
			select coalesce(sum(sent), 0) as sent, coalesce(sum(failed), 0) as failed from campaigns.block where campaign_id = c.id and run = $3) s
		where c.id = $1 and c.workspace_id = $2`, id, workspace, run)
}

// Called counts the contacts to which a channel's campaigns have sent messages since a time, and returns the time of the first message.
func (v *Views) Called(ctx context.Context, at *readmodels.At, workspace uuid.UUID, channel int64, since time.Time) (people int64,
	first *time.Time,
	err error) {
	type called struct {
		People int64
		First  *time.Time
	}
	c, err := readmodels.Row(ctx, v.Reader.From(at, "campaigns"), nil, pgx.RowToStructByPos[called], `
		select count(distinct r.contact_id), min(r.called_at) from campaigns.recipient r join campaigns.campaign c on c.id = r.campaign_id
		where r.channel_id = $1 and c.workspace_id = $2 and r.called_at > $3 and r.state <> 'held'`, channel, workspace, since)
	return c.People, c.First, err
}

// WroteSince returns the contacts that have written to a channel since a time, by the server's or the network's clock.
func (v *Views) WroteSince(ctx context.Context, at *readmodels.At, workspace uuid.UUID, channel int64, contacts []int64,
	since time.Time) (map[int64]bool,
	error) {
	ids, err := readmodels.Rows(ctx, v.Reader.From(at, "messages"), pgx.RowTo[int64], `
		select distinct contact_id from messages.message where inbound and type <> 'reaction' and contact_id = any($1) and channel_id = $2
			and workspace_id = $3 and at >= $4`,
		contacts, channel, workspace, since)
	all := make(map[int64]bool, len(ids))
	for _, id := range ids {
		all[id] = true
	}
	return all, err
}

// DueCampaign is a campaign with due work.
type DueCampaign struct {
	ID        int64
	Workspace uuid.UUID
	Status    string
}

// DueCampaigns returns the campaigns of all workspaces with due work: active ones, those that begin or continue by now, those cancelled in
// the last week with deferred messages, and those of the last week with a call before unansweredSince that has no result.
func (v *Views) DueCampaigns(ctx context.Context, at *readmodels.At, now, unansweredSince time.Time) ([]DueCampaign, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "campaigns", "channels"), pgx.RowToStructByPos[DueCampaign], `
		select id, workspace_id, status from campaigns.campaign
		where status = 'active' and type <> 'trigger' or status = 'active' and exists (
				select from campaigns.recipient where campaign_id = campaign.id and state in ('open', 'held', 'calling'))
			or status = 'scheduled' and next_run_at <= $1 or status = 'paused' and paused_until <= $1
			or status = 'completed' and completed_at > $1::timestamptz - interval '7 days' and exists (
				select from campaigns.recipient where campaign_id = campaign.id and state in ('open', 'held', 'calling') and (state = 'held'
					or state = 'calling' and since <= $2))
			or status = 'failed' and updated_at > $1::timestamptz - interval '7 days' and not exists (select from channels.channel
				where id = campaign.channel_id) and exists (
				select from campaigns.recipient where campaign_id = campaign.id and state = 'calling' and since <= $2)
		order by id`, now, unansweredSince)
}

// Triggers returns the active triggers of a workspace.
func (v *Views) Triggers(ctx context.Context, at *readmodels.At, workspace uuid.UUID) ([]int64, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "campaigns"), pgx.RowTo[int64],
		`select id from campaigns.campaign where workspace_id = $1 and type = 'trigger'
		and status = 'active'`, workspace)
}

// CampaignsOn returns the campaigns on a channel that have not ended.
func (v *Views) CampaignsOn(ctx context.Context, at *readmodels.At, workspace uuid.UUID, channel int64) ([]int64, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "campaigns"), pgx.RowTo[int64], `
		select id from campaigns.campaign where workspace_id = $1 and channel_id = $2 and status in ('scheduled', 'active',
			'paused')`, workspace, channel)
}
