package contact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/messaging/contact"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
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
	given.Case("all that is wrong is told").When(contact.Add{ID: id, Name: " ", Addresses: reach(patch.Set("12"), patch.Set("asha"), "")}).
		ThenFails(fault.Fields(
			fault.Field{Field: "name", Message: "1 to 100 characters"},
			fault.Field{Field: "phone", Message: "expected a telephone number, as in +919812345678"},
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

func TestWordsForBalances(t *testing.T) {
	t.Parallel()
	for text, agrees := range map[string]bool{
		"1": true, " 1. ": true, "1️⃣": true, "१": true, "૧": true, "YES!": true, "Agreed": true, "हाँ": true, "हां": true, "सही है": true,
		"मंज़ूर": true, "मन्जूर": true, "મંજૂર": true, "મંજુર છે": false, "હા": true, "બરાબર છે": true,
		"2": false, "(2)": false, "२": false, "૨": false, "no": false, "नहीं": false, "गलत": false, "ग़लत": false, "ના": false, "ખોટું": false,
		"અસહમત": false, "नामंजूर": false,
	} {
		got, is := contact.BalanceKeyword(text)
		require.Equal(t, text != "મંજુર છે", is, text)
		require.Equal(t, agrees, got, text)
	}
	for _, text := range []string{"", "12", "1 or 2?", "1/2", "½", "1 2", "ok", "yes but", "stop", "11", "3", strings.Repeat("1 ", 600)} {
		_, is := contact.BalanceKeyword(text)
		require.False(t, is, text)
	}
}
