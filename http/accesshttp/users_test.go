package accesshttp_test

import (
	"image"
	"image/color"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestUserReadsAndChangesTheirAccount(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("asha"))
	a := asha.GET(apptest.Me).Status(200)
	require.Equal(t, "auth_provider company_id created_at delete_after email email_verified first_name id is_active last_login_at last_name"+
		" permissions phone phone_verified profile_picture_url workspace_id", fieldsOf(t, a))
	u := asha.Me()
	require.Equal(t, asha.User.ID, u.ID)
	require.Equal(t, []string{o.Address("asha"), "Asha", "Soni", "email"}, []string{u.Email, u.FirstName, *u.LastName, u.AuthProvider})
	require.Equal(t, []bool{true, false, true}, []bool{u.EmailVerified, u.PhoneVerified, u.IsActive})
	require.Equal(t, map[string]any{"ledger": "write", "messaging": "write", "marketplace": "write", "audit": "write"}, u.Permissions)
	require.Nil(t, u.Phone)
	require.Nil(t, u.CompanyID)
	require.Nil(t, u.Picture)
	require.Nil(t, u.DeleteAfter)
	require.WithinDuration(t, time.Now(), *u.LastLoginAt, time.Minute)
	require.Equal(t, "no-store", a.Header("Cache-Control"))

	var changed apptest.UserAnswer
	a = asha.PUT(apptest.Me, `{"first_name":" आशा ","phone":"98123 45678"}`).Status(200).JSON(&changed)
	require.NotEmpty(t, a.Header("Bahi-Position"))
	require.Equal(t, []string{"आशा", "Soni", "+919812345678"}, []string{changed.FirstName, *changed.LastName, *changed.Phone})
	require.Equal(t, changed, asha.Me())
	before := asha.GET(apptest.Me).Header("ETag")
	asha.PUT(apptest.Me, `{}`).Status(200).JSON(&changed) // an empty change changes nothing
	asha.PUT(apptest.Me, `{"id":"x","email_verified":true,"permissions":{"operator":true},"colour":"red"}`).Status(200).JSON(&changed)
	require.Equal(t, before, asha.GET(apptest.Me).Header("ETag"))
	require.Equal(t, changed, asha.Me())
	asha.PUT(apptest.Me, `{"phone":null}`).Status(200).JSON(&changed)
	require.Nil(t, changed.Phone)

	const validation = "Validation error"
	asha.PUT(apptest.Me, `{"email":"x","first_name":"","last_name":"a\u0007","phone":"a\u0007"}`).Problem(422, validation, "email",
		"expected an email address",
		"first_name", "1 to 100 characters", "last_name", "control characters are not allowed", "phone", "control characters are not allowed")
	asha.PUT(apptest.Me, `{"phone":"call \u202ame"}`).Status(200).Contains(`"phone":"call me"`, `"warnings":[{"field":"phone"`)
	require.NotContains(t, asha.PUT(apptest.Me, `{"phone":null}`).Status(200).Text, "warnings")
	require.Equal(t, "आशा", asha.Me().FirstName)
}

func TestChangedAddressCountsAtOnceAndNeedsVerification(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	first, next, taken := o.Address("asha"), o.Address("usha"), o.Address("ravi")
	asha := o.Person(first)
	o.Person(taken)
	asha.PUT(apptest.Me, map[string]string{"email": taken, "first_name": "Usha"}).Problem(409, "Email already in use")
	require.Equal(t, "Asha", asha.Me().FirstName, "a refused change changes nothing")
	asha.PUT(apptest.Me, map[string]string{"email": "ASHA" + first[len("asha"):]}).Status(200) // it is hers already
	require.True(t, asha.Me().EmailVerified)

	changed := apitest.Read[apptest.UserAnswer](asha.PUT(apptest.Me, map[string]string{"email": next}).Status(200))
	require.Equal(t, next, changed.Email)
	require.False(t, changed.EmailVerified)
	o.Mailed(first, "Your email address at Bahi was changed", 1)
	_, token := apptest.Link(t, o.Mailed(next, apptest.VerifySubject, 1))
	o.Anonymous().POST(apptest.Auth+"/login", map[string]string{"email": next, "password": apptest.GoodPassword}).Problem(403,
		"Email not verified")
	o.Anonymous().POST(apptest.Auth+"/verify-email", map[string]string{"token": token}).Status(200)
	o.SignIn(next, apptest.GoodPassword)
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration(first)).Status(201) // it is free again
}

func TestPictureHasALinkUntilItIsReplaced(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, stranger := o.Person(o.Address("asha")), o.Anonymous()
	red := apptest.Painted(t, color.RGBA{200, 0, 0, 255}, 40, 30)
	u := apitest.Read[apptest.UserAnswer](apptest.Upload(t, asha.Client, "image/png", red).Status(200))
	require.Equal(t, asha.User.ID, u.ID)
	first := o.Path(*u.Picture)
	a := stranger.GET(first).Status(200)
	require.Equal(t, "image/jpeg", a.Header("Content-Type"))
	require.Equal(t, "nosniff", a.Header("X-Content-Type-Options"))
	shown, _, err := image.Decode(strings.NewReader(a.Text))
	require.NoError(t, err)
	require.Equal(t, image.Pt(40, 30), shown.Bounds().Size())

	// The link is valid for an hour, for this file, and for reading.
	link, err := url.Parse(first)
	require.NoError(t, err)
	stranger.GET(link.Path).Status(403)
	stranger.POST(first, nil).Status(405)
	require.Equal(t, 403, stranger.GET(o.BlobLink(link.Query().Get("obj"), -time.Second)).Response.StatusCode)
	stranger.GET(o.BlobLink(link.Query().Get("obj"), time.Minute)).Status(200)

	apptest.Upload(t, asha.Client, "application/octet-stream", apptest.Painted(t, color.RGBA{0, 0, 200, 255}, 2000, 1000)).Status(200).JSON(&u)
	second := o.Path(*u.Picture)
	stranger.GET(second).Status(200)
	stranger.GET(first).Status(404)
	require.NotEqual(t, first, second)
	require.NotContains(t, second, asha.User.ID)
}
