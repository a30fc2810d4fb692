package contact_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

func TestConsentIsGivenBackByWhatTookIt(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contact.Kind, contact.Added{Name: contact.Subjects.Personal("9", "Asha"), Source: "chat"},
		contact.Edited{OptIn: patch.Set(true)})
	byWord := contact.ConsentChanged{By: contact.ByWord}
	given.Case("a word").When(contact.ChangeConsent{By: contact.ByWord}).Then(byWord)
	taken := given.And(byWord)
	taken.Case("again").When(contact.ChangeConsent{By: contact.ByNetwork}).ThenNothing()
	taken.Case("the network does not give back what a word took").When(contact.ChangeConsent{OptIn: true, By: contact.ByNetwork}).ThenNothing()
	back := contact.ConsentChanged{OptIn: true, By: contact.ByWord}
	taken.Case("a word does").When(contact.ChangeConsent{OptIn: true, By: contact.ByWord}).Then(back)
	taken.And(contact.Edited{OptIn: patch.Set(true)}, contact.Edited{OptIn: patch.Set(false)}).Case("nor what people of the workspace took").
		When(contact.ChangeConsent{OptIn: true, By: contact.ByWord}).ThenNothing()
	eventtest.Given(t, contact.Kind).Case("nobody").When(contact.ChangeConsent{}).ThenNothing()
}

func TestTheNewestWordCountsInWhateverOrderTheyCome(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	later := at.Add(10 * time.Minute)
	word := func(optIn bool, at time.Time) contact.ChangeConsent {
		return contact.ChangeConsent{OptIn: optIn, By: contact.ByWord, Moment: network.Moment{At: at}}
	}
	given := eventtest.Given(t, contact.Kind, contact.Added{Source: "chat"}, contact.Edited{OptIn: patch.Set(true)})
	given.Case("a word").When(word(false, at)).Then(contact.ConsentChanged{By: contact.ByWord, Moment: network.Moment{At: at}})
	taken := given.And(contact.ConsentChanged{By: contact.ByWord, Moment: network.Moment{At: at}})
	taken.Case("the same again").When(word(false, at)).ThenNothing()
	taken.Case("a later one").When(word(false, later)).Then(contact.ConsentChanged{By: contact.ByWord, Moment: network.Moment{At: later}})
	taken.Case("the consent comes back").When(word(true, later)).Then(contact.ConsentChanged{OptIn: true, By: contact.ByWord,
		Moment: network.Moment{At: later}})
	taken.And(contact.ConsentChanged{By: contact.ByWord,
		Moment: network.Moment{At: later}}).Case("but not by a word from before").When(word(true, at.Add(time.Minute))).ThenNothing()
	second := func(optIn bool, arrived time.Time) contact.ChangeConsent {
		return contact.ChangeConsent{OptIn: optIn, By: contact.ByWord, Moment: network.Moment{At: at, ArrivedAt: arrived}}
	}
	inOne := given.And(contact.ConsentChanged(second(false, later)))
	inOne.Case("a word of the same second that arrived before").When(second(true, at)).ThenNothing()
	inOne.Case("and after").When(second(true, later.Add(1))).Then(contact.ConsentChanged(second(true, later.Add(1))))
	given.And(contact.Edited{OptIn: patch.Set(false)}).Case("what people took is not the contact's").When(word(false, at)).ThenNothing()
}

func TestANetworkKnowsAContactByIds(t *testing.T) {
	t.Parallel()
	sender := func(channel int64, key, id string) contact.Sender {
		return contact.Sender{Channel: channel, Key: key, ID: contact.Subjects.Personal("9", id)}
	}
	given := eventtest.Given(t, contact.Kind, contact.Added{Source: "social"}, contact.SenderAdded(sender(3, "k1", "IN.1")))
	given.Case("it is known").When(contact.Identify{Sender: contact.Sender{Channel: 3, Key: "k1", InClear: "IN.1"},
		Contact: "9"}).ThenNothing()
	given.Case("another one").When(contact.Identify{Sender: contact.Sender{Channel: 3, Key: "k2", InClear: "IN.2"},
		Contact: "9"}).Then(contact.SenderAdded(sender(3, "k2", "IN.2")))
	s := given.And(contact.SenderAdded(sender(3, "k2", "IN.2")), contact.SenderAdded(sender(4, "k3", "77"))).State()
	require.Equal(t, s.Senders[1].ID, s.SenderAt(3))
	require.False(t, s.SenderAt(3).IsZero())
	require.True(t, s.SenderAt(5).IsZero())
	require.Equal(t, []string{"k1", ""}, []string{s.SenderKey("k1"), s.SenderKey("k9")})
}

func TestWordsAreTheWholeText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"STOP": {false, true}, " ｓｔｏｐ!! ": {false, true}, "Stop  All.": {false, true}, "unsub\u200bscribe": {false, true}, "बन्द": {false, true},
		"बंद करो।": {false, true},
		"बंद करा":  {false, true}, "बंद करा.": {false, true}, "कृपया दुकान बंद करा म्हणू नका": {},
		"બંધ કરો": {false, true}, "रोको": {}, "રોકો": {false, true}, "Start": {true, true}, "चालू": {true, true}, "stop it": {}, "": {},
		"!": {}, "non-stop": {}, "band karo": {false, true},
		"Opt-out": {false, true}, "optout": {false, true}, "OPT_OUT!": {false, true}, "opt\u2011out": {false, true},
		"opt\u200dout": {false, true}, "opt/out": {false, true},
		"Stop-All": {false, true}, "stopall": {false, true}, "«*stop*—*all*»": {false, true}, "S.T.O.P": {false, true}, "s-t-o-p": {false, true},
		"un-subscribe":       {false, true},
		"STOP\ufe0f 🛑\ufe0f": {false, true}, "𝐒𝐓𝐎𝐏": {false, true}, "Ⓢⓣⓞⓟ": {false, true}, "bandkaro": {false, true}, "Band-Karo": {false, true},
		"stop_all_now": {},
		"\u202astop\u202c" + strings.Repeat("\u200b", 100): {false, true}, "stop" + strings.Repeat("!", 2000): {},
		"बंद-करो": {false, true}, "बन्द-करो": {false, true}, "बँद करो": {false, true}, "बंदकरो": {false, true}, "बन्\u200dद करा": {false, true},
		"ब\u093cंद": {false, true},
		"बंध":       {}, "चालु": {true, true}, "चा-लू": {true, true}, "બન્ધ": {false, true}, "બંધ-કરો": {false, true}, "બઁધ કરો": {false, true},
		"બંધકરો":         {false, true},
		"બન્ધ\u2011કરો।": {false, true}, "રો-કો": {false, true}, "ચાલૂ": {true, true}, "ચાલુ!": {true, true}, "dukaan band karo": {},
		"opt": {}, "op tout": {}, "st op": {},
	} {
		optIn, is := contact.ConsentKeyword(text)
		require.Equal(t, want, [2]bool{optIn, is}, text)
	}
}
