package message_test

import (
	"testing"

	"bahi/domain/messaging/message"
	"bahi/internal/test/eventtest"
)

func TestTheSandboxPlaysWhatHasNotBecomeOfAMessage(t *testing.T) {
	t.Parallel()
	sent := eventtest.Given(t, message.Kind, queued, message.Accepted{ProviderID: "sandbox.1"})
	sent.Case("it is delivered, and read").When(message.SimulateReceipts{}).Then(message.Reported{Status: message.Delivered},
		message.Reported{Status: message.Read})
	delivered := sent.And(message.Reported{Status: message.Delivered})
	delivered.Case("one that was delivered is read").When(message.SimulateReceipts{}).Then(message.Reported{Status: message.Read})
	delivered.And(message.Reported{Status: message.Read}).Case("one that was read stays so").When(message.SimulateReceipts{}).ThenNothing()
}
