package accessproj_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/session"
	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/internal/test/projectiontest"
	"bahi/projections/accessproj"
)

var (
	home   = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	asha   = uuid.MustParse("aaaaaaaa-0000-4000-8000-000000000001")
	ravi   = uuid.MustParse("bbbbbbbb-0000-4000-8000-000000000002")
	due    = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	inside = event.Meta{Workspace: home}
)

func of(id uuid.UUID, e event.Event[user.State]) projectiontest.Event {
	return projectiontest.Happened(user.Kind, id.String(), e, inside)
}

func registered(id uuid.UUID, email, first string) projectiontest.Event {
	return of(id, user.Registered{
		Provider: user.ByEmail, Workspace: home, EmailKey: "k-" + email, Email: event.NewPersonal(user.Subject(id), email),
		FirstName: event.NewPersonal(user.Subject(id), first), LastName: event.NewPersonal(user.Subject(id), "Rao"),
	})
}

func TestAccountsAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	own := func(text string) event.Personal { return event.NewPersonal(user.Subject(asha), text) }
	tables := projectiontest.Run(t, accessproj.Users,
		registered(asha, "asha@example.org", "आशा"),
		of(ravi, user.Registered{Provider: user.ByProvider, Workspace: home, EmailKey: "k2",
			Email: event.NewPersonal(user.Subject(ravi), "ravi@example.org"), Verified: true}),
		of(asha, user.EmailVerified{EmailKey: "k1"}),
		of(asha, user.ProfileChanged{LastName: own("Rai"), Phone: own("+919812345678")}),
		of(asha, user.ProfileChanged{FirstName: own("Usha")}),
		of(asha, user.PictureChanged{Key: "p1"}),
		of(asha, user.PasswordChanged{Forgotten: true}),
		of(asha, user.Granted{Operator: true}),
		projectiontest.Happened(session.Kind, uuid.NewString(), session.SignedIn{User: asha, By: session.ByPassword}, inside),
		of(ravi, user.DeletionRequested{DeleteAfter: due}),
	)
	const shown = `select email, first_name, last_name, phone, auth_provider, email_verified, operator, picture,
		last_login_at > created_at as signed_in, delete_after at time zone 'UTC' as due,
			workspace_id = '11111111-1111-4111-8111-111111111111' as home, revision
		from account order by id`
	require.Equal(t, []string{
		`(asha@example.org,Usha,Rai,+919812345678,email,t,t,p1,t,,t,6)`,
		`(ravi@example.org,,,,idp,t,f,,,"2030-01-02 03:04:05",t,1)`,
	}, tables.Rows(shown))
	tables.Exec(`update account set email = 'x' where picture is not null`)
	require.NotEmpty(t, tables.Examine())
}

func TestWhatIsTakenBackIsShownNoMore(t *testing.T) {
	t.Parallel()
	own := func(text string) event.Personal { return event.NewPersonal(user.Subject(asha), text) }
	tables := projectiontest.Run(t, accessproj.Users,
		registered(asha, "asha@example.org", "Asha"), of(asha, user.EmailVerified{EmailKey: "k1"}),
		of(asha, user.ProfileChanged{Phone: own("+919812345678")}),
		of(asha, user.PictureChanged{Key: "p1"}), of(asha, user.Granted{Operator: true}), of(asha, user.DeletionRequested{DeleteAfter: due}),
		of(asha, user.EmailChanged{Email: own("rao@example.org"), EmailKey: "k2", Before: own("asha@example.org"), EmailBefore: "k1"}),
		of(asha, user.ProfileChanged{NoPhone: true}), of(asha, user.PictureChanged{}), of(asha, user.Granted{}),
		of(asha, user.DeletionCancelled{}),
	)
	require.Equal(t, []string{`(rao@example.org,Asha,,f,f,,)`},
		tables.Rows(`select email, first_name, phone, email_verified, operator, picture, delete_after from account`))
	require.Empty(t, tables.Rows(`select from account a where a::text like '%asha@%'`))
}

func TestAnAccountHasTheRevisionOfItsStream(t *testing.T) {
	t.Parallel()
	var all []projectiontest.Event
	var want []string
	for n := range 14 { // an account that had the first n changes
		id := uuid.MustParse(fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", n+1))
		own := func(text string) event.Personal { return event.NewPersonal(user.Subject(id), text) }
		key := func(of string) string { return fmt.Sprint(of, n) }
		all = append(all, registered(id, key("asha")+"@example.org", "Asha"))
		for _, e := range []event.Event[user.State]{
			user.EmailVerified{EmailKey: key("k1")}, user.ProfileChanged{FirstName: own("Usha")},
			user.EmailChanged{Email: own(key("rao") + "@example.org"), EmailKey: key("k2")},
			user.PasswordChanged{}, user.PictureChanged{Key: "p"}, user.IdentityLinked{IdentityKey: key("i")},
			user.Granted{Operator: true}, user.DeletionRequested{DeleteAfter: due}, user.DeletionCancelled{},
			user.EmailClaimLost{EmailKey: key("k2")}, user.EmailRestored{Email: own(key("asha") + "@example.org"), EmailKey: key("k1")},
			user.ErasureBegun{}, user.Erased{},
		}[:n] {
			all = append(all, of(id, e))
		}
		want = append(want, fmt.Sprintf("(%d)", n))
	}
	require.Equal(t, want, projectiontest.Run(t, accessproj.Users, all...).Rows(`select revision from account order by id`))
}

// Without the key, neither the log's values nor those of rebuilt tables can be opened. The existing tables agree with them.
func TestWhoWasErasedIsInNoTable(t *testing.T) {
	t.Parallel()
	own := func(text string) event.Personal { return event.NewPersonal(user.Subject(asha), text) }
	tables := projectiontest.Run(t, accessproj.Users,
		registered(asha, "asha@example.org", "Asha"), registered(ravi, "ravi@example.org", "Ravi"),
		of(asha, user.ProfileChanged{Phone: own("+919812345678")}), of(asha, user.PictureChanged{Key: "p1"}),
		of(asha, user.Granted{Operator: true}),
		of(asha, user.DeletionRequested{DeleteAfter: due}), of(asha, user.ErasureBegun{}), of(asha, user.Erased{}),
	)
	const shown = `select email, first_name, last_name, phone, operator, picture, erased_at is not null as erased from account order by id`
	want := []string{`(,,,,f,,t)`, `(ravi@example.org,Ravi,Rao,,f,,f)`}
	require.Equal(t, want, tables.Rows(shown))
	tables.Erase(user.Subject(asha))
	require.Empty(t, tables.Examine())
	tables.Erase(user.Subject(ravi))
	require.NotEmpty(t, tables.Examine(), "a key that was destroyed without an event is found")
}
