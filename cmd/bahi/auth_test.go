package main_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/app"
)

const auth = "/api/v1/auth"

func TestSomebodyRegistersOnce(t *testing.T) {
	t.Parallel()
	o := start(t)
	stranger := o.stranger()
	a := stranger.POST(auth+"/register", `{"email":" Asha@Example.COM ","password":"kundan and meena","first_name":" Asha","last_name":"Soni "}`).Status(201)
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
	require.Equal(t, []string{"asha@example.com", "Asha", "Soni"}, []string{made.Email, made.FirstName, made.LastName})
	require.False(t, made.EmailVerified)
	require.WithinDuration(t, time.Now(), made.CreatedAt, time.Minute)

	// The address is theirs, however it is written, verified or not (G4).
	for _, email := range []string{"asha@example.com", "ASHA@example.com", "\tasha@EXAMPLE.com"} {
		stranger.POST(auth+"/register", registration(email)).Problem(409, "Email already registered")
	}
	page, token := link(t, o.mailed("asha@example.com", verifySubject, 1))
	require.Equal(t, app.OwnAddress+"/auth/verify-email", page)
	stranger.POST(auth+"/verify-email", map[string]string{"token": token}).Status(200).Body(`{"message":"Email verified"}`)
	stranger.POST(auth+"/register", registration("asha@example.com")).Problem(409, "Email already registered")
	require.Len(t, o.mails("asha@example.com", verifySubject), 1)
}

func TestARegistrationThatIsNotInOrderSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	o := start(t)
	before := o.head()
	stranger := o.stranger()
	const validation = "Validation error"
	stranger.POST(auth+"/register", `{}`).Problem(422, validation,
		"email", "is required", "password", "is required", "first_name", "is required", "last_name", "is required")
	stranger.POST(auth+"/register", `{"email":"asha","password":"short","first_name":" ","last_name":"`+strings.Repeat("s", 101)+`"}`).Problem(422, validation,
		"email", "expected an email address", "password", "at least 8 characters are needed", "first_name", "1 to 100 characters", "last_name", "1 to 100 characters")
	for password, why := range map[string]string{
		"kundan":                   "at least 8 characters are needed",
		strings.Repeat("kund", 40): "at most 128 characters are allowed",
		"password1":                "must not be one of the most common passwords",
		"aaaaaaaaaaaa":             "must not be one character repeated",
		"12345678":                 "must not be a plain sequence",
		"i am Asha Soni":           "must not contain your name or email address",
		"x-asha.soni-x":            "must not contain your name or email address",
	} {
		body := registration("asha.soni@example.com")
		body["password"] = password
		stranger.POST(auth+"/register", body).Problem(422, validation, "password", why)
	}
	for _, email := range []string{"", "@", "a@b", "a b@example.com", "a@exa mple.com", "a@example.com, b@example.com", "a@-x.com", strings.Repeat("a", 65) + "@example.com", "a\x00@example.com", "a@example.com\r\nBcc: b@example.com", `"a"@example.com`, "a@[127.0.0.1]"} {
		stranger.POST(auth+"/register", registration(email)).Status(422)
	}
	require.Equal(t, before, o.head())
}

func TestBodiesOfAuthAreRefusedWhenTheyCannotBeRead(t *testing.T) {
	t.Parallel()
	o := start(t)
	before := o.head()
	stranger := o.stranger()
	for path, fields := range map[string][]string{
		"/register": {"email", "password", "first_name", "last_name"}, "/login": {"email", "password"}, "/verify-email": {"token"},
		"/password-reset/request": {"email"}, "/password-reset/confirm": {"token", "new_password"}, "/refresh": {"refresh_token"},
	} {
		for _, body := range []string{`{`, `null null`, `{"email":}`, "\xff", `{"email":"a","email":"b","token":"a","token":"b"`, `[[[[`} {
			stranger.POST(auth+path, body).Status(400)
		}
		for _, body := range []string{`[]`, `"a"`, `7`} {
			stranger.POST(auth+path, body).Problem(422, "Validation error")
		}
		var wrong []string
		typed, long := map[string]any{}, map[string]any{}
		for _, field := range slices.Sorted(slices.Values(fields)) { // as encoding/json writes them
			wrong = append(wrong, field, "expected a text")
			typed[field], long[field] = 7, strings.Repeat("a", 5000)
		}
		stranger.POST(auth+path, typed).Problem(422, "Validation error", wrong...)
		stranger.POST(auth+path, long).Problem(422, "Validation error")
		stranger.POST(auth+path, `{"email":"`+strings.Repeat("a", 1<<20)+`"}`).Problem(413, "The request body is too large")
		stranger.With("Content-Type", "text/plain").POST(auth+path, `{}`).Status(415)
		if path != "/refresh" {
			stranger.POST(auth+path, nil).Problem(400, "A request body is required")
			var missing []string
			for _, field := range fields {
				missing = append(missing, field, "is required")
			}
			stranger.POST(auth+path, `{"colour":"red"}`).Problem(422, "Validation error", missing...)
		}
	}
	require.Equal(t, before, o.head())
}

func TestSignInTellsNobodyWhoIsRegistered(t *testing.T) {
	t.Parallel()
	o := start(t)
	stranger := o.stranger()
	const email = "asha@example.com"
	stranger.POST(auth+"/register", registration(email)).Status(201)
	_, first := link(t, o.mailed(email, verifySubject, 1))
	login := func(email, password string) map[string]string {
		return map[string]string{"email": email, "password": password}
	}
	for _, body := range []map[string]string{
		login(email, "another one"), login("nobody@example.com", goodPassword), login("no address", goodPassword), login("", ""), login(email, ""), login(email, strings.ToUpper(goodPassword)),
	} {
		a := stranger.POST(auth+"/login", body).Problem(401, "Invalid email or password")
		require.Empty(t, a.Header("Retry-After"))
	}
	require.Len(t, o.mails(email, verifySubject), 1, "only who knows the password has another mail sent")
	o.worked("send_verification")
	o.laterMails()
	stranger.POST(auth+"/login", login(email, goodPassword)).Problem(403, "Email not verified")
	_, second := link(t, o.mailed(email, verifySubject, 2))
	stranger.POST(auth+"/verify-email", map[string]string{"token": first}).Problem(400, "Invalid or expired verification token") // a newer one voids it
	stranger.POST(auth+"/verify-email", map[string]string{"token": second}).Status(200)

	a := stranger.POST(auth+"/login", login(" ASHA@example.com", goodPassword)).Status(200)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Equal(t, "access_token refresh_token token_type user", fieldsOf(t, a))
	require.Empty(t, a.Header("Set-Cookie"), "only browsers that come from a provider get a cookie")
	var in signedIn
	a.JSON(&in)
	require.Equal(t, "bearer", in.Type)
	require.Equal(t, email, in.User.Email)
	require.Equal(t, "Asha", in.User.FirstName)
	for token, lifetime := range map[string]time.Duration{in.Access: time.Hour, in.Refresh: 7 * 24 * time.Hour} {
		claims := jwt.MapClaims{}
		_, _, err := jwt.NewParser().ParseUnverified(token, claims)
		require.NoError(t, err)
		ends, err := claims.GetExpirationTime()
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(lifetime), ends.Time, time.Minute)
		require.Equal(t, in.User.ID, claims["sub"])
	}
	o.bearer(in.Access).GET("/banks").Status(200).Body(`[]`)
}

func TestAMailedTokenWorksOnceInItsTimeForItsPurpose(t *testing.T) {
	t.Parallel()
	o := start(t)
	stranger := o.stranger()
	const email, badVerification, badReset = "asha@example.com", "Invalid or expired verification token", "Invalid or expired reset token"
	stranger.POST(auth+"/register", registration(email)).Status(201)
	_, verification := link(t, o.mailed(email, verifySubject, 1))
	verify := func(token string) map[string]string { return map[string]string{"token": token} }
	confirm := func(token, password string) map[string]string {
		return map[string]string{"token": token, "new_password": password}
	}
	o.swept()
	for _, token := range []string{"", "x", verification + "x", verification[1:], strings.ToUpper(verification), uuid.NewString()} {
		stranger.POST(auth+"/verify-email", verify(token)).Problem(400, badVerification)
		stranger.POST(auth+"/password-reset/confirm", confirm(token, "jadau and polki")).Problem(400, badReset)
	}
	stranger.POST(auth+"/password-reset/confirm", confirm(verification, "jadau and polki")).Problem(400, badReset)
	o.sql(`update account.mailed_token set expires_at = now() - interval '1 second'`)
	stranger.POST(auth+"/verify-email", verify(verification)).Problem(400, badVerification)
	o.sql(`update account.mailed_token set expires_at = now() + interval '1 minute'`)
	stranger.POST(auth+"/verify-email", verify(verification)).Status(200)
	stranger.POST(auth+"/verify-email", verify(verification)).Problem(400, badVerification)

	in := o.signIn(email, goodPassword)
	known := stranger.POST(auth+"/password-reset/request", map[string]string{"email": "Asha@example.com "}).Status(200)
	unknown := stranger.POST(auth+"/password-reset/request", map[string]string{"email": "nobody@example.com"}).Status(200)
	require.Equal(t, known.Text, unknown.Text)
	require.Equal(t, known.Header("Bahi-Position"), unknown.Header("Bahi-Position"))
	require.Equal(t, "message", fieldsOf(t, known))
	stranger.POST(auth+"/password-reset/request", `{"email":"no address"}`).Problem(422, "Validation error", "email", "expected an email address")
	page, reset := link(t, o.mailed(email, resetSubject, 1))
	require.Equal(t, app.OwnAddress+"/auth/reset-password", page)

	stranger.POST(auth+"/verify-email", verify(reset)).Problem(400, badVerification)
	stranger.POST(auth+"/password-reset/confirm", confirm(reset, "soni")).Problem(422, "Validation error", "new_password", "at least 8 characters are needed")
	stranger.POST(auth+"/password-reset/confirm", confirm(reset, "soni-asha-1")).Problem(422, "Validation error", "new_password", "must not contain your name or email address")
	o.bearer(in.Access).GET("/banks").Status(200)
	stranger.POST(auth+"/password-reset/confirm", confirm(reset, "jadau and polki")).Status(200) // what was refused did not spend it
	stranger.POST(auth+"/password-reset/confirm", confirm(reset, "jadau and pearls")).Problem(400, badReset)
	o.bearer(in.Access).GET("/banks").Problem(401, "Not authenticated") // G3: all sessions end
	stranger.POST(auth+"/refresh", map[string]string{"refresh_token": in.Refresh}).Problem(401, "Invalid or expired refresh token")
	stranger.POST(auth+"/login", map[string]string{"email": email, "password": goodPassword}).Problem(401, "Invalid email or password")
	o.signIn(email, "jadau and polki")
	require.Empty(t, o.mails("nobody@example.com", resetSubject))

	// Of two requests the newer one counts, until an hour later none does.
	for nth := 2; nth <= 3; nth++ {
		o.worked("send_password_reset") // while one is on its way, no other follows
		o.laterMails()
		stranger.POST(auth+"/password-reset/request", map[string]string{"email": email}).Status(200)
		_, newer := link(t, o.mailed(email, resetSubject, nth))
		stranger.POST(auth+"/password-reset/confirm", confirm(reset, "jadau and pearls")).Problem(400, badReset)
		reset = newer
	}
	o.sql(`update account.mailed_token set expires_at = now() - interval '1 second'`)
	stranger.POST(auth+"/password-reset/confirm", confirm(reset, "jadau and pearls")).Problem(400, badReset)
}

func TestARefreshTokenIsGoodOnce(t *testing.T) {
	t.Parallel()
	o := start(t)
	stranger := o.stranger()
	asha := o.person("asha@example.com")
	const refused = "Invalid or expired refresh token"
	refresh := func(token string) map[string]string { return map[string]string{"refresh_token": token} }
	a := stranger.POST(auth+"/refresh", refresh(asha.Refresh)).Status(200)
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Empty(t, a.Header("Set-Cookie"), "who sends the token keeps it")
	var next tokens
	a.JSON(&next)
	require.Equal(t, "bearer", next.Type)
	o.bearer(next.Access).GET("/banks").Status(200)
	asha.GET("/banks").Status(200) // the access token lives until its own end

	other := o.signIn("asha@example.com", goodPassword)
	for _, token := range []string{"", "x", next.Access, o.expired(next.Refresh), next.Refresh + "x", "a.b.c", testOperatorKey} {
		a := stranger.POST(auth+"/refresh", refresh(token)).Problem(401, refused)
		require.Empty(t, a.Header("Set-Cookie"))
	}
	stranger.POST(auth+"/refresh", nil).Problem(401, refused)
	a = stranger.POST(auth+"/refresh", `{}`).Problem(401, refused)
	require.Empty(t, a.Header("Set-Cookie"))
	a = stranger.With("Cookie", "bahi_refresh=x").POST(auth+"/refresh", `{}`).Problem(401, refused)
	require.Equal(t, "bahi_refresh=; Path=/api/v1/auth; Max-Age=0; HttpOnly; Secure; SameSite=Lax", a.Header("Set-Cookie"))
	var third tokens
	stranger.POST(auth+"/refresh", refresh(next.Refresh)).Status(200).JSON(&third) // none of those ended the session

	// Somebody else has it too (G2): the whole family ends, and nothing but the family.
	stranger.POST(auth+"/refresh", refresh(asha.Refresh)).Problem(401, refused)
	stranger.POST(auth+"/refresh", refresh(third.Refresh)).Problem(401, refused)
	for _, token := range []string{asha.Access, next.Access, third.Access} {
		o.bearer(token).GET("/banks").Problem(401, "Not authenticated")
	}
	o.bearer(other.Access).GET("/banks").Status(200)
}

func TestLogoutEndsTheSessionAtOnce(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	other := o.signIn("asha@example.com", goodPassword)
	a := asha.POST(auth+"/logout", nil).Status(200)
	require.Equal(t, "message", fieldsOf(t, a))
	cookie := cookies(a.Response)["bahi_refresh"]
	require.Empty(t, cookie.Value)
	require.Negative(t, cookie.MaxAge)
	require.Equal(t, "/api/v1/auth", cookie.Path)
	asha.GET("/banks").Problem(401, "Not authenticated")
	asha.POST(auth+"/logout", nil).Problem(401, "Not authenticated")
	o.stranger().POST(auth+"/refresh", map[string]string{"refresh_token": asha.Refresh}).Problem(401, "Invalid or expired refresh token")
	o.bearer(other.Access).POST(auth+"/logout", `{"refresh_token":"what older clients send"}`).Status(200)
	o.bearer(other.Access).GET("/banks").Problem(401, "Not authenticated")
	o.operator().POST(auth+"/logout", nil).Problem(403, "Only a user who signed in can do this")
	o.stranger().POST(auth+"/logout", nil).Problem(401, "Not authenticated")
}

func TestSigningInIgnoresIdempotencyKeys(t *testing.T) {
	t.Parallel()
	o := start(t)
	keyed := o.stranger().With("Idempotency-Key", "k")
	keyed.POST(auth+"/register", registration("asha@example.com")).Status(201)
	a := keyed.POST(auth+"/register", registration("asha@example.com")).Problem(409, "Email already registered")
	require.Empty(t, a.Header("Idempotency-Replayed"))
	keyed.POST(auth+"/register", registration("ravi@example.com")).Status(201) // and not 422
	_, token := link(t, o.mailed("asha@example.com", verifySubject, 1))
	keyed.POST(auth+"/verify-email", map[string]string{"token": token}).Status(200)
	keyed.POST(auth+"/verify-email", map[string]string{"token": token}).Problem(400, "Invalid or expired verification token")
	sign := map[string]string{"email": "asha@example.com", "password": goodPassword}
	var first, second signedIn
	keyed.POST(auth+"/login", sign).Status(200).JSON(&first)
	keyed.POST(auth+"/login", sign).Status(200).JSON(&second)
	require.NotEqual(t, first.Refresh, second.Refresh)
	for _, in := range []signedIn{first, second} {
		o.bearer(in.Access).With("Idempotency-Key", "k").POST(auth+"/logout", nil).Status(200)
		o.bearer(in.Access).GET("/banks").Problem(401, "Not authenticated")
	}
	keyed.With("Idempotency-Key", strings.Repeat("k", 300)).POST(auth+"/login", sign).Status(200)
}

// cookies are those that an answer sets, by name.
func cookies(r *http.Response) map[string]*http.Cookie {
	set := map[string]*http.Cookie{}
	for _, c := range r.Cookies() {
		set[c.Name] = c
	}
	return set
}
