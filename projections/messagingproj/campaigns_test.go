package messagingproj_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/internal/test/projectiontest"
	"bahi/projections/messagingproj"
)

// The counts of recipients equal those of a model that knows only the furthest state of each message, whatever the order of events.
func TestStatsAreExact(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: "campaign:7"}
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	const blocks, contacts = 3, 20
	happened := []projectiontest.Event{
		projectiontest.Happened(campaign.Kind, "7",
			campaign.Created{Plan: campaign.Plan{Name: "x", Type: "survey", Template: 1, Channel: 3, Audience: "all"}}, meta),
		projectiontest.Happened(campaign.Kind, "7", campaign.Started{Run: 1, At: at}, meta),
	}
	for b := range blocks {
		f := campaign.Frozen{Campaign: 7, Run: 1, Block: b, Channel: 3, First: int64(100*b + 1), Skipped: 2, Last: 1, At: at,
			Delays: []int{0, 24}}
		for i := range contacts {
			f.Contacts = append(f.Contacts, int64(1000+100*b+i))
		}
		happened = append(happened, projectiontest.Happened(campaign.Blocks, campaign.BlockName("7", 1, b), f, meta))
	}
	type sums struct{ total, sent, delivered, read, failed, skipped, responded int }
	want := sums{total: 2 * blocks * contacts, skipped: 2 * blocks}
	random := rapid.Custom(func(t *rapid.T) []string {
		return rapid.SliceOfN(rapid.SampledFrom([]string{"queue", "pass", "take", "refuse", "hold", "doubt", "resend", "sent", "delivered",
			"read", "failed"}), 0, 9).Draw(t, "history")
	})
	answered := map[int64]bool{}
	for b := range blocks {
		for i := range 2 * contacts {
			id := int64(100*b + 1 + i)
			who := int64(1000 + 100*b + i%contacts)
			name := contact.Subjects.Personal(fmt.Sprint(who), "x")
			var s message.State
			do := func(c event.Command[message.State]) {
				events, err := c.Decide(s)
				require.NoError(t, err)
				for _, e := range events {
					s = e.Evolve(s)
					happened = append(happened, projectiontest.Happened(message.Kind, fmt.Sprint(id), e, meta))
				}
			}
			called := false
			for _, what := range random.Example(int(id)) {
				switch begun := s.Status != ""; {
				case what == "queue" && !begun:
					do(message.Queue{Contact: who, Draft: message.Draft{Channel: 3, To: "91", Text: "x", Template: 1}})
					called = true
				case what == "pass" && !begun:
					do(message.Skip{Contact: who})
				case !begun || s.Status == message.Unwanted:
				case what == "take" && s.ProviderID == "":
					do(message.RecordSendResult{Contact: who, ProviderID: "w"})
				case what == "refuse":
					do(message.RecordSendResult{Contact: who, Failure: &network.Failure{Reason: network.Recipient, Code: 131026}})
				case what == "hold":
					do(message.RecordSendResult{Contact: who, Failure: &network.Failure{Reason: network.Throttled}})
				case what == "doubt":
					do(message.RecordSendResult{Contact: who, Failure: &network.Failure{Reason: network.Unknown}})
				case what == "resend":
					do(message.Resend{Contact: who})
				case what == "sent", what == "delivered", what == "read", what == "failed":
					do(message.Receipt{Status: what})
				}
			}
			if called && i >= contacts && !answered[who] {
				answered[who] = true
				want.responded++
				happened = append(happened, projectiontest.Happened(message.Kind, fmt.Sprint(5000+id),
					message.Received{Content: message.Content{Type: "text", Text: name}, Channel: 3, Contact: who, ProviderID: "i", SentAt: at}, meta))
			}
			switch s.Status {
			case message.Read:
				want.read++
				want.delivered++
				want.sent++
			case message.Delivered:
				want.delivered++
				want.sent++
			case message.Sent:
				want.sent++
			case message.NotSent:
				if !s.Reason.Stops() {
					want.failed++
				}
			case message.Unwanted:
				want.total--
				want.skipped++
			}
		}
	}
	tables := projectiontest.Run(t, messagingproj.Campaigns, happened...)
	require.Equal(t, []string{fmt.Sprintf("(%d,%d,%d,%d,%d,%d,%d)", want.total, want.sent, want.delivered, want.read, want.failed,
		want.skipped, want.responded)},
		tables.Rows(`select sum(total), sum(sent), sum(delivered), sum(read), sum(failed), sum(skipped), sum(responded) from block`))
	require.Positive(t, want.read)

	// A cancelled campaign skips its open recipients.
	happened = append(happened, projectiontest.Happened(campaign.Kind, "7", campaign.Cancelled{}, meta))
	tables = projectiontest.Run(t, messagingproj.Campaigns, happened...)
	require.Equal(t, []string{"(t,t)"},
		tables.Rows(fmt.Sprintf(`select sum(total) + sum(skipped) = %d, sum(skipped) > %d from block`, want.total+want.skipped, want.skipped)))
	require.Equal(t, []string{"(completed,)"}, tables.Rows(`select status, next_run_at from campaign`))
}

// Send reopens only those messages of the newest run that the network refused without giving them an id.
func TestSendTakesUpWhatWasRefused(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: "campaign:7"}
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	of := func(e event.Event[campaign.State]) projectiontest.Event {
		return projectiontest.Happened(campaign.Kind, "7", e, meta)
	}
	to := func(id string, all ...event.Event[message.State]) (happened []projectiontest.Event) {
		for _, e := range append([]event.Event[message.State]{message.Queued{Content: message.Content{Type: "template"}, Channel: 3}}, all...) {
			happened = append(happened, projectiontest.Happened(message.Kind, id, e, meta))
		}
		return happened
	}
	frozen := func(run int, first int64, contacts ...int64) projectiontest.Event {
		return projectiontest.Happened(campaign.Blocks, campaign.BlockName("7", run, 0),
			campaign.Frozen{Campaign: 7, Run: run, Channel: 3, First: first, Contacts: contacts, Last: 40, End: true, At: at, Delays: []int{0}},
			meta)
	}
	refused := message.Failed{Reason: network.Recipient, Code: 131026}
	happened := []projectiontest.Event{
		of(campaign.Created{Plan: campaign.Plan{Name: "x", Type: "broadcast", Template: 1, Channel: 3, Audience: "all"}}),
		of(campaign.Started{Run: 1, At: at}), frozen(1, 1, 10),
	}
	happened = append(happened, to("1", refused)...)
	happened = append(happened, of(campaign.Finished{Run: 1}), of(campaign.Started{Run: 2, At: at}), frozen(2, 11, 10, 20, 30, 40))
	happened = append(happened, to("11", refused)...)
	happened = append(happened, to("12", message.Failed{Reason: network.Lost})...)
	happened = append(happened, to("13", message.Accepted{ProviderID: "w"}, message.Reported{Status: "failed"})...)
	happened = append(happened, to("14", message.Failed{Reason: network.Throttled})...)
	happened = append(happened, of(campaign.Paused{}), of(campaign.Resumed{}), of(campaign.Paused{}), of(campaign.Resumed{Insisted: true}))
	tables := projectiontest.Run(t, messagingproj.Campaigns, happened...)
	require.Equal(t, []string{"(1,refused)", "(11,held)", "(12,failed)", "(13,failed)", "(14,held)"},
		tables.Rows(`select id, state from recipient order by id`))
	require.Equal(t, []string{"(7-1-0,1,1)", "(7-2-0,4,2)"}, tables.Rows(`select id, total, failed from block order by id`))
	require.Equal(t, []string{"(1,1,1)", "(11,14,2)"}, tables.Rows(`select first_id, last_id, run from frozen order by 1`))
}

// Open messages go to the contact that has absorbed their recipient. It gets no step of a run twice, and its answers count for both.
func TestRecipientsAreMerged(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: "campaign:7"}
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	queued := func(id string, who int64) projectiontest.Event {
		return projectiontest.Happened(message.Kind, id, message.Queued{Content: message.Content{Type: "template"}, Channel: 3, Contact: who},
			meta)
	}
	said := func(id, kind string, who int64) projectiontest.Event {
		return projectiontest.Happened(message.Kind, id,
			message.Received{Content: message.Content{Type: kind}, Channel: 3, Contact: who, ProviderID: id, SentAt: at}, meta)
	}
	happened := []projectiontest.Event{
		projectiontest.Happened(campaign.Kind, "7",
			campaign.Created{Plan: campaign.Plan{Name: "x", Type: "survey", Template: 1, Channel: 3, Audience: "all"}}, meta),
		projectiontest.Happened(campaign.Kind, "7", campaign.Started{Run: 1, At: at}, meta),
		projectiontest.Happened(campaign.Blocks, "7-1-0",
			campaign.Frozen{Campaign: 7, Run: 1, Channel: 3, First: 1, Contacts: []int64{10, 20}, Last: 20, At: at, Delays: []int{0, 24}}, meta),
		projectiontest.Happened(campaign.Blocks, "7-1-1",
			campaign.Frozen{Campaign: 7, Run: 1, Block: 1, Channel: 3, First: 5, Contacts: []int64{30}, Last: 30, End: true, At: at,
				Delays: []int{0, 24}}, meta),
		queued("1", 10), queued("2", 20), queued("5", 30),
		projectiontest.Happened(contact.Kind, "10", contact.Absorbed{Contact: 30}, meta),
		projectiontest.Happened(contact.Kind, "15", contact.Absorbed{Contact: 20}, meta),
		said("90", "reaction", 15), said("91", "text", 15),
	}
	tables := projectiontest.Run(t, messagingproj.Campaigns, happened...)
	require.Equal(t, []string{
		"(1,10,0,calling,)", "(2,15,0,calling,91)", "(3,10,1,open,)", "(4,15,1,open,)", "(5,10,0,calling,)", "(6,10,1,skipped,)",
	}, tables.Rows(`select id, contact_id, step, state, response_id from recipient order by id`))
	require.Equal(t, []string{"(7-1-0,4,0,1)", "(7-1-1,1,1,0)"}, tables.Rows(`select id, total, skipped, responded from block order by id`))
}
