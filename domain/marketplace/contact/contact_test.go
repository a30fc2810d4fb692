package contact_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/event/eventtest"
	"bahi/domain/fault"
	"bahi/domain/marketplace/contact"
	"bahi/domain/patch"
)

var mill, shop = uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa"), uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000bb")

func named(text string) patch.Field[event.Personal] {
	return contact.Subjects.Field("1", patch.Set(text))
}

var asha = contact.Added{Company: mill, Details: contact.Details{FirstName: named("Asha"), Email: named("asha@example.org")}}

func TestAContactIsPutInOrder(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, contact.Kind)
	full := asha
	full.LastName, full.Phone, full.Designation = named("Rao"), named("+919812345678"), named("Owner")
	none.Case("texts are trimmed, folded and sealed").
		When(contact.Add{ID: "1", FirstName: " Asha ", Email: "ASHA@example.org", CompanyID: &mill, Reach: contact.Reach{LastName: patch.Set("Rao"), Phone: patch.Set("9812345678"), Designation: patch.Set(" Owner ")}}).
		Then(full)
	_, err := contact.Add{Email: "x", Reach: contact.Reach{LastName: patch.Set(strings.Repeat("a", 101)), Phone: patch.Set("1\x00"), Designation: patch.Set(strings.Repeat("a", 101))}}.Decide(contact.State{})
	for _, field := range []string{"first_name", "email", "last_name", "phone", "designation"} {
		require.ErrorContains(t, err, field+": ")
	}
	given := none.And(asha)
	given.Case("what is named changes").When(contact.Edit{ID: "1", Reach: contact.Reach{Phone: patch.Set("9812345678")}, ByNonMember: true}).
		Then(contact.Edited{Details: contact.Details{Phone: named("+919812345678")}, ByNonMember: true})
	given.Case("what is empty stays so").When(contact.Edit{ID: "1", ByNonMember: true, Reach: contact.Reach{Phone: patch.Set(" "), LastName: patch.Clear[string]()}}).ThenNothing()
	given.Case("it moves").When(contact.Edit{ID: "1", CompanyID: patch.Set(shop)}).Then(contact.Edited{Company: shop})
	given.Case("it stays").When(contact.Edit{ID: "1", CompanyID: patch.Set(mill)}).ThenNothing()
	given.Case("it ends").When(contact.Delete{}).Then(contact.Deleted{})
	given.And(contact.Deleted{}).Case("once").When(contact.Delete{}).ThenFails(contact.ErrNotFound)
	none.Case("there is none").When(contact.Edit{FirstName: patch.Set("A")}).ThenFails(contact.ErrNotFound)
	given.Case("a first name is required").When(contact.Edit{FirstName: patch.Set(" ")}).ThenFails(fault.Fields(fault.Field{Field: "first_name", Message: "1 to 100 characters"}))
}

func TestMembersNameTheFirstContact(t *testing.T) {
	t.Parallel()
	a, b := uuid.New(), uuid.New()
	none := eventtest.Given(t, contact.PrimaryKind)
	none.Case("a stranger names the first").When(contact.NamePrimary{Contact: a}).Then(contact.PrimaryNamed{Contact: a})
	given := none.And(contact.PrimaryNamed{Contact: a})
	given.Case("but no other one").When(contact.NamePrimary{Contact: b}).ThenNothing()
	given.Case("unless that is gone").When(contact.NamePrimary{Contact: b, Gone: a}).Then(contact.PrimaryNamed{Contact: b})
	given.Case("a member does").When(contact.NamePrimary{Contact: b, Member: true}).Then(contact.PrimaryNamed{Contact: b})
	given.Case("the same again is nothing new").When(contact.NamePrimary{Contact: a, Member: true}).ThenNothing()
	given.Case("it is one of many again").When(contact.DropPrimary{Contact: a}).Then(contact.PrimaryNamed{})
	given.Case("as another one is").When(contact.DropPrimary{Contact: b}).ThenNothing()
}

func TestACompanyIsToldOfAContactOnceAnHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	given := eventtest.Given(t, contact.NoticeKind).And(contact.NoticeSent{At: now})
	given.Case("too soon").When(contact.Tell{Now: now.Add(59 * time.Minute)}).ThenNothing()
	given.Case("an hour later").When(contact.Tell{Now: now.Add(time.Hour)}).Then(contact.NoticeSent{At: now.Add(time.Hour)})
}
