package contact_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/network"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
	"bahi/internal/test/worktest"
)

const id = "9"

func hers(text string) event.Personal { return contact.Subjects.Personal(id, text) }

func reach(phone, email patch.Field[string], key string) contact.Addresses {
	return contact.Addresses{Phone: phone, Email: email, PhoneKey: key}
}

var (
	absent = patch.Field[string]{}
	null   = patch.Clear[string]()
	added  = contact.Added{Name: hers("Asha"), Phone: hers("919812345678"), PhoneKey: "k1", Email: hers("asha@example.org"),
		Source: contact.Manual}
)

func TestAdd(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contact.Kind)
	given.Case("values are put in order").
		When(contact.Add{ID: id, Name: " Asha ",
			Addresses: reach(patch.Set("+91 98123-45678"), patch.Set(" Asha@Example.org"), "k1")}).Then(added)
	given.Case("a name is enough").When(contact.Add{ID: id, Name: "Asha", Source: "social", Addresses: reach(null, patch.Set(" "), "")}).
		Then(contact.Added{Name: hers("Asha"), Source: "social"})
	given.Case("a file has the evidence of consent").When(contact.Add{ID: id, Name: "Asha", Evidence: "Form 7"}).
		Then(contact.Added{Name: hers("Asha"), Source: contact.Manual},
			contact.Edited{OptIn: patch.Set(true), Evidence: hers("Form 7"), Imported: true})
	given.Case("an unreadable phone is kept as a text").
		When(contact.Add{ID: id, Name: "Asha", Addresses: reach(patch.Set("\u202aask at the shop "), absent, "")}).
		Then(contact.Added{Name: hers("Asha"), Source: contact.Manual, PhoneText: hers("ask at the shop")})
	given.Case("each fault is named").
		When(contact.Add{ID: id, Name: " ", Addresses: reach(patch.Set("12\x00"), patch.Set("asha"), "")}).
		ThenFails(fault.Fields(
			fault.Field{Field: "name", Message: "1 to 100 characters"},
			fault.Field{Field: "phone", Message: "control characters are not allowed"},
			fault.Field{Field: "email", Message: "expected an email address"},
		))
	s := given.And(added).State()
	require.Equal(t, []any{false, true, "open"}, []any{s.OptIn, s.ReplyBot, s.Status})
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contact.Kind, added)
	given.Case("nothing").When(contact.Edit{ID: id}).ThenNothing()
	given.Case("what it has already").When(contact.Edit{
		ID: id, OptIn: patch.Set(false), ReplyBot: patch.Set(true), Status: patch.Set("open"),
		Addresses: reach(patch.Set("9812345678"), absent, "k1"),
	}).ThenNothing()
	given.Case("consent, bots and status").When(contact.Edit{ID: id, OptIn: patch.Set(true), ReplyBot: patch.Set(false),
		Status: patch.Set("resolved")}).
		Then(contact.Edited{OptIn: patch.Set(true), ReplyBot: patch.Set(false), Status: patch.Set("resolved")})
	given.Case("another name and phone").When(contact.Edit{ID: id, Name: patch.Set("Usha"),
		Addresses: reach(patch.Set("447911123456"), absent, "k2")}).
		Then(contact.Edited{Name: patch.Set(hers("Usha")), Phone: patch.Set(hers("447911123456")), PhoneKey: "k2"})
	unread := contact.Edited{Phone: patch.Clear[event.Personal](), PhoneText: hers("ask at the shop")}
	given.Case("an unreadable phone is kept as a text, in place of the phone").
		When(contact.Edit{ID: id, Addresses: reach(patch.Set("ask at the shop"), absent, "")}).Then(unread)
	given.And(unread).Case("until a phone is known").When(contact.Edit{ID: id, Addresses: reach(patch.Set("9812345678"), absent, "k1")}).
		Then(contact.Edited{Phone: patch.Set(hers("919812345678")), PhoneKey: "k1"})
	given.And(unread).Case("or null takes it away").When(contact.Edit{ID: id, Addresses: reach(null, absent, "")}).
		Then(contact.Edited{Phone: patch.Clear[event.Personal]()})
	given.Case("a name is not taken away").When(contact.Edit{ID: id, Name: patch.Set(" ")}).
		ThenFails(fault.Fields(fault.Field{Field: "name", Message: "1 to 100 characters"}))

	unreached := contact.Edited{Phone: patch.Clear[event.Personal](), Email: patch.Clear[event.Personal]()}
	given.Case("null takes away").When(contact.Edit{ID: id, Addresses: reach(null, null, "")}).Then(unreached)
	given.And(unreached).Case("once").When(contact.Edit{ID: id, Addresses: reach(null, patch.Set(""), "")}).ThenNothing()
	s := given.And(unreached).State()
	require.True(t, s.Phone.IsZero() && s.Email.IsZero() && s.PhoneKey == "" && !s.Name.IsZero(), "what is not named stays")
}

func TestLists(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contact.Kind, added, contact.ListsChanged{Lists: []int64{2, 5}})
	eventtest.Given(t, contact.Kind).Case("a new contact may be in some").When(contact.Add{ID: id, Name: "Asha", ListIDs: []int64{5, 2, 5}}).
		Then(contact.Added{Name: hers("Asha"), Source: contact.Manual}, contact.ListsChanged{Lists: []int64{2, 5}})
	given.Case("the same ones").When(contact.Edit{ID: id, ListIDs: patch.Set([]int64{5, 2})}).ThenNothing()
	given.Case("others").When(contact.Edit{ID: id, OptIn: patch.Set(true), ListIDs: patch.Set([]int64{7})}).
		Then(contact.Edited{OptIn: patch.Set(true)}, contact.ListsChanged{Lists: []int64{7}})
	given.Case("none").When(contact.Edit{ID: id, ListIDs: patch.Clear[[]int64]()}).Then(contact.ListsChanged{})
	given.Case("one more").When(contact.Join{List: 3}).Then(contact.ListsChanged{Lists: []int64{2, 3, 5}})
	given.Case("one that it is in").When(contact.Join{List: 5}).ThenNothing()
	given.And(contact.Deleted{}).Case("a deleted contact is in none").When(contact.Join{List: 3}).ThenFails(contact.ErrNotFound)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	eventtest.Given(t, contact.Kind, added).Case("it ends").When(contact.Delete{}).Then(contact.Deleted{})
	gone := eventtest.Given(t, contact.Kind, added, contact.Deleted{})
	gone.Case("once").When(contact.Delete{}).ThenFails(contact.ErrNotFound)
	gone.Case("and is not edited").When(contact.Edit{OptIn: patch.Set(true)}).ThenFails(contact.ErrNotFound)
	require.Equal(t, "messagingcontact-9", contact.Deleted{}.Erases(id).Subject)
}

func TestAContactAbsorbsAnotherOne(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contact.Kind,
		contact.Added{Name: hers("+919812345678"), Phone: hers("919812345678"), PhoneKey: "k1", Source: "chat"},
		contact.Edited{OptIn: patch.Set(true)},
		contact.ListsChanged{Lists: []int64{2, 5}})
	other := contact.State{Name: contact.Subjects.Personal("12", "Asha"), Email: contact.Subjects.Personal("12", "asha@example.org"),
		Status: "open", Lists: []int64{3, 5}}
	absorb := contact.Absorb{ID: id, Contact: 12, Other: other, Name: "+919812345678"}
	absorbed := contact.Absorbed{Contact: 12, Name: hers("Asha")}
	given.Case("lists are united, consent is of both, and the better name stays").When(absorb).
		Then(absorbed, contact.Edited{OptIn: patch.Set(false), Email: patch.Set(hers("asha@example.org"))},
			contact.ListsChanged{Lists: []int64{2, 3, 5}})
	given.And(absorbed).Case("once").When(absorb).ThenNothing()
	agreed := other
	agreed.OptIn, agreed.Email, agreed.Lists = true, hers(""), nil
	given.And(contact.Edited{Name: patch.Set(hers("Asha ji"))}).Case("a name that people gave stays").When(contact.Absorb{ID: id,
		Contact: 12, Other: agreed, Name: "Asha ji"}).
		Then(contact.Absorbed{Contact: 12})
	given.Case("one that is gone is not absorbed").When(contact.Absorb{ID: id, Contact: 12}).ThenNothing()
	require.Equal(t, []int64{12}, given.And(absorbed).State().Absorbed)

	names := []string{"Guest", "+919812345678", "@asha", "Asha"}
	for i, worse := range names {
		for _, better := range names[i+1:] {
			events, err := contact.Absorb{ID: id, Contact: 12, Other: contact.State{Name: hers(better), Status: "open"},
				Name: worse}.Decide(contact.State{Status: "open"})
			require.NoError(t, err)
			require.Equal(t, contact.Absorbed{Contact: 12, Name: hers(better)}, events[0])
		}
	}
}

func TestAContactThatWasMergedIsAnotherOne(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, contact.Kind, added)
	given.Case("it ends").When(contact.MergeInto{Into: 3}).Then(contact.Merged{Into: 3})
	gone := given.And(contact.Absorbed{Contact: 12}, contact.Merged{Into: 3})
	gone.Case("once").When(contact.MergeInto{Into: 4}).ThenNothing()
	gone.Case("a change names the other contact").When(contact.Edit{ID: id, OptIn: patch.Set(true)}).ThenFails(contact.MergedError(3))
	_, err := contact.Delete{}.Decide(gone.State())
	f, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok)
	require.ErrorIs(t, err, contact.ErrNotFound)
	require.Equal(t, []any{"id", int64(3)}, []any{f.Fields[0].Field, f.Fields[0].ID})
	require.Equal(t, []int64{12}, gone.State().Absorbed, "they are forgotten with it")
	gone.Case("it is forgotten with the other one").When(contact.Forget{}).Then(contact.Deleted{})
	gone.And(contact.Deleted{}).Case("once").When(contact.Forget{}).ThenNothing()
	given.Case("one that is there is not").When(contact.Forget{}).ThenNothing()
}

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
	eventtest.Given(t, contact.Kind).Case("an unknown contact").When(contact.ChangeConsent{}).ThenNothing()
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

// A row of words.tsv has the purpose of a keyword, a text quoted as in Go, and the meaning of the text; - means no meaning.
func TestWordsAreTheWholeText(t *testing.T) {
	t.Parallel()
	table := worktest.File(t, "testdata/words.tsv")
	tried := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		text, err := strconv.Unquote(cells[1])
		require.NoError(t, err)
		tried++
		ask, words := contact.ConsentKeyword, map[bool]string{true: "start", false: "stop"}
		if cells[0] == "balance" {
			ask, words = contact.BalanceKeyword, map[bool]string{true: "agrees", false: "differs"}
		}
		yes, is := ask(text)
		require.Equal(t, cells[2], map[bool]string{true: words[yes], false: "-"}[is], line)
	}
	require.Equal(t, 171, tried)
	for _, long := range []string{strings.Repeat("1 ", 600), "stop" + strings.Repeat("!", 2000)} {
		_, is := contact.BalanceKeyword(long)
		_, also := contact.ConsentKeyword(long)
		require.False(t, is || also)
	}
	_, is := contact.ConsentKeyword("\u202astop\u202c" + strings.Repeat("\u200b", 100))
	require.True(t, is, "what cannot be seen does not count")
}
