package campaign_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
	"bahi/internal/test/eventtest"
)

var (
	india     = time.FixedZone("IST", 5*3600+1800)
	now       = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	templates = map[int64]template.State{
		1: {Template: network.Template{Name: "offer", Status: "APPROVED", Parameters: []string{"1"}}, Channel: 3},
		2: {Template: network.Template{Name: "plain", Status: "APPROVED"}, Channel: 3},
		4: {Template: network.Template{Name: "late", Status: "PAUSED"}, Channel: 5},
	}
)

func create(change func(*campaign.Create)) campaign.Create {
	c := campaign.Create{
		Name: " Diwali ", Type: "broadcast", TemplateID: 1, Audience: "all", TemplateParams: template.Values{"1": "{{name}}"}, Now: now,
		Zone: india, Templates: templates,
	}
	if change != nil {
		change(&c)
	}
	return c
}

func TestCreate(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, campaign.Kind)
	plan := campaign.Plan{Name: "Diwali", Type: "broadcast", Template: 1, Channel: 3, Audience: "all",
		Params: template.Values{"1": "{{name}}"}}
	given.Case("a campaign without a time waits").When(create(nil)).Then(campaign.Created{Plan: plan})
	given.Case("or begins at once").When(create(func(c *campaign.Create) { c.Autosend = true })).Then(campaign.Created{Plan: plan},
		campaign.Started{Run: 1, At: now})
	refused := func(why string, change func(*campaign.Create), fields ...fault.Field) {
		given.Case(why).When(create(change)).ThenFails(fault.Fields(fields...))
	}
	refused("every placeholder is filled", func(c *campaign.Create) { c.TemplateParams = template.Values{"1": " "} },
		fault.Field{Field: "templateParams.1", Message: "must be filled"})
	refused("an unknown template", func(c *campaign.Create) { c.TemplateID = 9 },
		fault.Field{Field: "templateId", Message: "Template not found"})
	refused("one that is not approved", func(c *campaign.Create) { c.TemplateID, c.TemplateParams = 4, nil },
		fault.Field{Field: "templateId", Message: "the template is not approved"})
	refused("an unknown list", func(c *campaign.Create) { c.Audience = "7" },
		fault.Field{Field: "audience", Message: "expected all or the id of a contact list"})
	refused("no audience", func(c *campaign.Create) { c.Audience = "-1" },
		fault.Field{Field: "audience", Message: "expected all or the id of a contact list"})
	refused("a time that is over", func(c *campaign.Create) { c.Schedule, c.ScheduledAt = "scheduled", "2026-11-23T15:30" },
		fault.Field{Field: "scheduledAt", Message: "must be in the future"})
	refused("no time", func(c *campaign.Create) { c.Schedule = "recurring" },
		fault.Field{Field: "scheduledAt", Message: "expected a time like 2026-12-01T09:30:00+05:30"})
	refused("a time without a schedule", func(c *campaign.Create) { c.ScheduledAt = "2027-01-01T00:00" },
		fault.Field{Field: "scheduledAt", Message: "only a scheduled or recurring campaign has a time"})
	refused("parts of other types", func(c *campaign.Create) {
		c.TemplateID, c.TemplateParams = 2, nil
		c.Steps, c.Recurrence, c.Trigger = []campaign.Step{{TemplateID: 2}}, &campaign.Recurrence{}, &campaign.TriggerCondition{Event: "keyword"}
	}, fault.Field{Field: "steps", Message: "only a drip has steps"}, fault.Field{Field: "trigger", Message: "only a trigger has it"},
		fault.Field{Field: "recurrence", Message: "only a recurring campaign has it"})
	refused("an unknown type and schedule, alone", func(c *campaign.Create) {
		c.Steps = []campaign.Step{{TemplateID: 1, TemplateParams: template.Values{"1": "x"}}}
		c.TemplateParams, c.Recurrence, c.Trigger = nil, &campaign.Recurrence{}, &campaign.TriggerCondition{Event: "reply"}
		c.Name, c.Type, c.Schedule, c.ScheduledAt = "", "blast", "later", "2027-01-01T00:00" // the schema has refused type and schedule
	}, fault.Field{Field: "name", Message: "1 to 100 characters"})
	refused("a trigger without a cause", func(c *campaign.Create) { c.Type = "trigger" },
		fault.Field{Field: "trigger", Message: "is required"})
	refused("a keyword without a word", func(c *campaign.Create) {
		c.Type, c.Trigger = "trigger", &campaign.TriggerCondition{Event: "keyword", Keyword: " "}
	},
		fault.Field{Field: "trigger.keyword", Message: "allowed only with the event keyword"})
	refused("steps that begin with another template or go elsewhere", func(c *campaign.Create) {
		c.Type, c.Steps = "drip", []campaign.Step{{TemplateID: 2}, {TemplateID: 4}}
		c.TemplateParams = template.Values{"1": "a\nb"}
	}, fault.Field{Field: "steps[0].templateId", Message: "must be templateId"},
		fault.Field{Field: "steps[0].templateParams", Message: "must be templateParams"},
		fault.Field{Field: "steps[1].templateId", Message: "the template is not approved"})
	refused("values without a placeholder", func(c *campaign.Create) {
		c.Type, c.TemplateID, c.TemplateParams = "drip", 2, nil
		c.Steps = []campaign.Step{{TemplateID: 2}, {TemplateID: 1, TemplateParams: template.Values{"1": "x", "One": ""}}}
	}, fault.Field{Field: "steps[1].templateParams.One", Message: "the template has no such placeholder"})

	at := time.Date(2026, 11, 24, 4, 0, 0, 0, time.UTC)
	recurring := plan
	recurring.Schedule, recurring.At, recurring.Recurrence, recurring.List, recurring.Audience = "recurring", &at,
		&campaign.Recurrence{Every: 1, Unit: "week"}, 7, "7"
	given.Case("without an offset the time is the workspace's").
		When(create(func(c *campaign.Create) {
			c.Schedule, c.ScheduledAt, c.Audience, c.HasList = "recurring", "2026-11-24T09:30", "7", true
		})).
		Then(campaign.Created{Plan: recurring, Next: &at})
}

func TestMovesOfACampaign(t *testing.T) {
	t.Parallel()
	at, later := now.Add(time.Hour), now.Add(50*time.Hour)
	plan := campaign.Plan{Name: "Diwali", Type: "broadcast", Template: 1, Channel: 3, Audience: "all"}
	eventtest.Given(t, campaign.Kind).Case("there is none").When(campaign.Send{Now: now}).ThenFails(campaign.ErrNotFound)
	draft := eventtest.Given(t, campaign.Kind, campaign.Created{Plan: plan})
	draft.Case("a draft is sent").When(campaign.Send{Now: now}).Then(campaign.Started{Run: 1, At: now})
	draft.Case("nobody wakes it").When(campaign.RunDue{Now: later}).ThenNothing()
	active := draft.And(campaign.Started{Run: 1, At: now})
	active.Case("sent again, it goes on").When(campaign.Send{Now: later}).ThenNothing()
	active.Case("its audience is known once").When(campaign.Advance{Run: 1, Blocks: 2}).Then(campaign.AudienceCompleted{Run: 1, Blocks: 2})
	active.And(campaign.AudienceCompleted{Run: 1, Blocks: 2}).Case("and not twice").When(campaign.Advance{Run: 1, Blocks: 2}).ThenNothing()
	active.Case("what an earlier run says is over").When(campaign.Advance{Run: 0, Done: true}).ThenNothing()
	paused := active.And(campaign.Paused{Reason: "throttled", Until: &at})
	active.Case("it pauses").When(campaign.Advance{Run: 1, Pause: "throttled", Until: &at}).Then(campaign.Paused{Reason: "throttled",
		Until: &at})
	paused.Case("it sleeps").When(campaign.RunDue{Now: now}).ThenNothing()
	paused.Case("until it wakes").When(campaign.RunDue{Now: at}).Then(campaign.Resumed{})
	paused.Case("but not without a channel").When(campaign.Advance{Run: 1, Fail: "gone"}).Then(campaign.Failed{Reason: "gone"})
	paused.Case("or a person insists").When(campaign.Send{Now: now}).Then(campaign.Resumed{Insisted: true})
	active.And(campaign.Failed{Reason: "no"}).Case("what failed is sent again").When(campaign.Send{Now: now}).Then(
		campaign.Resumed{Insisted: true})
	done := active.And(campaign.Finished{Run: 1})
	done.Case("what is over is not sent").When(campaign.Send{Now: later}).ThenFails(campaign.ErrCompleted)
	done.Case("nor cancelled").When(campaign.Cancel{}).ThenNothing()
	active.Case("a cancelled one is over").When(campaign.Cancel{}).Then(campaign.Cancelled{})
	require.Equal(t, campaign.Completed, active.And(campaign.Cancelled{}).State().Status)

	plan.At, plan.Recurrence = &at, &campaign.Recurrence{Every: 1, Unit: "day"}
	planned := eventtest.Given(t, campaign.Kind, campaign.Created{Plan: plan, Next: &at})
	planned.Case("it is too early").When(campaign.RunDue{Now: now, Zone: india}).ThenNothing()
	missed := at.Add(72 * time.Hour)
	planned.Case("missed runs are one").When(campaign.RunDue{Now: later, Zone: india}).Then(campaign.Started{Run: 1, At: later, Next: &missed})
	planned.Case("a run between leaves the plan").When(campaign.Send{Now: now}).Then(campaign.Started{Run: 1, At: now, Next: &at})
	planned.And(campaign.Started{Run: 1, At: now, Next: &at}, campaign.Finished{Run: 1}).Case("then the plan goes on").
		When(campaign.RunDue{Now: at, Zone: india}).Then(campaign.Started{Run: 2, At: at, Next: new(at.Add(24 * time.Hour))})
	planned.And(campaign.Cancelled{}).Case("a cancelled one never runs").When(campaign.RunDue{Now: later, Zone: india}).ThenNothing()
	planned.Case("a channel that is gone ends it before").When(campaign.Advance{Fail: "gone"}).Then(campaign.Failed{Reason: "gone"})
}

func TestATriggerWritesToAContactOnceADay(t *testing.T) {
	t.Parallel()
	f := campaign.Frozen{Campaign: 7, Run: 1, Block: -1, Channel: 3, First: 9, Contacts: []int64{4}, Last: 4, End: true, At: now,
		Delays: []int{0}}
	given := eventtest.Given(t, campaign.Blocks)
	given.Case("the first time").When(campaign.Freeze{Frozen: f}).Then(f)
	soon, next := f, f
	soon.At, next.At = now.Add(23*time.Hour), now.Add(24*time.Hour)
	again := given.And(f)
	again.Case("not the same day").When(campaign.Freeze{Frozen: soon, Again: campaign.TriggerCooldown}).ThenNothing()
	again.Case("but the next").When(campaign.Freeze{Frozen: next, Again: campaign.TriggerCooldown}).Then(next)
	again.Case("a block of a run is one").When(campaign.Freeze{Frozen: next}).ThenNothing()

	s := campaign.State{Plan: campaign.Plan{Type: "trigger", Trigger: &campaign.TriggerCondition{Event: "keyword", Keyword: "Price  LIST"}},
		Status: campaign.Active}
	require.True(t, s.MatchesTrigger("message_received", " price list"))
	require.False(t, s.MatchesTrigger("message_received", "price list?"))
	require.False(t, s.MatchesTrigger("contact_created", ""))
	s.Trigger = &campaign.TriggerCondition{Event: "message_received"}
	require.True(t, s.MatchesTrigger("message_received", "anything"))
}

func TestRunsKeepTheClock(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, c := range []struct {
		sentence, first, after, next string
		every                        campaign.Recurrence
	}{
		{"over the change to summer", "2026-03-28T09:00:00+01:00", "2026-03-28T09:00:00+01:00", "2026-03-29T09:00:00+02:00",
			campaign.Recurrence{Every: 1, Unit: "day"}},
		{"over the change to winter", "2026-10-20T09:00:00+02:00", "2026-10-20T09:00:00+02:00", "2026-10-27T09:00:00+01:00",
			campaign.Recurrence{Every: 1, Unit: "week"}},
		{"in the gap, the first moment after it", "2026-03-28T02:30:00+01:00", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00",
			campaign.Recurrence{Every: 1, Unit: "day"}},
		{"the gap does not move later runs", "2026-03-28T02:30:00+01:00", "2026-03-29T12:00:00+02:00", "2026-03-30T02:30:00+02:00",
			campaign.Recurrence{Every: 1, Unit: "day"}},
		{"in the overlap, the first of the two", "2026-10-24T02:30:00+02:00", "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00",
			campaign.Recurrence{Every: 1, Unit: "day"}},
		{"a short month has its last day", "2026-01-31T09:00:00+01:00", "2026-01-31T09:00:00+01:00", "2026-02-28T09:00:00+01:00",
			campaign.Recurrence{Every: 1, Unit: "month"}},
		{"and the next its own again", "2026-01-31T09:00:00+01:00", "2026-02-28T09:00:00+01:00", "2026-03-31T09:00:00+02:00",
			campaign.Recurrence{Every: 1, Unit: "month"}},
		{"every third month", "2026-11-30T09:00:00+01:00", "2027-01-01T09:00:00+01:00", "2027-02-28T09:00:00+01:00",
			campaign.Recurrence{Every: 3, Unit: "month"}},
		{"after many years", "2006-11-30T09:00:00+01:00", "2026-11-30T09:00:00+01:00", "2026-12-01T09:00:00+01:00",
			campaign.Recurrence{Every: 1, Unit: "day"}},
	} {
		first, err := time.Parse(time.RFC3339, c.first)
		require.NoError(t, err)
		after, err := time.Parse(time.RFC3339, c.after)
		require.NoError(t, err)
		next := c.every.Next(first, after, berlin)
		require.Equal(t, c.next, next.In(berlin).Format(time.RFC3339), c.sentence)
		c.every.Until = new(next.Add(-time.Second))
		require.Nil(t, c.every.Next(first, after, berlin), c.sentence)
	}
}

// A daily campaign runs once on each day of a year, at the same time of day, even after weeks without a check.
func TestAYearOfADailyCampaign(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
	c := create(func(c *campaign.Create) {
		c.Schedule, c.ScheduledAt, c.Recurrence, c.Now, c.Zone = "recurring", "2026-01-01T09:30", &campaign.Recurrence{Unit: "day"}, clock, zone
	})
	var s campaign.State
	do := func(c event.Command[campaign.State]) (done bool) {
		events, err := c.Decide(s)
		require.NoError(t, err)
		for _, e := range events {
			s = e.Evolve(s)
		}
		return len(events) > 0
	}
	require.True(t, do(c))
	days := 0
	for end := clock.AddDate(1, 0, 0); clock.Before(end); clock = clock.Add(20 * time.Minute) {
		if m := clock.Month(); m == time.July { // the machine is off
			continue
		}
		if !do(campaign.RunDue{Now: clock, Zone: zone}) {
			continue
		}
		days++
		if clock.Day() > 1 || clock.Month() != time.August {
			require.Equal(t, "09:40", clock.Format("15:04"), clock)
		}
		require.True(t, do(campaign.Advance{Run: s.Run, Done: true}))
		require.Equal(t, campaign.Scheduled, s.Status)
	}
	require.Equal(t, 365-31+1, days, "the runs of July are one")
}
