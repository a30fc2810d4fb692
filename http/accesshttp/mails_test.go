package accesshttp_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apptest"
)

func TestMailsToStrangersHaveNoUserText(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	const words = "You won! https://evil.example"
	eve := apptest.Registration(o.Address("ravi"))
	eve["first_name"] = words
	o.Anonymous().POST(apptest.Auth+"/register", eve).Status(201)
	require.NotContains(t, o.Mailed(o.Address("ravi"), apptest.VerifySubject, 1), "You won") // with its space, which no token has
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", `{"email":o.Address("ravi")}`).Status(200)
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
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", `{"email":o.Address("new")}`).Status(200)
	require.Contains(t, o.Mailed(o.Address("new"), apptest.ResetSubject, 1), "Hello "+words+",")
}

// forgetful is a mail server that accepts the first mail and disconnects before it responds.
type forgetful struct {
	net.Listener

	mu    sync.Mutex
	mails []string
}

func (f *forgetful) serve() {
	for {
		conn, err := f.Accept()
		if err != nil {
			return
		}
		_ = f.talk(textproto.NewConn(conn), conn)
		_ = conn.Close()
	}
}

func (f *forgetful) talk(c *textproto.Conn, conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if err := c.PrintfLine("220 mail.example"); err != nil {
		return err
	}
	for {
		line, err := c.ReadLine()
		if err != nil {
			return err
		}
		answer := "250 OK"
		switch verb, _, _ := strings.Cut(line, " "); strings.ToUpper(verb) {
		case "DATA":
			if err := c.PrintfLine("354 go on"); err != nil {
				return err
			}
			text, err := io.ReadAll(bufio.NewReader(c.DotReader()))
			if err != nil {
				return err
			}
			f.mu.Lock()
			f.mails = append(f.mails, string(text))
			first := len(f.mails) == 1
			f.mu.Unlock()
			if first {
				return errors.New("gone")
			}
		case "QUIT":
			return c.PrintfLine("221 bye")
		}
		if err := c.PrintfLine("%s", answer); err != nil {
			return err
		}
	}
}

// got waits for the nth mail, counted from 1.
func (f *forgetful) got(t *testing.T, nth int) (text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.mails) >= nth {
			text = f.mails[nth-1]
		}
		return text != ""
	}, time.Minute, 5*time.Millisecond)
	return text
}

func TestRepeatedMailIsTheSame(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &forgetful{Listener: listener}
	go server.serve()
	t.Cleanup(func() { _ = listener.Close() })
	o := apptest.StartWithMailServer(t, listener.Addr().String())
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration("asha@example.com")).Status(201)
	first, again := server.got(t, 1), server.got(t, 2)
	name := func(text string) string {
		m, err := mail.ReadMessage(strings.NewReader(text))
		require.NoError(t, err)
		return m.Header.Get("Message-ID")
	}
	require.NotEmpty(t, name(first))
	require.Equal(t, name(first), name(again))
	token := func(text string) string { // quoted-printable
		_, token := apptest.Link(t, strings.NewReplacer("=\n", "", "=3D", "=").Replace(text))
		return token
	}
	require.Equal(t, token(first), token(again))
	o.WaitJobs("send_verification")
	o.Anonymous().POST(apptest.Auth+"/verify-email", map[string]string{"token": token(first)}).Status(200)
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

func TestDeletionWithoutAnAdministratorIsLogged(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	cmd := apptest.Command(t, data, "serve")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+apptest.Database(t))
	p := apptest.Serve(t, cmd)
	p.Ready()
	asha := apptest.Visited(p, data).Person("asha@example.com")
	require.NotContains(t, p.Text(), "BAHI_ADMIN_EMAIL")
	asha.POST(apptest.Me+"/delete-request", nil).Status(200)
	p.Until(func(said, _ string) bool {
		return strings.Contains(said, `level=WARN msg="deletion requested, but BAHI_ADMIN_EMAIL names no administrator" user=`+
			asha.User.ID)
	})
}

func TestUndoReturnsAStolenAccount(t *testing.T) {
	t.Parallel()
	const noticed, undo = "Your email address at Bahi was changed", apptest.Auth + "/email-change/undo"
	o := apptest.Share(t)
	eve := o.Person(o.Address("asha")) // the attacker has Asha's password
	eve.PUT(apptest.Me, map[string]string{"email": o.Address("eve")}).Status(200)
	address, token := apptest.Link(t, o.Mailed(o.Address("asha"), noticed, 1))
	require.Equal(t, app.OwnAddress+"/auth/undo-email-change", address)
	with := func(token string) map[string]string { return map[string]string{"token": token} }
	_, verify := apptest.Link(t, o.Mailed(o.Address("eve"), apptest.VerifySubject, 1))
	o.Anonymous().POST(apptest.Auth+"/verify-email", with(verify)).Status(200)
	eve.POST(apptest.Me+"/delete-request", nil).Status(200)

	o.Anonymous().POST(undo, with(verify)).Problem(400, "Invalid or expired undo token")
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration(o.Address("asha"))).Status(201) // it was free
	_, verify = apptest.Link(t, o.Mailed(o.Address("asha"), apptest.VerifySubject, 2))
	o.Anonymous().POST(apptest.Auth+"/verify-email", with(verify)).Status(200)
	o.Anonymous().POST(undo, with(token)).Problem(409, "This email address belongs to another account now")
	next := o.SignIn(o.Address("asha"), apptest.GoodPassword)
	o.Bearer(next.Access).PUT(apptest.Me, map[string]string{"email": o.Address("usha")}).Status(200)

	a := o.Anonymous().POST(undo, with(token)).Status(200)
	require.Contains(t, a.Text, "all its sessions have ended")
	require.NotEmpty(t, a.Header("Bahi-Position"))
	o.Anonymous().POST(undo, with(token)).Problem(400, "Invalid or expired undo token")
	eve.GET(apptest.Me).Problem(401, "Not authenticated")
	o.Anonymous().POST(apptest.Auth+"/login", map[string]string{"email": o.Address("asha"), "password": apptest.GoodPassword}).Problem(401,
		"Invalid email or password")
	o.Mailed(o.Address("eve"), "The change of your email address at Bahi was undone", 1)
	o.Mailed(o.Address("asha"), "Your account at Bahi is to be deleted", 1)
	_, reset := apptest.Link(t, o.Mailed(o.Address("asha"), apptest.ResetSubject, 1))
	o.Anonymous().POST(apptest.Auth+"/password-reset/confirm",
		map[string]string{"token": reset, "new_password": "jadau and polki"}).Status(200)
	asha := apptest.Person{Client: o.Bearer(o.SignIn(o.Address("asha"), "jadau and polki").Access)}
	require.Equal(t, eve.User.ID, asha.Me().ID)
	require.True(t, asha.Me().EmailVerified)
}
