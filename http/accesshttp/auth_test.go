package accesshttp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/app"
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
	o.LaterMails()
	stranger.POST(apptest.Auth+"/login", login(email, apptest.GoodPassword)).Problem(403, "Email not verified")
	_, second := apptest.Link(t, o.Mailed(email, apptest.VerifySubject, 2))
	stranger.POST(apptest.Auth+"/verify-email", map[string]string{"token": second}).Status(200)

	a := stranger.POST(apptest.Auth+"/login", login(" ASHA"+email[len("asha"):], apptest.GoodPassword)).Status(200)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Equal(t, "access_token refresh_token token_type user", fieldsOf(t, a))
	require.Empty(t, a.Header("Set-Cookie"), "only browsers that come from a provider get a cookie")
	var in apptest.SignedIn
	a.JSON(&in)
	require.Equal(t, "bearer", in.Type)
	require.Equal(t, email, in.User.Email)
	require.Equal(t, "Asha", in.User.FirstName)
	o.Bearer(in.Access).GET("/banks").Status(200).Body(`[]`)
}

func TestMailedTokenWorksOnceForItsPurpose(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	stranger := o.Anonymous()
	const email, badVerification, badReset = "asha@example.com", "Invalid or expired verification token", "Invalid or expired reset token"
	stranger.POST(apptest.Auth+"/register", apptest.Registration(email)).Status(201)
	_, verification := apptest.Link(t, o.Mailed(email, apptest.VerifySubject, 1))
	verify := func(token string) map[string]string { return map[string]string{"token": token} }
	confirm := func(token, password string) map[string]string {
		return map[string]string{"token": token, "new_password": password}
	}
	stranger.POST(apptest.Auth+"/password-reset/confirm", confirm(verification, "jadau and polki")).Problem(400, badReset)
	stranger.POST(apptest.Auth+"/verify-email", verify(verification)).Status(200)
	stranger.POST(apptest.Auth+"/verify-email", verify(verification)).Problem(400, badVerification)

	in := o.SignIn(email, apptest.GoodPassword)
	known := stranger.POST(apptest.Auth+"/password-reset/request", map[string]string{"email": "Asha@example.com "}).Status(200)
	unknown := stranger.POST(apptest.Auth+"/password-reset/request", map[string]string{"email": "nobody@example.com"}).Status(200)
	require.Equal(t, known.Text, unknown.Text)
	require.Equal(t, known.Header("Bahi-Position"), unknown.Header("Bahi-Position"))
	require.Equal(t, "message", fieldsOf(t, known))
	page, reset := apptest.Link(t, o.Mailed(email, apptest.ResetSubject, 1))
	require.Equal(t, app.OwnAddress+"/auth/reset-password", page)

	stranger.POST(apptest.Auth+"/verify-email", verify(reset)).Problem(400, badVerification)
	stranger.POST(apptest.Auth+"/password-reset/confirm", confirm(reset, "soni")).Problem(422, "Validation error", "new_password",
		"at least 8 characters are needed")
	o.Bearer(in.Access).GET("/banks").Status(200)
	stranger.POST(apptest.Auth+"/password-reset/confirm", confirm(reset, "jadau and polki")).Status(200) // a refusal did not spend it
	stranger.POST(apptest.Auth+"/password-reset/confirm", confirm(reset, "jadau and pearls")).Problem(400, badReset)
	o.Bearer(in.Access).GET("/banks").Problem(401, "Not authenticated") // G3: all sessions end
	stranger.POST(apptest.Auth+"/refresh", map[string]string{"refresh_token": in.Refresh}).Problem(401, "Invalid or expired refresh token")
	o.SignIn(email, "jadau and polki")
	require.Empty(t, o.Mails("nobody@example.com", apptest.ResetSubject))
}

func TestRefreshTokenWorksOnce(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	stranger := o.Anonymous()
	asha := o.Person(o.Address("asha"))
	const refused = "Invalid or expired refresh token"
	refresh := func(token string) map[string]string { return map[string]string{"refresh_token": token} }
	a := stranger.POST(apptest.Auth+"/refresh", refresh(asha.Refresh)).Status(200)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Empty(t, a.Header("Set-Cookie"), "a token in the body sets no cookie")
	var next apptest.Tokens
	a.JSON(&next)
	require.Equal(t, "bearer", next.Type)
	o.Bearer(next.Access).GET("/banks").Status(200)
	asha.GET("/banks").Status(200) // the access token lives until its own end

	other := o.SignIn(o.Address("asha"), apptest.GoodPassword)
	for _, body := range []any{refresh(""), refresh(next.Access), refresh(o.Expired(next.Refresh)), refresh(apptest.OperatorKey), nil, `{}`} {
		a := stranger.POST(apptest.Auth+"/refresh", body).Problem(401, refused)
		require.Empty(t, a.Header("Set-Cookie"))
	}
	a = stranger.With("Cookie", "bahi_refresh=x").POST(apptest.Auth+"/refresh", `{}`).Problem(401, refused)
	require.Equal(t, "bahi_refresh=; Path=/api/v1/auth; Max-Age=0; HttpOnly; Secure; SameSite=Lax", a.Header("Set-Cookie"))
	var third apptest.Tokens
	stranger.POST(apptest.Auth+"/refresh", refresh(next.Refresh)).Status(200).JSON(&third) // none of the refusals ended the session

	// A token used twice may be stolen (G2): its family of sessions ends, and no other.
	stranger.POST(apptest.Auth+"/refresh", refresh(asha.Refresh)).Problem(401, refused)
	stranger.POST(apptest.Auth+"/refresh", refresh(third.Refresh)).Problem(401, refused)
	for _, token := range []string{asha.Access, next.Access, third.Access} {
		o.Bearer(token).GET("/banks").Problem(401, "Not authenticated")
	}
	o.Bearer(other.Access).GET("/banks").Status(200)
}

func TestLogoutEndsTheSessionAtOnce(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("asha"))
	other := o.SignIn(o.Address("asha"), apptest.GoodPassword)
	a := asha.POST(apptest.Auth+"/logout", nil).Status(200)
	require.Equal(t, "message", fieldsOf(t, a))
	cookie := apptest.Cookies(a.Response)["bahi_refresh"]
	require.Empty(t, cookie.Value)
	require.Negative(t, cookie.MaxAge)
	require.Equal(t, "/api/v1/auth", cookie.Path)
	asha.GET("/banks").Problem(401, "Not authenticated")
	asha.POST(apptest.Auth+"/logout", nil).Problem(401, "Not authenticated")
	o.Anonymous().POST(apptest.Auth+"/refresh", map[string]string{"refresh_token": asha.Refresh}).Problem(401,
		"Invalid or expired refresh token")
	o.Bearer(other.Access).POST(apptest.Auth+"/logout", `{"refresh_token":"what older clients send"}`).Status(200)
	o.Operator().POST(apptest.Auth+"/logout", nil).Problem(403, "Only a user who signed in can do this")
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
