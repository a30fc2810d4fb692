package messaginghttp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

const contactLists = "/api/contact-lists"

func TestContactsAreInLists(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, stranger := agent(o, o.Home), agent(o, o.Abroad)
	asha, usha := made(t, c, `{"name":"Asha"}`), made(t, c, `{"name":"Usha"}`)
	var retail, empty messagingview.ContactList
	body := fmt.Sprintf(`{"name":"Retailers","contactIds":[%d,%d,%d]}`, usha.ID, asha.ID, usha.ID)
	keyed := c.With("Idempotency-Key", "retailers")
	keyed.POST(contactLists, body).Status(201).JSON(&retail)
	require.EqualValues(t, 2, retail.ContactCount)
	c.POST(contactLists, `{"name":"New"}`).Status(201).JSON(&empty)
	ravi := made(t, c, fmt.Sprintf(`{"name":"Ravi","listIds":[%d,%d,%d]}`, empty.ID, retail.ID, empty.ID))
	require.Equal(t, []int64{retail.ID, empty.ID}, ravi.ListIDs)

	// The response to a write of a contact equals the later read, and lists count their contacts.
	read := apitest.Read[messagingview.Contact](c.GET(at(ravi.ID)).Status(200))
	require.Equal(t, ravi, read)
	moved := apitest.Read[messagingview.Contact](c.PATCH(at(asha.ID), fmt.Sprintf(`{"listIds":[%d]}`, empty.ID)).Status(200))
	require.Equal(t, []int64{empty.ID}, moved.ListIDs)
	c.PATCH(at(usha.ID), `{"listIds":[]}`).Status(200)
	again := keyed.POST(contactLists, body).Status(201)
	require.Equal(t, "true", again.Header("Idempotency-Replayed"))
	counts := func() (all []int64) {
		var found []messagingview.ContactList
		a := c.GET(contactLists).Status(200).JSON(&found)
		require.Equal(t, "2", a.Header("X-Total-Count"))
		for _, l := range found {
			all = append(all, l.ContactCount)
		}
		return all
	}
	require.Equal(t, []int64{2, 1}, counts(), "a repetition puts nobody back")
	found := apitest.Read[[]messagingview.Contact](c.GET(fmt.Sprintf("%s?listId=%d&search=a", contacts, empty.ID)).Status(200))
	require.Equal(t, []int64{ravi.ID, asha.ID}, []int64{found[0].ID, found[1].ID})
	c.DELETE(at(ravi.ID)).Status(204)
	require.Equal(t, []int64{1, 0}, counts())

	c.POST(contactLists, fmt.Sprintf(`{"name":" ","contactIds":[%d,%d]}`, asha.ID, ravi.ID)).
		Problem(422, "Validation error", "name", "1 to 100 characters", "contactIds[1]", "Contact not found")
	stranger.POST(contactLists, fmt.Sprintf(`{"name":"Theirs","contactIds":[%d]}`, asha.ID)).Problem(422, "Validation error",
		"contactIds[0]", "Contact not found")
	stranger.POST(contacts, fmt.Sprintf(`{"name":"Mine","listIds":[%d]}`, retail.ID)).Problem(422, "Validation error", "listIds[0]",
		"Contact list not found")
	require.Equal(t, []int64{1, 0}, counts())
}
