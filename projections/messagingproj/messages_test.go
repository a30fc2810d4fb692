package messagingproj_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/internal/test/projectiontest"
	"bahi/projections/messagingproj"
)

func TestMessagesAreShownUntilTheirContactIsDeleted(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: "user:u"}
	happened := func(id string, e event.Event[message.State]) projectiontest.Event {
		return projectiontest.Happened(message.Kind, id, e, meta)
	}
	says := func(who, text string) message.Content {
		return message.Content{Type: "text", Text: contact.Subjects.Personal(who, text)}
	}
	out := func(id, who string, contactID int64) projectiontest.Event {
		return happened(id, message.Queued{Content: says(who, "Hello "+id), Channel: 3, Contact: contactID,
			To: contact.Subjects.Personal(who, "91")})
	}
	words := contact.Subjects.Personal("9", "no")
	tables := projectiontest.Run(t, messagingproj.Messages,
		out("1", "9", 9), out("2", "9", 9), out("3", "9", 9), out("4", "9", 9), out("5", "8", 8),
		happened("6", message.Received{Content: says("9", "Hi"), Channel: 3, Contact: 9, ProviderID: "w",
			SentAt: time.Unix(1740900000, 0).UTC()}),
		happened("1", message.Accepted{ProviderID: "w1"}),
		happened("1", message.Reported{Status: "read"}),
		happened("2", message.Reported{Status: "delivered"}),
		happened("2", message.Accepted{ProviderID: "w2"}),
		happened("3", message.Failed{Reason: network.Unreached, Title: words}),
		happened("3", message.Requeued{}),
		happened("3", message.Failed{Reason: network.Unknown}),
		happened("4", message.Reported{Status: "failed", Code: 131026}),
		happened("4", message.Accepted{ProviderID: "w4"}),
		projectiontest.Happened(contact.Kind, "8", contact.Deleted{}, meta),
		happened("7", message.Received{Content: says("12", "I am 9, too"), Channel: 3, Contact: 12, ProviderID: "w12",
			SentAt: time.Unix(1740900001, 0).UTC()}),
		projectiontest.Happened(contact.Kind, "9", contact.Absorbed{Contact: 12}, meta),
		happened("10", message.Received{Content: says("9", "Not this"), Channel: 3, Contact: 9, ProviderID: "w10",
			SentAt: time.Unix(1740900002, 0).UTC()}),
		happened("10", message.Revoked{}),
		happened("10", message.FileStored{Key: "k", ContentType: "image/png", Size: 1}),
		happened("11", message.Received{Content: message.Content{Type: "unsupported"}, Channel: 3, Contact: 9, ProviderID: "w11",
			SentAt: time.Unix(1740900003, 0).UTC(), Code: 131051, Title: words}),
	)
	require.Equal(t, []string{
		`(1,9,f,"Hello 1",read,,,)`, `(2,9,f,"Hello 2",delivered,,,)`, `(3,9,f,"Hello 3",queued,unknown,,)`,
		`(4,9,f,"Hello 4",failed,recipient,131026,)`, `(6,9,t,Hi,received,,,)`,
		`(7,9,t,"I am 9, too",received,,,)`, `(10,9,t,,received,,,)`, `(11,9,t,,received,content,131051,no)`,
	}, tables.Rows(`select id, contact_id, inbound, text, status, reason, code, title from message order by id`))
	require.Equal(t, []string{`(10,t,t)`}, tables.Rows(`select id, file is null, deleted_at is not null from message
		where deleted_at is not null`))
	require.Equal(t, []string{`(9,4,t)`}, tables.Rows(`select contact_id, unread, last_at > '2025-01-01' from conversation order by 1`),
		"of both merged contacts")
}

// A campaign retries a message that the network refuses temporarily. A user's message is not sent again automatically.
func TestAMessageOfACampaignWaits(t *testing.T) {
	t.Parallel()
	happened := func(id, actor string, all ...event.Event[message.State]) (events []projectiontest.Event) {
		meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: actor}
		for _, e := range append([]event.Event[message.State]{message.Queued{Content: message.Content{Type: "template"}, Channel: 3,
			Contact: 9}}, all...) {
			events = append(events, projectiontest.Happened(message.Kind, id, e, meta))
		}
		return events
	}
	off := message.Failed{Reason: network.Throttled}
	tables := projectiontest.Run(t, messagingproj.Messages, slices.Concat(
		happened("1", "user:u", off), happened("2", "campaign:7", off),
		happened("3", "campaign:7", message.Failed{Reason: network.CampaignStopped}, message.Skipped{Contact: 9}),
		happened("4", "campaign:7", message.Failed{Reason: network.Recipient}),
		happened("5", "campaign:7", off, message.Requeued{}, message.Accepted{ProviderID: "w"}),
	)...)
	require.Equal(t, []string{"(1,failed,throttled)", "(2,queued,throttled)", "(3,failed,passed_over)", "(4,failed,recipient)", "(5,sent,)"},
		tables.Rows(`select id, status, reason from message order by id`))
}

func TestMessagesOfOneBatchCountOnceAndAgainstWhatPeopleHaveRead(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: "user:u"}
	happened := func(id string, e event.Event[message.State]) projectiontest.Event {
		return projectiontest.Happened(message.Kind, id, e, meta)
	}
	came := func(id, kind string, contactID, second int64) projectiontest.Event {
		return happened(id, message.Received{
			Content: message.Content{Type: kind, Text: contact.Subjects.Personal("9", "Hi")}, Channel: 3, Contact: contactID, ProviderID: "w" + id,
			SentAt: time.Unix(second, 0).UTC(),
		})
	}
	words := contact.Subjects.Personal("9", "no")
	tables := projectiontest.Run(t, messagingproj.Messages,
		came("1", "text", 9, 100), came("2", "text", 9, 300), came("3", "reaction", 9, 400), came("4", "text", 8, 500),
		happened("2", message.MarkedRead{Contact: 9, At: time.Unix(300, 0).UTC()}),
		came("5", "text", 9, 200), came("6", "text", 9, 350), // a late one and a new one
		happened("7", message.Queued{Content: message.Content{Type: "text"}, Channel: 3, Contact: 9}),
		happened("7", message.Failed{Reason: network.Unreached, Code: 5, Title: words, Details: words}),
		happened("7", message.Accepted{ProviderID: "w7"}), // another call's response: it applies only to a queued message
		happened("8", message.Queued{Content: message.Content{Type: "text"}, Channel: 3, Contact: 9}),
		happened("8", message.Failed{Reason: network.Unreached, Code: 5, Title: words, Details: words}),
		happened("8", message.Requeued{}),
		happened("8", message.Accepted{ProviderID: "w8"}),
		happened("8", message.Identified{NetworkID: "n8"}),
	)
	require.Equal(t, []string{`(8,1,500)`, `(9,1,)`}, tables.Rows(`
		select contact_id, unread, case when contact_id = 8 then extract(epoch from last_at)::int end from conversation order by 1`))
	require.Equal(t, []string{`(7,failed,unreached,5,no,no,w7,)`, `(8,sent,,,,,w8,n8)`}, tables.Rows(`
		select id, status, reason, code, title, details, provider_id, network_id from message where not inbound order by id`))
}

func TestRepliesThatReachPeopleAreCountedOnceAndStayCounted(t *testing.T) {
	t.Parallel()
	mine, theirs := uuid.MustParse("11111111-1111-4111-8111-111111111111"), uuid.MustParse("22222222-2222-4222-8222-222222222222")
	happened := func(id string, e event.Event[message.State]) projectiontest.Event {
		return projectiontest.Happened(message.Kind, id, e, event.Meta{Workspace: mine})
	}
	queued := func(id, kind string, channel, contactID int64) projectiontest.Event {
		return happened(id, message.Queued{Content: message.Content{Type: kind}, Channel: channel, Contact: contactID})
	}
	reported := func(id, status string) projectiontest.Event { return happened(id, message.Reported{Status: status}) }
	tables := projectiontest.Run(t, messagingproj.Messages,
		queued("1", "text", 3, 9), queued("2", "image", 3, 8), queued("3", "text", 4, 9), queued("4", "template", 3, 9),
		queued("5", "text", 3, 9), queued("6", "text", 3, 9),
		happened("1", message.Accepted{ProviderID: "w1"}),
		reported("1", "delivered"), reported("4", "delivered"), reported("3", "read"),
		projectiontest.Happened(message.Kind, "7", message.Queued{Content: message.Content{Type: "text"}, Channel: 5, Contact: 7},
			event.Meta{Workspace: theirs}),
		projectiontest.Happened(message.Kind, "7", message.Reported{Status: "delivered"}, event.Meta{Workspace: theirs}),
		reported("1", "read"), reported("2", "delivered"), reported("5", "sent"), reported("6", "failed"), reported("6", "delivered"),
		projectiontest.Happened(contact.Kind, "8", contact.Deleted{}, event.Meta{Workspace: mine}),
		queued("8", "text", 3, 9), reported("8", "delivered"), reported("8", "read"),
		reported("4", "read"), reported("2", "read"),
	)
	require.Equal(t, []string{`(11111111-1111-4111-8111-111111111111,3,4)`, `(11111111-1111-4111-8111-111111111111,4,1)`,
		`(22222222-2222-4222-8222-222222222222,5,1)`},
		tables.Rows(`select workspace_id, channel_id, sum(count) from reply group by 1, 2 order by 2`))
	require.Empty(t, tables.Rows(
		`select quarter from reply where date_bin('15 minutes', quarter, timestamptz '2000-01-01 00:00Z') <> quarter`))
}
