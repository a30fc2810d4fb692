package message_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/internal/test/eventtest"
)

var (
	hello  = message.Draft{Channel: 3, To: "919812345678", Text: "Hello"}
	queued = message.Queued{Content: message.Content{Type: "text", Text: hers("Hello")}, Channel: 3, Contact: 9, To: hers("919812345678")}
)

func hers(text string) event.Personal { return event.NewPersonal("messagingcontact-9", text) }

func TestSend(t *testing.T) {
	t.Parallel()
	eventtest.Given(t, message.Kind).Case("it is written down first").When(message.Queue{Draft: hello, Contact: 9}).Then(queued)
	given := eventtest.Given(t, message.Kind, queued)
	given.Case("the network takes it").When(message.RecordSendResult{Contact: 9, ProviderID: "w1"}).Then(message.Accepted{ProviderID: "w1"})
	away := message.Failed{Reason: network.Unreached}
	given.Case("nobody was there").When(message.RecordSendResult{Contact: 9, Failure: &network.Failure{Reason: network.Unreached}}).Then(away)
	given.Case("the network's words are the person's").
		When(message.RecordSendResult{Contact: 9,
			Failure: &network.Failure{Reason: network.Recipient, Code: 131026, Title: "no", Details: "919812345678"}}).
		Then(message.Failed{Reason: network.Recipient, Code: 131026, Title: hers("no"), Details: hers("919812345678")})
	given.And(away).Case("what was not sent is sent again").When(message.Requeue{}).Then(message.Requeued{})
	unknown := (&network.Failure{Reason: network.Unknown}).Fault()
	lost := given.And(message.Failed{Reason: network.Unknown})
	lost.Case("what may have been sent is not").When(message.Requeue{}).ThenFails(unknown)
	require.Equal(t, message.Waiting, lost.State().Status)
	given.Case("nor what is under way").When(message.Requeue{}).ThenFails(unknown)
	given.And(message.Failed{Reason: network.Recipient}).Case("nor what was refused").When(message.Requeue{}).ThenFails(unknown)
	lost.Case("a receipt in capitals settles it").When(message.Receipt{Status: " READ"}).Then(message.Reported{Status: "read"})
	lost.Case("a receipt settles it").When(message.Receipt{Status: "sent"}).Then(message.Reported{Status: "sent"})
	given.And(message.Reported{Status: "read"}).Case("a failure after a receipt is none").When(
		message.RecordSendResult{Failure: &network.Failure{Reason: network.Unknown}}).ThenNothing()
}

// Receipts arrive late, twice and in any order. The message has the furthest status.
func TestReceiptsInAnyOrderLeadToTheSameStatus(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		statuses := []string{"queued", "sent", "failed", "delivered", "read", "deleted", ""}
		s, furthest := queued.Evolve(message.State{}), 0
		for range rapid.IntRange(0, 8).Draw(t, "receipts") {
			at := rapid.IntRange(0, len(statuses)-1).Draw(t, "status")
			if at < 5 {
				furthest = max(furthest, at)
			}
			events, err := message.Receipt{Status: statuses[at]}.Decide(s)
			require.NoError(t, err)
			for _, e := range events {
				s = e.Evolve(s)
			}
		}
		require.Equal(t, statuses[furthest], s.Status)
		require.Equal(t, furthest == 1 || furthest > 2, s.Failure() == nil)
		after := message.Accepted{ProviderID: "w"}.Evolve(s)
		require.Equal(t, statuses[max(furthest, 1)], after.Status, "the network's id comes after a receipt")
		require.Equal(t, furthest == 2, after.Failure() != nil)
	})
}

func TestReceive(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	given := eventtest.Given(t, message.Kind)
	received := message.Received{Content: queued.Content, Channel: 3, Contact: 9, ProviderID: "w", SentAt: now}
	given.Case("the network's time is never after ours").When(message.Receive{Draft: hello, Contact: 9, ProviderID: "w",
		SentAt: now.Add(time.Hour), Now: now}).Then(received)
	unsupported := received
	unsupported.Content, unsupported.Code, unsupported.Title, unsupported.Details = message.Content{Type: "unsupported"}, 131051,
		hers("Unknown"), hers("not supported")
	given.Case("one that the network does not pass on says why").
		When(message.Receive{Draft: message.Draft{Channel: 3}, Contact: 9, Type: "unsupported", ProviderID: "w", SentAt: now, Now: now,
			Code: 131051, Title: "Unknown", Details: "not supported"}).Then(unsupported)
	came := given.And(received)
	came.Case("nothing becomes of it").When(message.Receipt{Status: "read"}).ThenNothing()
	came.Case("people have read it").When(message.MarkRead{Contact: 9}).Then(message.MarkedRead{Contact: 9, At: now})
	came.Case("it is changed").When(message.Edit{Text: "Hallo"}).Then(message.Edited{Text: hers("Hallo")})
	edited := network.Moment{At: now, ArrivedAt: now}
	came.And(message.Edited{Text: hers("Hallo"), Moment: edited}).Case("an older change that comes later changes nothing").
		When(message.Edit{Text: "Hullo", Moment: network.Moment{At: now.Add(-time.Second), ArrivedAt: now.Add(time.Second)}}).ThenNothing()
	came.Case("it is taken back").When(message.Revoke{}).Then(message.Revoked{})
	gone := came.And(message.Revoked{})
	gone.Case("once").When(message.Revoke{}).ThenNothing()
	gone.Case("and says nothing any more").When(message.Edit{Text: "Hallo"}).ThenNothing()
	require.True(t, gone.State().Said.IsZero())
	eventtest.Given(t, message.Kind, queued).Case("a contact takes back nothing of ours").When(message.Revoke{}).ThenNothing()
}

func TestBodiesInOrder(t *testing.T) {
	t.Parallel()
	_, err := message.Text{To: "919812345678", Message: " \n"}.Draft()
	require.Equal(t, fault.Fields(fault.Field{Field: "message", Message: "must not be empty"}), err)
	for _, address := range []string{"", "a.jpg", "ftp://a.example/a.jpg", "https://u:p@a.example/a.jpg", "https:///a.jpg",
		"https://a.example/" + strings.Repeat("a", 2031)} {
		_, err := message.Image{To: "919812345678", ImageURL: address, Caption: strings.Repeat("é", 1025)}.Draft()
		require.Equal(t, fault.Fields(fault.Field{Field: "imageUrl", Message: "expected an address like https://cdn.example.org/a.jpg"},
			fault.Field{Field: "caption", Message: "at most 1024 characters"}), err, address)
	}
	longest := "https://a.example/" + strings.Repeat("a", 2030)
	d, err := message.Image{To: "919812345678", ImageURL: " " + longest + "\n", ChannelID: 3}.Draft()
	require.NoError(t, err)
	require.Equal(t, message.Draft{Channel: 3, To: "919812345678", Image: longest}, d)
}

func TestTheSandboxPlaysWhatHasNotBecomeOfAMessage(t *testing.T) {
	t.Parallel()
	sent := eventtest.Given(t, message.Kind, queued, message.Accepted{ProviderID: "sandbox.1"})
	sent.Case("it is delivered, and read").When(message.SimulateReceipts{}).Then(message.Reported{Status: message.Delivered},
		message.Reported{Status: message.Read})
	delivered := sent.And(message.Reported{Status: message.Delivered})
	delivered.Case("one that was delivered is read").When(message.SimulateReceipts{}).Then(message.Reported{Status: message.Read})
	delivered.And(message.Reported{Status: message.Read}).Case("one that was read stays so").When(message.SimulateReceipts{}).ThenNothing()
}

func TestACampaignsMessage(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, message.Kind, queued)
	again := message.Resend{Contact: 9}
	given.Case("of which nothing was heard is sent again").When(again).Then(message.Requeued{})
	doubted := given.And(message.Requeued{})
	lost := message.Failed{Reason: network.Lost}
	doubted.Case("and then is lost").When(again).Then(lost)
	given.Case("to a contact without consent it is lost at once").When(message.Resend{Unwanted: true}).Then(lost)
	given.Case("to a network that repeats no id of ours is lost at once, too").When(message.Resend{Contact: 9, Mute: true}).Then(lost)
	doubted.And(lost).Case("a receipt finds it, however late").When(message.Receipt{Status: "sent"}).Then(message.Reported{Status: "sent"})
	doubted.And(lost).Case("it is not sent a third time").When(again).ThenNothing()
	for _, reason := range []network.Reason{network.Throttled, network.Credentials, network.Restricted, network.CampaignStopped,
		network.Temporary, network.Unreached, network.Unconfigured} {
		held := given.And(message.Failed{Reason: reason})
		held.Case("held for " + string(reason) + " is sent when that is over").When(again).Then(message.Requeued{})
		held.Case("unless the contact has left, " + string(reason)).When(message.Resend{Contact: 9,
			Unwanted: true}).Then(message.Skipped{Contact: 9})
	}
	refused := given.And(message.Failed{Reason: network.Recipient})
	refused.Case("that cannot arrive is not sent again").When(again).ThenNothing()
	insisted := message.Resend{Contact: 9, Refused: true}
	refused.Case("unless a user sends it again").When(insisted).Then(message.Requeued{})
	given.And(message.Accepted{ProviderID: "w"},
		message.Reported{Status: "failed"}).Case("which has an id of the network's is not").When(insisted).ThenNothing()
	doubted.And(lost).Case("nor is one that may have been sent").When(insisted).ThenNothing()
	given.And(message.Accepted{ProviderID: "w"}).Case("nor is one that was sent").When(again).ThenNothing()
	eventtest.Given(t, message.Kind).Case("may be passed over at once").When(message.Skip{Contact: 9}).Then(message.Skipped{Contact: 9})
}

func TestAContactsMailsStayInAThreadUnderItsSubject(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, message.ThreadKind)
	none.Case("a network without threads").When(message.Join{Subject: "Sales"}).ThenNothing()
	none.Case("the first mail begins one").When(message.Join{Thread: "t1", Subject: "Sales"}).Then(message.Threaded{Thread: "t1",
		Subject: "Sales"})
	begun := none.And(message.Threaded{Thread: "t1", Subject: "Sales"})
	begun.Case("the next ones join it").When(message.Join{Thread: "t1", Subject: "Sales"}).ThenNothing()
	begun.Case("another subject begins another").When(message.Join{Thread: "t2", Subject: "Shop"}).Then(message.Threaded{Thread: "t2",
		Subject: "Shop"})
	s := message.Threaded{Thread: "t1", Subject: "Sales"}.Evolve(message.Thread{})
	require.Equal(t, []string{"t1", ""}, []string{s.Under("Sales"), s.Under("Shop")})
	require.Equal(t, "messagethread-3.9", message.ThreadKind.Stream(message.ThreadID(3, 9)))
}
