package accesshttp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestAddressRegistersOnce(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	email := o.Address("asha")
	stranger := o.Anonymous()
	a := stranger.POST(apptest.Auth+"/register", `{"email":" `+strings.ToUpper(email)+` ","password":"kundan and meena",`+
		`"first_name":" Asha","last_name":"Soni "}`).Status(201)
	require.NotEmpty(t, a.Header("Bahi-Position"))
	var made struct {
		ID            uuid.UUID `json:"id"`
		Email         string    `json:"email"`
		FirstName     string    `json:"first_name"`
		LastName      string    `json:"last_name"`
		EmailVerified bool      `json:"email_verified"`
		CreatedAt     time.Time `json:"created_at"`
	}
	a.JSON(&made)
	require.Equal(t, "created_at email email_verified first_name id last_name", fieldsOf(t, a))
	require.Equal(t, []string{email, "Asha", "Soni"}, []string{made.Email, made.FirstName, made.LastName})
	require.False(t, made.EmailVerified)
	require.WithinDuration(t, time.Now(), made.CreatedAt, time.Minute)

	// The address is taken in any spelling (G4).
	for _, again := range []string{email, "ASHA" + email[len("asha"):], "\t" + strings.ToUpper(email)} {
		stranger.POST(apptest.Auth+"/register", apptest.Registration(again)).Problem(409, "Email already registered")
	}
	page, _ := apptest.Link(t, o.Mailed(email, apptest.VerifySubject, 1))
	require.Equal(t, app.OwnAddress+"/auth/verify-email", page)
	require.Len(t, o.Mails(email, apptest.VerifySubject), 1)
}

func TestSignInDoesNotRevealWhoIsRegistered(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	stranger, email := o.Anonymous(), o.Address("asha")
	stranger.POST(apptest.Auth+"/register", apptest.Registration(email)).Status(201)
	o.Mailed(email, apptest.VerifySubject, 1)
	login := func(email, password string) map[string]string {
		return map[string]string{"email": email, "password": password}
	}
	for _, body := range []map[string]string{
		login(email, "another one"), login(o.Address("nobody"), apptest.GoodPassword), login("no address", apptest.GoodPassword),
		login("", ""), login(email, ""), login(email, strings.ToUpper(apptest.GoodPassword)),
	} {
		a := stranger.POST(apptest.Auth+"/login", body).Problem(401, "Invalid email or password")
		require.Empty(t, a.Header("Retry-After"))
	}
	require.Len(t, o.Mails(email, apptest.VerifySubject), 1, "only the right password sends another mail")
	o.WaitJobs("send_verification")
	o.Sql(`update account.mailed_token set issued_at = issued_at - interval '2 minutes'`)
	stranger.POST(apptest.Auth+"/login", login(email, apptest.GoodPassword)).Problem(403, "Email not verified")
	_, second := apptest.Link(t, o.Mailed(email, apptest.VerifySubject, 2))
	stranger.POST(apptest.Auth+"/verify-email", map[string]string{"token": second}).Status(200)

	a := stranger.POST(apptest.Auth+"/login", login(" ASHA"+email[len("asha"):], apptest.GoodPassword)).Status(200)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Equal(t, "access_token refresh_token token_type user", fieldsOf(t, a))
	require.Empty(t, a.Header("Set-Cookie"), "only browsers that come from a provider get a cookie")
	in := apitest.Read[apptest.SignedIn](a)
	require.Equal(t, "bearer", in.Type)
	require.Equal(t, email, in.User.Email)
	require.Equal(t, "Asha", in.User.FirstName)
	o.Bearer(in.Access).GET("/banks").Status(200).Body(`[]`)
}

func TestAResetDoesNotRevealWhoIsRegistered(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Person("asha@example.com")
	request := func(email string) *apitest.Answer {
		return o.Anonymous().POST(apptest.Auth+"/password-reset/request", map[string]string{"email": email}).Status(200)
	}
	known, unknown := request("Asha@example.com "), request("nobody@example.com")
	require.Equal(t, known.Text, unknown.Text)
	require.Equal(t, known.Header("Bahi-Position"), unknown.Header("Bahi-Position"))
	require.Equal(t, "message", fieldsOf(t, known))
	page, _ := apptest.Link(t, o.Mailed("asha@example.com", apptest.ResetSubject, 1))
	require.Equal(t, app.OwnAddress+"/auth/reset-password", page)
	require.Empty(t, o.Mails("nobody@example.com", apptest.ResetSubject))
}

func TestSigningInIgnoresIdempotencyKeys(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	keyed := o.Anonymous().With("Idempotency-Key", "k")
	keyed.POST(apptest.Auth+"/register", apptest.Registration(o.Address("asha"))).Status(201)
	a := keyed.POST(apptest.Auth+"/register", apptest.Registration(o.Address("asha"))).Problem(409, "Email already registered")
	require.Empty(t, a.Header("Idempotency-Replayed"))
	keyed.POST(apptest.Auth+"/register", apptest.Registration(o.Address("ravi"))).Status(201) // and not 422
	_, token := apptest.Link(t, o.Mailed(o.Address("asha"), apptest.VerifySubject, 1))
	keyed.POST(apptest.Auth+"/verify-email", map[string]string{"token": token}).Status(200)
	sign := map[string]string{"email": o.Address("asha"), "password": apptest.GoodPassword}
	var first, second apptest.SignedIn
	keyed.POST(apptest.Auth+"/login", sign).Status(200).JSON(&first)
	keyed.POST(apptest.Auth+"/login", sign).Status(200).JSON(&second)
	require.NotEqual(t, first.Refresh, second.Refresh)
	for _, in := range []apptest.SignedIn{first, second} {
		o.Bearer(in.Access).With("Idempotency-Key", "k").POST(apptest.Auth+"/logout", nil).Status(200)
		o.Bearer(in.Access).GET("/banks").Problem(401, "Not authenticated")
	}
	keyed.With("Idempotency-Key", strings.Repeat("k", 300)).POST(apptest.Auth+"/login", sign).Status(200)
}
