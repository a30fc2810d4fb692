package messagingproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/contactlist"
	"bahi/domain/patch"
	"bahi/internal/test/projectiontest"
	"bahi/projections/messagingproj"
)

func TestContactsAreShownUntilTheyAreDeleted(t *testing.T) {
	t.Parallel()
	happened := func(id string, e event.Event[contact.State]) projectiontest.Event {
		return projectiontest.Happened(contact.Kind, id, e, event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")})
	}
	added := func(id, name string) projectiontest.Event {
		return happened(id, contact.Added{Name: contact.Subjects.Personal(id, name), Phone: contact.Subjects.Personal(id, "91981234567"+id),
			PhoneKey: "k" + id, Source: "chat"})
	}
	tables := projectiontest.Run(t, messagingproj.Contacts,
		added("1", "Élodie"), added("2", "Asha"), added("3", "Ravi"),
		happened("1", contact.Edited{OptIn: patch.Set(true), Status: patch.Set("pending"), Phone: patch.Clear[event.Personal]()}),
		happened("2", contact.Edited{Name: patch.Set(contact.Subjects.Personal("2", "USHA")),
			Email: patch.Set(contact.Subjects.Personal("2", "usha@example.org"))}),
		happened("1", contact.ListsChanged{Lists: []int64{5}}),
		projectiontest.Happened(contactlist.Kind, "7", contactlist.Created{Name: "All"},
			event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")}),
		happened("1", contact.ListsChanged{Lists: []int64{5, 7}}),
		happened("2", contact.ListsChanged{Lists: nil}),
		happened("3", contact.Deleted{}),
		added("4", "Guest"), added("5", "+91"), happened("4", contact.ListsChanged{Lists: []int64{7}}),
		happened("4", contact.Absorbed{Contact: 5}),
		happened("2", contact.Absorbed{Contact: 4, Name: contact.Subjects.Personal("2", "Asha")}),
	)
	require.Equal(t, []string{
		`(1,Élodie,élodie,,,chat,t,t,pending,t,3)`, `(2,Asha,asha,919812345672,usha@example.org,chat,f,t,open,t,3)`,
	}, tables.Rows(`select id, name, name_folded, phone, email, source, opt_in, reply_bot, status, updated_at > created_at, revision
		from contact order by id`))
	require.Equal(t, []string{`(1,5)`, `(1,7)`}, tables.Rows(`select contact_id, list_id from member order by 1, 2`))
	require.Equal(t, []string{`(7,All)`}, tables.Rows(`select id, name from list`))
	require.Equal(t, []string{`(4,2)`, `(5,2)`}, tables.Rows(`select id, into_id from merged order by id`),
		"also a contact merged into a merged one")
}
