package pages_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestPartiesAreAskedFromThePages(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := byKey(o, apptest.Home, `{"ledger":"write","messaging":"write"}`)
	clerk := o.Bearer(o.Key(apptest.Home, `{"ledger":"write","messaging":"write"}`).Key)
	account := apptest.IdOf(t, []byte(clerk.POST("/client", `{"name":"Meera"}`).Status(201).Text))
	clerk.POST("/client", `{"name":"Ravi"}`).Status(201)
	contact := apptest.IdOf(t, []byte(clerk.POST("/api/contacts", `{"name":"Meera Shah","phone":"9812345679"}`).Status(201).Text))
	clerk.PATCH(fmt.Sprintf("/api/contacts/%d", contact), `{"optIn":true}`).Status(200)
	clerk.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)

	const parties, confirmations = "/app/list/parties", "/app/confirmations"
	set := form(b.get(parties), parties, `value="set-account-contact"`)
	set.Set("id", fmt.Sprint(account))
	set.Set("contactId", fmt.Sprint(contact))
	b.follow(b.site.Ask(http.MethodPost, parties, set)).Says("Meera", "Meera Shah")

	b.submitOf(confirmations, confirmations, `value="request-confirmations"`, "kind", "client", "as_of", "2025-03-31", "channelId", "1",
		"templateId", "1").Is(303) // order_ready has two numbered placeholders
	asked := b.submitOf(confirmations, confirmations, `value="request-confirmations"`, "kind", "client", "as_of", "2025-03-31",
		"channelId", "1", "templateId", "9").Is(422)
	asked.Says("Template not found")
	one := "/app/confirmations/1"
	b.get(confirmations).Is(200).Says("31 Mar 2025")
	require.Eventually(t, func() bool {
		return clerk.GET("/books/confirmations/1/parties?status=silent").Status(200).Header("X-Total-Count") == "1"
	}, time.Minute, 20*time.Millisecond)
	b.get(one).Is(200).Says("31 Mar 2025")
	b.get(one+"/parties").Is(200).Says("Meera", "Ravi", "Decide")
	decide := form(b.get(one+"/parties"), one+"/parties", `value="decide-confirmation"`)
	decide.Set("outcome", "disputed")
	decide.Set("note", "bill 118 is missing")
	b.follow(b.site.Ask(http.MethodPost, one+"/parties", decide)).Says("bill 118 is missing")
}
