package message_test

import (
	"testing"

	"bahi/domain/messaging/message"
	"bahi/domain/messaging/network"
	"bahi/internal/test/eventtest"
)

func TestACampaignsMessage(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, message.Kind, queued)
	again := message.Resend{Contact: 9}
	given.Case("of which nothing was heard is sent again").When(again).Then(message.Requeued{})
	doubted := given.And(message.Requeued{})
	lost := message.Failed{Reason: network.Lost}
	doubted.Case("and then is lost").When(again).Then(lost)
	given.Case("to who does not want it is lost at once").When(message.Resend{Unwanted: true}).Then(lost)
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
	refused.Case("unless a person wants it").When(insisted).Then(message.Requeued{})
	given.And(message.Accepted{ProviderID: "w"},
		message.Reported{Status: "failed"}).Case("which has an id of the network's is not").When(insisted).ThenNothing()
	doubted.And(lost).Case("nor is one that may have been sent").When(insisted).ThenNothing()
	given.And(message.Accepted{ProviderID: "w"}).Case("nor is one that was sent").When(again).ThenNothing()
	eventtest.Given(t, message.Kind).Case("may be passed over at once").When(message.Skip{Contact: 9}).Then(message.Skipped{Contact: 9})
}
