package main_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/fileblob"

	"bahi/http/api/apitest"
	"bahi/internal/app"
)

const me = "/api/v1/users/me"

func TestSomebodyReadsAndChangesTheirAccount(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	a := asha.GET(me).Status(200)
	require.Equal(t, "auth_provider company_id created_at delete_after email email_verified first_name id is_active last_login_at last_name"+
		" permissions phone phone_verified profile_picture_url workspace_id", fieldsOf(t, a))
	u := asha.me()
	require.Equal(t, asha.User.ID, u.ID)
	require.Equal(t, []string{"asha@example.com", "Asha", "Soni", "email"}, []string{u.Email, u.FirstName, *u.LastName, u.AuthProvider})
	require.Equal(t, []bool{true, false, true}, []bool{u.EmailVerified, u.PhoneVerified, u.IsActive})
	require.Equal(t, map[string]any{"ledger": "write", "messaging": "write", "marketplace": "write", "audit": "write"}, u.Permissions)
	require.Nil(t, u.Phone)
	require.Nil(t, u.CompanyID)
	require.Nil(t, u.Picture)
	require.Nil(t, u.DeleteAfter)
	require.WithinDuration(t, time.Now(), *u.LastLoginAt, time.Minute)
	require.Equal(t, "no-store", a.Header("Cache-Control"))

	var changed userAnswer
	a = asha.PUT(me, `{"first_name":" आशा ","phone":"98123 45678"}`).Status(200).JSON(&changed)
	require.NotEmpty(t, a.Header("Bahi-Position"))
	require.Equal(t, []string{"आशा", "Soni", "+919812345678"}, []string{changed.FirstName, *changed.LastName, *changed.Phone})
	require.Equal(t, changed, asha.me())
	before := o.head()
	asha.PUT(me, `{}`).Status(200).JSON(&changed) // nothing is nothing
	asha.PUT(me, `{"id":"x","email_verified":true,"permissions":{"operator":true},"colour":"red"}`).Status(200).JSON(&changed)
	require.Equal(t, before, o.head())
	require.Equal(t, changed, asha.me())
	asha.PUT(me, `{"phone":""}`).Status(200).JSON(&changed)
	require.Nil(t, changed.Phone)

	const validation = "Validation error"
	asha.PUT(me, `{"email":"x","first_name":"","last_name":"a\u0007","phone":"call me"}`).Problem(422, validation, "email", "expected an email address",
		"first_name", "1 to 100 characters", "last_name", "control characters are not allowed", "phone", "expected a telephone number, as in +919812345678")
	asha.PUT(me, `{"first_name":7}`).Problem(422, validation, "first_name", "expected a text")
	asha.PUT(me, `{"first_name":"`+strings.Repeat("a", 500)+`"}`).Problem(422, validation)
	for _, body := range []string{``, `{`, `{"first_name":"a","first_name":"b"}`} {
		asha.PUT(me, body).Status(400)
	}
	asha.PUT(me, `{"first_name":"`+strings.Repeat("a", 1<<20)+`"}`).Problem(413, "The request body is too large")
	require.Equal(t, "आशा", asha.me().FirstName)
	o.operator().GET(me).Problem(403, "Only a user who signed in can do this")
}

func TestAnotherAddressCountsAtOnceAndIsToBeVerified(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	o.person("ravi@example.com")
	asha.PUT(me, `{"email":"Ravi@example.com"}`).Problem(409, "Email already in use")
	asha.PUT(me, `{"email":"ravi@example.com","first_name":"Usha"}`).Problem(409, "Email already in use")
	require.Equal(t, "Asha", asha.me().FirstName, "all or nothing")
	asha.PUT(me, `{"email":"ASHA@example.com"}`).Status(200) // it is hers already
	require.True(t, asha.me().EmailVerified)

	var changed userAnswer
	asha.PUT(me, `{"email":"asha@example.org"}`).Status(200).JSON(&changed)
	require.Equal(t, "asha@example.org", changed.Email)
	require.False(t, changed.EmailVerified)
	o.mailed("asha@example.com", "Your email address at Bahi was changed", 1)
	_, token := link(t, o.mailed("asha@example.org", verifySubject, 1))
	sign := func(email string) map[string]string {
		return map[string]string{"email": email, "password": goodPassword}
	}
	o.stranger().POST(auth+"/login", sign("asha@example.com")).Problem(401, "Invalid email or password")
	o.worked("send_verification")
	o.laterMails()
	o.stranger().POST(auth+"/login", sign("asha@example.org")).Problem(403, "Email not verified")
	_, newer := link(t, o.mailed("asha@example.org", verifySubject, 2)) // the login asked for one
	o.stranger().POST(auth+"/verify-email", map[string]string{"token": token}).Problem(400, "Invalid or expired verification token")
	o.stranger().POST(auth+"/verify-email", map[string]string{"token": newer}).Status(200)
	o.signIn("asha@example.org", goodPassword)
	o.stranger().POST(auth+"/register", registration("asha@example.com")).Status(201) // it is free again
}

func TestAnotherPasswordEndsTheOtherSessions(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	other := o.signIn("asha@example.com", goodPassword)
	change := func(current, next string) map[string]string {
		return map[string]string{"current_password": current, "new_password": next}
	}
	asha.POST(me+"/password", change("not mine at all", "jadau and polki")).Problem(400, "Incorrect current password")
	asha.POST(me+"/password", change("", "jadau and polki")).Problem(400, "Incorrect current password")
	asha.POST(me+"/password", change(goodPassword, "short")).Problem(422, "Validation error", "new_password", "at least 8 characters are needed")
	asha.POST(me+"/password", change(goodPassword, "asha@2025!")).Problem(422, "Validation error", "new_password", "must not contain your name or email address")
	asha.POST(me+"/password", `{}`).Problem(422, "Validation error", "current_password", "is required", "new_password", "is required")
	asha.POST(me+"/password", `{"current_password":1,"new_password":[]}`).Problem(422, "Validation error", "current_password", "expected a text", "new_password", "expected a text")
	asha.POST(me+"/password", `{`).Status(400)
	o.bearer(other.Access).GET("/banks").Status(200)

	a := asha.POST(me+"/password", change(goodPassword, "jadau and polki")).Status(200)
	require.Equal(t, "message", fieldsOf(t, a))
	asha.GET("/banks").Status(200)
	var next tokens
	o.stranger().POST(auth+"/refresh", map[string]string{"refresh_token": asha.Refresh}).Status(200).JSON(&next)
	o.bearer(other.Access).GET("/banks").Problem(401, "Not authenticated")
	o.stranger().POST(auth+"/refresh", map[string]string{"refresh_token": other.Refresh}).Problem(401, "Invalid or expired refresh token")
	o.stranger().POST(auth+"/login", map[string]string{"email": "asha@example.com", "password": goodPassword}).Problem(401, "Invalid email or password")
	o.signIn("asha@example.com", "jadau and polki")
}

func TestDeletionIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s := testSettings(t, testDatabase(t))
	s.Outside.AdminEmail, s.Outside.Grace = "office@example.com", new(72*time.Hour)
	o := startAs(t, s)
	asha := o.person("asha@example.com")
	a := asha.POST(me+"/delete-request", nil).Status(200)
	require.Equal(t, "message", fieldsOf(t, a))
	first := *asha.me().DeleteAfter
	require.WithinDuration(t, time.Now().Add(72*time.Hour), first, time.Minute)
	text := o.mailed("office@example.com", "An account is to be deleted", 1)
	require.Contains(t, text, asha.User.ID)
	require.NotContains(t, text, "asha")
	head := o.head()
	require.Equal(t, a.Text, asha.POST(me+"/delete-request", nil).Status(200).Text)
	require.Equal(t, head, o.head())
	require.Equal(t, first, *asha.me().DeleteAfter)
	o.signIn("asha@example.com", goodPassword) // until then
}

func TestARequestAboutOneselfIsDoneOnceByItsKey(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	by := func(key string) *apitest.Client { return asha.With("Idempotency-Key", key) }
	again := func(a *apitest.Answer) *apitest.Answer {
		t.Helper()
		require.Equal(t, "true", a.Status(200).Header("Idempotency-Replayed"))
		return a
	}
	by("a").PUT(me, `{"first_name":"Usha","email":"usha@example.com"}`).Status(200)
	by("b").PUT(me, `{"first_name":"Asha"}`).Status(200)
	head := o.head()
	var u userAnswer
	again(by("a").PUT(me, `{"first_name":"Usha","email":"usha@example.com"}`)).JSON(&u)
	require.Equal(t, []string{"Asha", "usha@example.com"}, []string{u.FirstName, u.Email})
	by("a").PUT(me, `{"first_name":"Ravi"}`).Status(422)

	require.Equal(t, head, o.head())
	const change = `{"current_password":"` + goodPassword + `","new_password":"jadau and polki"}`
	by("c").POST(me+"/password", `{"current_password":"wrong one","new_password":"jadau and polki"}`).Problem(400, "Incorrect current password")
	by("c").POST(me+"/password", change).Status(200) // a refusal burns no key
	again(by("c").POST(me+"/password", change))
	asha.POST(me+"/password", change).Problem(400, "Incorrect current password")

	red := painted(t, color.RGBA{200, 0, 0, 255}, 8, 8)
	upload(t, by("d"), "image/png", red).Status(200).JSON(&u)
	first := *u.Picture
	again(upload(t, by("d"), "image/png", red)).JSON(&u)
	key := func(link string) string {
		parsed, err := url.Parse(link)
		require.NoError(t, err)
		return parsed.Query().Get("obj")
	}
	require.Equal(t, key(first), key(*u.Picture))
	upload(t, by("d"), "image/png", painted(t, color.White, 8, 8)).Status(422)
	kept, err := o.sys.Blobs.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	by("e").POST(me+"/delete-request", nil).Status(200)
	again(by("e").POST(me+"/delete-request", nil))
}

// form is a body with a file, and its Content-Type.
func form(t testing.TB, kind string, content []byte) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="asha.png"`}, "Content-Type": {kind},
	})
	require.NoError(t, err)
	_, err = part.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes(), w.FormDataContentType()
}

// painted is a PNG of one colour.
func painted(t testing.TB, c color.Color, width, height int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{c})
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

// upload sets somebody's picture.
func upload(t testing.TB, c *apitest.Client, kind string, content []byte) *apitest.Answer {
	t.Helper()
	body, contentType := form(t, kind, content)
	return c.With("Content-Type", contentType).POST(me+"/profile-picture", body)
}

func TestAPictureIsSeenByItsLinkUntilItIsReplaced(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, stranger := o.person("asha@example.com"), o.stranger()
	red := painted(t, color.RGBA{200, 0, 0, 255}, 40, 30)
	var u userAnswer
	upload(t, asha.Client, "image/png", red).Status(200).JSON(&u)
	require.Equal(t, asha.User.ID, u.ID)
	first := o.path(*u.Picture)
	a := stranger.GET(first).Status(200)
	require.Equal(t, "image/jpeg", a.Header("Content-Type"))
	require.Equal(t, "nosniff", a.Header("X-Content-Type-Options"))
	shown, _, err := image.Decode(strings.NewReader(a.Text))
	require.NoError(t, err)
	require.Equal(t, image.Pt(40, 30), shown.Bounds().Size())
	o.stranger().Do("HEAD", first, nil).Status(200)

	// It is a link for an hour, for this file, and for reading.
	link, err := url.Parse(first)
	require.NoError(t, err)
	for name := range link.Query() {
		q := link.Query()
		q.Set(name, q.Get(name)+"1")
		stranger.GET(link.Path + "?" + q.Encode()).Status(403)
		q.Del(name)
		stranger.GET(link.Path + "?" + q.Encode()).Status(403)
	}
	stranger.GET(link.Path).Status(403)
	stranger.GET("/blobs/").Status(403)
	stranger.POST(first, nil).Status(405)
	stranger.DELETE(first).Status(405)
	require.Equal(t, 403, stranger.GET(o.blobLink(link.Query().Get("obj"), -time.Second)).Response.StatusCode)
	stranger.GET(o.blobLink(link.Query().Get("obj"), time.Minute)).Status(200)

	upload(t, asha.Client, "application/octet-stream", painted(t, color.RGBA{0, 0, 200, 255}, 2000, 1000)).Status(200).JSON(&u)
	second := o.path(*u.Picture)
	stranger.GET(second).Status(200)
	stranger.GET(first).Status(404)
	require.NotEqual(t, first, second)
	require.NotContains(t, second, asha.User.ID)
}

func TestWhatIsNoPictureIsRefused(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	const notImage = "File must be an image"
	red := painted(t, color.RGBA{200, 0, 0, 255}, 40, 30)
	for _, content := range [][]byte{[]byte("I am a picture"), []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), []byte("GIF89a"), []byte("%PDF-1.7"), red[:40], red[8:]} {
		upload(t, asha.Client, "image/png", content).Problem(400, notImage)
	}
	upload(t, asha.Client, "image/png", painted(t, color.White, 6001, 1)).Problem(413, "The picture is too large: at most 5 MB and 6000 x 6000 pixels")
	upload(t, asha.Client, "image/png", append(red, make([]byte, 5<<20)...)).Problem(413, "The file is too large: at most 5 MB")
	upload(t, asha.Client, "image/png", nil).Problem(400, notImage)
	asha.POST(me+"/profile-picture", `{}`).Status(415)
	asha.With("Content-Type", "multipart/form-data; boundary=x").POST(me+"/profile-picture", "--x").Status(400)
	require.Nil(t, asha.me().Picture)
	upload(t, o.stranger(), "image/png", red).Problem(401, "Not authenticated")
	keys, err := o.sys.Blobs.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, keys)
}

// path is what follows the server's address in a link.
func (o *office) path(link string) string {
	o.t.Helper()
	path, ours := strings.CutPrefix(link, app.OwnAddress)
	require.True(o.t, ours, link)
	return path
}

// blobLink signs a link to a picture as the system does, with an end of the test's.
func (o *office) blobLink(key string, lasts time.Duration) string {
	o.t.Helper()
	secret, err := o.sys.Vault.Named(o.t.Context(), "blob-links", app.KeySize)
	require.NoError(o.t, err)
	base, err := url.Parse(app.OwnAddress + app.BlobsPath)
	require.NoError(o.t, err)
	link, err := fileblob.NewURLSignerHMAC(base, secret).URLFromKey(o.t.Context(), key, &driver.SignedURLOptions{Method: http.MethodGet, Expiry: lasts})
	require.NoError(o.t, err)
	return o.path(link.String())
}
