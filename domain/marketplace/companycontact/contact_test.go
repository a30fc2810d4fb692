package companycontact_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

var mill, shop = uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa"), uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000bb")

func named(text string) patch.Field[event.Personal] {
	return companycontact.Subjects.Field("1", patch.Set(text))
}

var asha = companycontact.Added{Company: mill, Details: companycontact.Details{FirstName: named("Asha"), Email: named("asha@example.org")}}

func TestAContactIsPutInOrder(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, companycontact.Kind)
	full := asha
	full.LastName, full.Phone, full.Designation = named("Rao"), named("+919812345678"), named("Owner")
	none.Case("texts are trimmed, folded and sealed").
		When(companycontact.Add{ID: "1", FirstName: " Asha ", Email: "ASHA@example.org", CompanyID: &mill,
			Reach: companycontact.Reach{LastName: patch.Set("Rao"), Phone: patch.Set("9812345678"), Designation: patch.Set(" Owner ")}}).
		Then(full)
	_, err := companycontact.Add{Email: "x",
		Reach: companycontact.Reach{LastName: patch.Set(strings.Repeat("a", 101)), Phone: patch.Set("1\x00"),
			Designation: patch.Set(strings.Repeat("a", 101))}}.Decide(companycontact.State{})
	for _, field := range []string{"first_name", "email", "last_name", "phone", "designation"} {
		require.ErrorContains(t, err, field+": ")
	}
	given := none.And(asha)
	given.Case("the given fields change").When(companycontact.Edit{ID: "1", Reach: companycontact.Reach{Phone: patch.Set("9812345678")},
		ByNonMember: true}).
		Then(companycontact.Edited{Details: companycontact.Details{Phone: named("+919812345678")}, ByNonMember: true})
	given.Case("an empty field stays empty").When(companycontact.Edit{ID: "1", ByNonMember: true,
		Reach: companycontact.Reach{Phone: patch.Set(" "), LastName: patch.Clear[string]()}}).ThenNothing()
	given.Case("it moves").When(companycontact.Edit{ID: "1", CompanyID: patch.Set(shop)}).Then(companycontact.Edited{Company: shop})
	given.Case("it stays").When(companycontact.Edit{ID: "1", CompanyID: patch.Set(mill)}).ThenNothing()
	given.Case("it ends").When(companycontact.Delete{}).Then(companycontact.Deleted{})
	given.And(companycontact.Deleted{}).Case("once").When(companycontact.Delete{}).ThenFails(companycontact.ErrNotFound)
	none.Case("there is none").When(companycontact.Edit{FirstName: patch.Set("A")}).ThenFails(companycontact.ErrNotFound)
	given.Case("a first name is required").When(companycontact.Edit{FirstName: patch.Set(" ")}).ThenFails(
		fault.Fields(fault.Field{Field: "first_name", Message: "1 to 100 characters"}))
}

func TestMembersNameTheFirstContact(t *testing.T) {
	t.Parallel()
	a, b := uuid.New(), uuid.New()
	none := eventtest.Given(t, companycontact.PrimaryKind)
	none.Case("a non-member sets the first primary contact").When(companycontact.NamePrimary{Contact: a}).
		Then(companycontact.PrimaryNamed{Contact: a})
	given := none.And(companycontact.PrimaryNamed{Contact: a})
	given.Case("but no other one").When(companycontact.NamePrimary{Contact: b}).ThenNothing()
	given.Case("unless that was deleted").When(companycontact.NamePrimary{Contact: b, Gone: a}).Then(companycontact.PrimaryNamed{Contact: b})
	given.Case("a member does").When(companycontact.NamePrimary{Contact: b, Member: true}).Then(companycontact.PrimaryNamed{Contact: b})
	given.Case("a repetition changes nothing").When(companycontact.NamePrimary{Contact: a, Member: true}).ThenNothing()
	given.Case("it is one of many again").When(companycontact.DropPrimary{Contact: a}).Then(companycontact.PrimaryNamed{})
	given.Case("as another one is primary").When(companycontact.DropPrimary{Contact: b}).ThenNothing()
}

func TestACompanyIsToldOfAContactOnceAnHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	given := eventtest.Given(t, companycontact.NoticeKind).And(companycontact.NoticeSent{At: now})
	given.Case("too soon").When(companycontact.Tell{Now: now.Add(59 * time.Minute)}).ThenNothing()
	given.Case("an hour later").When(companycontact.Tell{Now: now.Add(time.Hour)}).Then(companycontact.NoticeSent{At: now.Add(time.Hour)})
}
