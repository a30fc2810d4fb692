package accesshttp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestMailsToStrangersHaveNoUserText(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	const words = "You won! https://evil.example"
	eve := apptest.Registration(o.Address("ravi"))
	eve["first_name"] = words
	o.Anonymous().POST(apptest.Auth+"/register", eve).Status(201)
	require.NotContains(t, o.Mailed(o.Address("ravi"), apptest.VerifySubject, 1), "You won") // a token may contain the letters, but no space
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", map[string]string{"email": o.Address("ravi")}).Status(200)
	require.NotContains(t, o.Mailed(o.Address("ravi"), apptest.ResetSubject, 1), "You won")

	// An unverified address gets no notice that it was changed.
	asha := o.Person(o.Address("asha"))
	asha.PUT(apptest.Me, map[string]string{"email": o.Address("usha"), "first_name": words}).Status(200)
	asha.PUT(apptest.Me, map[string]string{"email": o.Address("new")}).Status(200)
	_, token := apptest.Link(t, o.Mailed(o.Address("new"), apptest.VerifySubject, 1))
	o.WaitJobs("send_email_notice")
	require.Len(t, o.Mails(o.Address("asha"), "Your email address at Bahi was changed"), 1)
	require.Empty(t, o.Mails(o.Address("usha"), "Your email address at Bahi was changed"))
	o.Anonymous().POST(apptest.Auth+"/verify-email", map[string]string{"token": token}).Status(200)
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", map[string]string{"email": o.Address("new")}).Status(200)
	require.Contains(t, o.Mailed(o.Address("new"), apptest.ResetSubject, 1), "Hello "+words+",")
}

func TestDeletionIsRequestedOnceAndMailed(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	s.Outside.AdminEmail, s.Outside.Grace = "office@example.com", new(72*time.Hour)
	o := apptest.StartAs(t, s)
	asha := o.Person("asha@example.com")
	a := asha.POST(apptest.Me+"/delete-request", nil).Status(200)
	require.Equal(t, "message", fieldsOf(t, a))
	first := *asha.Me().DeleteAfter
	require.WithinDuration(t, time.Now().Add(72*time.Hour), first, time.Minute)
	text := o.Mailed("office@example.com", "An account is to be deleted", 1)
	require.Contains(t, text, asha.User.ID)
	require.NotContains(t, text, "asha")
	text = o.Mailed("asha@example.com", "Your account at Bahi is to be deleted", 1)
	require.Contains(t, text, first.In(kolkata(t)).Format("2 January 2006, 15:04 MST"))
	require.Contains(t, text, "write to the administrator")
	head := o.Head()
	require.Equal(t, a.Text, asha.POST(apptest.Me+"/delete-request", nil).Status(200).Text)
	require.Equal(t, head, o.Head())
	require.Equal(t, first, *asha.Me().DeleteAfter)
	o.WaitJobs("send_deletion_receipt")
	require.Len(t, o.Mails("asha@example.com", "Your account at Bahi is to be deleted"), 1)
	o.SignIn("asha@example.com", apptest.GoodPassword) // until the deletion
}

func kolkata(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Kolkata")
	require.NoError(t, err)
	return zone
}
