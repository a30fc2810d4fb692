package party_test

import (
	"testing"

	"bahi/domain/event"
	"bahi/domain/ledger/party"
	"bahi/internal/test/eventtest"
)

func TestContact(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, party.Kind)
	given.Case("an account gets a contact").When(party.SetContact{Contact: new(int64(7))}).Then(party.ContactSet{Contact: new(int64(7))})
	given.Case("none before and none after").When(party.SetContact{}).ThenNothing()
	set := given.And(party.ContactSet{Contact: new(int64(7))})
	set.Case("the same contact").When(party.SetContact{Contact: new(int64(7))}).ThenNothing()
	set.Case("it is removed").When(party.SetContact{}).Then(party.ContactSet{})
}

func TestTheFirstMessageCountsUnlessAPersonDecides(t *testing.T) {
	t.Parallel()
	by := func(confirmation, message int64) party.Answer {
		return party.Answer{Confirmation: confirmation, Message: message, Position: 9}
	}
	reply := func(outcome string, a party.Answer, note string) party.Reply {
		return party.Reply{Said: party.Said{Outcome: outcome, Answer: a}, Contact: 7, Text: note}
	}
	given := eventtest.Given(t, party.Kind)
	given.Case("a message agrees").When(reply("confirmed", by(1, 5), "")).Then(party.Confirmed{Answer: by(1, 5)})
	given.Case("a message differs").When(reply("disputed", by(1, 5), "")).Then(party.Disputed{Answer: by(1, 5)})
	confirmed := given.And(party.Confirmed{Answer: by(1, 5)})
	confirmed.Case("a second message changes nothing").When(reply("disputed", by(1, 6), "")).ThenNothing()
	confirmed.Case("the message was edited").When(reply("disputed", by(1, 5), "")).Then(party.Disputed{Answer: by(1, 5)})
	confirmed.Case("the message says the same").When(reply("confirmed", by(1, 5), "")).ThenNothing()
	confirmed.Case("another confirmation has its own answer").When(reply("disputed", by(2, 6), "")).Then(party.Disputed{Answer: by(2, 6)})
	noted := by(1, 0)
	noted.Note = event.NewPersonal("messagingcontact-7", "called, disagrees")
	confirmed.Case("a person decides").When(reply("disputed", by(1, 0), "called, disagrees")).Then(party.Disputed{Answer: noted})
	decided := given.And(party.Disputed{Answer: by(1, 0)})
	decided.Case("the same decision").When(reply("disputed", by(1, 0), "")).ThenNothing()
	decided.Case("a person changes a decision").When(reply("confirmed", by(1, 0), "")).Then(party.Confirmed{Answer: by(1, 0)})
	decided.Case("no message changes a decision").When(reply("confirmed", by(1, 8), "")).ThenNothing()
}
