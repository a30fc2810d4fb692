package orderdraft_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/ordertext"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

// own is a value of the sender a1.
func own(text string) event.Personal { return orderdraft.Senders.Personal("a1", text) }

func TestReceive(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, orderdraft.Kind)
	none.Case("a message becomes a draft with what was read").
		When(orderdraft.Receive{
			Sender: "a1", Phone: "919812345678", Raw: "slip 7\npayal 250 gm", First: 5, Reply: true, Parser: orderdraft.Rules, Clients: clients,
			Read: ordertext.Order{Unused: []string{"urgent!"},
				Entries: []ordertext.Entry{{Item: "payal", Weight: 250_000, Client: "ramesh jewelers", Slip: "7", Confidence: 80}}},
		}).
		Then(orderdraft.Received{
			Sender: "a1", Phone: orderdraft.Senders.Personal("a1", "919812345678"), Raw: orderdraft.Senders.Personal("a1", "slip 7\npayal 250 gm"),
			Reply:  true,
			Unused: own(`["\"urgent!\" was not used"]`),
			Entries: []orderdraft.Entry{{
				ID: 5, Item: own("payal"), Weight: new(unit.Grams(250_000)), Client: own("ramesh jewelers"), Slip: new("7"), Parser: "rules",
				Confidence: 80_000,
				Proposals:  []orderdraft.Proposal{{ClientID: 3, Name: "Ramesh Jewellers", Confidence: 83_300}},
			}},
		})
	none.Case("a message without an order becomes a draft without entries").
		When(orderdraft.Receive{Sender: "a1", Raw: "hello"}).
		Then(orderdraft.Received{Sender: "a1", Raw: orderdraft.Senders.Personal("a1", "hello"), Entries: []orderdraft.Entry{}})
}

var clients = []orderdraft.Client{{ID: 2, Name: "Suresh"}, {ID: 3, Name: "Ramesh Jewellers"}, {ID: 4, Name: "पायल ज्वेलर्स"}}

func TestClientsAreProposedByName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]orderdraft.Proposal{
		"RAMESH  jewellers": {{ClientID: 3, Name: "Ramesh Jewellers", Confidence: unit.Share(unit.Whole)}},
		"पायल ज्वैलर्स":     {{ClientID: 4, Name: "पायल ज्वेलर्स", Confidence: 64_700}},
		"Mahesh":            {},
		"":                  {},
		"...":               {},
	} {
		require.Equal(t, want, orderdraft.Propose(name, clients), name)
	}
	many := make([]orderdraft.Client, 10)
	for i := range many {
		many[i] = orderdraft.Client{ID: int64(10 - i), Name: "Asha"}
	}
	require.Len(t, orderdraft.Propose("asha", many), 3)
	require.Equal(t, int64(1), orderdraft.Propose("asha", many)[0].ClientID)
}

func TestReplyAndDelete(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, orderdraft.Kind)
	none.Case("no draft, no reply").When(orderdraft.NoteReply{Status: "sent"}).ThenFails(orderdraft.ErrNotFound)
	none.Case("no draft, nothing to delete").When(orderdraft.Delete{}).ThenFails(orderdraft.ErrNotFound)

	draft := eventtest.Given(t, orderdraft.Kind, orderdraft.Received{Sender: "a1", Reply: true})
	draft.Case("the outcome of the reply is noted").
		When(orderdraft.NoteReply{Status: "sent", Text: "ok", ID: "ee4a"}).
		Then(orderdraft.Replied{Status: "sent", Text: "ok", ID: "ee4a"})
	draft.And(orderdraft.Replied{Status: "sent"}).Case("once").When(orderdraft.NoteReply{Status: "failed"}).ThenNothing()
	draft.Case("a draft is deleted").When(orderdraft.Delete{}).Then(orderdraft.Deleted{})
	draft.And(orderdraft.Deleted{}).Case("once").When(orderdraft.Delete{}).ThenFails(orderdraft.ErrNotFound)
}

func TestUserIsMetOnceWithEachPhone(t *testing.T) {
	t.Parallel()
	met := orderdraft.SenderRegistered{Sender: "a1", Phone: orderdraft.Senders.Personal("a1", "919812345678")}
	user := eventtest.Given(t, orderdraft.SenderKind)
	user.Case("the phone is noted").When(orderdraft.Meet{Sender: "a1", Phone: "919812345678"}).Then(met)
	user.And(met).Case("once").When(orderdraft.Meet{Sender: "a1", Phone: "919812345678"}).ThenNothing()
	user.And(met).Case("another phone too").When(orderdraft.Meet{Sender: "b2", Phone: "917"}).
		Then(orderdraft.SenderRegistered{Sender: "b2", Phone: orderdraft.Senders.Personal("b2", "917")})
	user.And(orderdraft.SenderErased{}).Case("who was erased stays so").When(orderdraft.Meet{Sender: "a1"}).ThenNothing()
}

func TestSenderIsErasedOnce(t *testing.T) {
	t.Parallel()
	known := eventtest.Given(t, orderdraft.SenderKind)
	known.Case("a sender is erased").When(orderdraft.EraseSender{}).Then(orderdraft.SenderErased{})
	known.And(orderdraft.SenderErased{}).Case("once").When(orderdraft.EraseSender{}).ThenNothing()
}

func TestConfirmationCountsAndSums(t *testing.T) {
	t.Parallel()
	two := []orderdraft.Entry{{Item: own("payal"), Weight: new(unit.Grams(250_500))}, {Item: own("ring"), Weight: new(unit.Grams(20_000))}}
	for text, entries := range map[string][]orderdraft.Entry{
		"Order draft 12 received: 2 items, 270.5 g. Our staff will confirm it.": two,
		"Order draft 12 received: 1 item. Our staff will confirm it.":           {{Item: own("ring")}},
		"Order draft 12 received. Our staff will confirm it.":                   nil,
	} {
		require.Equal(t, text, orderdraft.Confirmation("12", entries))
	}
}
