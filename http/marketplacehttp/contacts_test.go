package marketplacehttp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/marketplaceview"
)

const contacts = "/api/v1/contacts"

func contactAt(id any) string { return fmt.Sprintf("%s/%s", contacts, id) }

func contactOf(t *testing.T, c *apitest.Client, company any, more string) (made marketplaceview.Contact) {
	t.Helper()
	c.POST(contacts, fmt.Sprintf(`{"first_name":"Asha","email":"asha@example.org","company_id":%q%s}`, company, more)).Status(201).JSON(&made)
	return made
}

func TestAnybodyNamesAContactAndMembersDecideTheRest(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, foreign, stranger := seller(o, o.Home), seller(o, o.Abroad), o.Anonymous()
	mill, shop := founded(t, c, `{"name":"`+unique()+`"}`), founded(t, c, `{"name":"`+unique()+`"}`)
	theirs := founded(t, foreign, `{"name":"`+unique()+`"}`)
	first := contactOf(t, stranger, mill.ID, `,"is_primary":true,"phone":"98123 45678","last_name":" "`)
	require.Equal(t, []any{true, "+919812345678", (*string)(nil)}, []any{first.IsPrimary, *first.Phone, first.LastName})
	second := contactOf(t, stranger, mill.ID, `,"is_primary":true`)
	require.False(t, second.IsPrimary, "a non-member replaces no primary contact")

	changed := stranger.PATCH(contactAt(first.ID),
		`{"email":"rani@example.org","company_id":"`+shop.ID.String()+`","is_primary":false}`).Status(200)
	changed.Contains(`"email":"rani@example.org"`, `"company_id":"`+mill.ID.String(), `"is_primary":true`,
		`"warnings":[{"field":"company_id"`, `{"field":"is_primary"`)
	require.NotContains(t, c.PATCH(contactAt(second.ID), `{"is_primary":true}`).Status(200).Contains(`"is_primary":true`).Text, "warnings")
	stranger.GET(contactAt(first.ID)).Status(200).Contains(`"is_primary":false`, `"email":"rani@example.org"`)

	c.PATCH(contactAt(second.ID), `{"company_id":"`+theirs.ID.String()+`"}`).Problem(403,
		"Not enough permissions to access this company's contacts")
	c.PATCH(contactAt(second.ID), `{"company_id":"`+uuid.NewString()+`"}`).Problem(422, "Validation error", "company_id",
		"there is no such company")
	c.PATCH(contactAt(second.ID), `{"company_id":"`+shop.ID.String()+`"}`).Status(200).Contains(`"company_id":"`+shop.ID.String(),
		`"is_primary":false`)
	foreign.PATCH(contactAt(second.ID), `{"is_primary":true}`).Status(200).Contains(`"warnings"`)

	var all []marketplaceview.Contact
	require.Equal(t, "1", c.GET(contacts+"?company_id="+mill.ID.String()).Status(200).JSON(&all).Header("X-Total-Count"))
	require.Equal(t, first.ID, all[0].ID)
	require.Equal(t, "1", c.GET(contacts+"?skip=5&limit=1000&company_id="+mill.ID.String()).Status(200).Body("[]").Header("X-Total-Count"))
	for _, id := range []string{theirs.ID.String(), uuid.NewString()} {
		c.GET(contacts+"?company_id="+id).Problem(403, "Not enough permissions to access this company's contacts")
	}
	foreign.DELETE(contactAt(first.ID)).Problem(404, "Contact not found")
	c.DELETE(contactAt(first.ID)).Status(204)
	stranger.GET(contactAt(first.ID)).Problem(404, "Contact not found")
	stranger.PATCH(contactAt(first.ID), `{}`).Problem(404, "Contact not found")
	c.DELETE(contactAt("x")).Problem(404, "Contact not found")
	var alone marketplaceview.Contact
	stranger.POST(contacts, `{"first_name":"A","email":"a@example.org","company_id":null}`).Status(201).JSON(&alone)
	require.Nil(t, alone.CompanyID)
	c.DELETE(contactAt(alone.ID)).Problem(404, "Contact not found")
	o.Operator().DELETE(contactAt(alone.ID)).Status(204)
}

func TestADeletedCompanysContactsAreItsMembers(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	mill := founded(t, c, `{"name":"`+unique()+`"}`)
	asha := contactOf(t, c, mill.ID, "")
	c.DELETE(of(mill.ID)).Status(204)
	o.Anonymous().GET(contactAt(asha.ID)).Problem(404, "Contact not found")
	o.Anonymous().PATCH(contactAt(asha.ID), `{"phone":null}`).Problem(404, "Contact not found")
	o.Anonymous().POST(contacts, `{"first_name":"A","email":"a@example.org","company_id":"`+mill.ID.String()+`"}`).Problem(400,
		"Company not found")
	c.GET(contactAt(asha.ID)).Status(200)
	c.GET(contacts + "?company_id=" + mill.ID.String()).Status(200).Contains(asha.ID.String())
	c.PATCH(contactAt(asha.ID), `{"phone":null}`).Problem(409, "The company was deleted")
	c.DELETE(contactAt(asha.ID)).Status(204)
}

func TestACompanyIsToldOfAStrangersChange(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	owner := o.Person(o.Address("owner"))
	name := unique()
	mill := founded(t, owner.Client, `{"name":"`+name+`"}`)
	asha := contactOf(t, owner.Client, mill.ID, "")
	owner.PATCH(contactAt(asha.ID), `{"phone":"+919812345678"}`).Status(200)
	for range 2 {
		o.Anonymous().PATCH(contactAt(asha.ID), `{"email":"rani@example.org"}`).Status(200)
	}
	subject := "A contact of " + name + " was changed"
	text := o.Mailed(o.Address("owner"), subject, 1)
	require.Contains(t, text, "/contacts/"+asha.ID.String())
	require.NotContains(t, text, "rani")
	o.WaitJobs("notify_contact_change")
	require.Len(t, o.Mails(o.Address("owner"), subject), 1)
}

func TestContactsMayBeForKnownCallersAlone(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.ContactsKnown, s.Outside.AnyGSTIN, s.Outside.ScrubInterval = true, true, time.Hour
	o := apptest.StartAs(t, s)
	c := seller(o, o.Home)
	mill := founded(t, c, `{"name":"Mill","gstin":"27AAPFU0939F1C6"}`)
	asha, rani := contactOf(t, c, mill.ID, ""), contactOf(t, c, mill.ID, "")
	o.Anonymous().GET(contactAt(asha.ID)).Problem(401, "Not authenticated")
	o.Anonymous().PATCH(contactAt(asha.ID), `{}`).Problem(401, "Not authenticated")
	o.Anonymous().POST(contacts, `{"first_name":"A","email":"a@example.org"}`).Problem(401, "Not authenticated")
	seller(o, o.Abroad).GET(contactAt(asha.ID)).Status(200)

	// The first deletion triggers the rewrite of the tables, the next one waits for its turn.
	c.DELETE(contactAt(asha.ID)).Status(204)
	some := func(state string) func() bool {
		return func() bool { return len(o.Jobs("kind=scrub_tables&state="+state)) > 0 }
	}
	require.Eventually(t, some("completed"), time.Minute, 5*time.Millisecond)
	c.DELETE(contactAt(rani.ID)).Status(204)
	require.Eventually(t, some("scheduled"), time.Minute, 5*time.Millisecond)
	before := len(o.Jobs("kind=scrub_tables&state=completed"))
	// An operator's erasure does not wait.
	buyer := contactOf(t, c, mill.ID, "")
	o.Operator().POST("/ops/erasures", `{"email":"asha@example.org"}`).Status(202).Body(`{"subjects":1}`)
	c.GET(contactAt(buyer.ID)).Problem(404, "Contact not found")
	require.Eventually(t, func() bool { return len(o.Jobs("kind=scrub_tables&state=completed")) > before }, time.Minute, 5*time.Millisecond)
}
