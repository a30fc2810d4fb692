package accesshttp_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"maps"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/access/picture"
	"bahi/eventstore"
	"bahi/internal/app"
	"bahi/internal/cli"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/providers/mail"
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

	apptest.Upload(t, asha.Client, "application/octet-stream", apptest.Painted(t, color.RGBA{0, 0, 200, 255}, 2000, 1000)).Status(200).JSON(&u)
	second := o.Path(*u.Picture)
	stranger.GET(second).Status(200)
	stranger.GET(first).Status(404)
	require.NotEqual(t, first, second)
	require.NotContains(t, second, asha.User.ID)
}

// invitation is the response to an invitation.
type invitation struct {
	ID          uuid.UUID      `json:"id"`
	Email       *string        `json:"email"`
	Permissions map[string]any `json:"permissions"`
	InvitedBy   string         `json:"invited_by"`
	ExpiresAt   time.Time      `json:"expires_at"`
}

func TestInvitedUserWorksInTheOthersBooks(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi := o.Person(o.Address("asha")), o.Person(o.Address("ravi"))
	account := apptest.Open(asha.Client, "HDFC")
	apptest.Post(asha.Client, account, apptest.Deposit("2025-03-01", "12.5"))
	inAshas := ravi.With("Bahi-Workspace", asha.Workspace)
	workspace := "/api/v1/workspaces/" + asha.Workspace

	var sent invitation
	asha.POST(workspace+"/invitations", apptest.Invite("x", `{}`)).Problem(422, "Validation error", "email", "expected an email address",
		"permissions", "at least one area is required, and a workspace cannot grant operator")
	a := asha.POST(workspace+"/invitations", apptest.Invite(" "+strings.ToUpper(o.Address("ravi")),
		`{"ledger":"read","marketplace":"read"}`)).Status(201)
	a.JSON(&sent)
	require.Equal(t, []string{o.Address("ravi"), "user:" + asha.User.ID}, []string{*sent.Email, sent.InvitedBy})
	require.Equal(t, map[string]any{"ledger": "read", "marketplace": "read"}, sent.Permissions)
	require.WithinDuration(t, time.Now().Add(7*24*time.Hour), sent.ExpiresAt, time.Minute)
	page, token := apptest.Link(t, o.Mailed(o.Address("ravi"), apptest.InviteSubject, 1))
	require.Equal(t, app.OwnAddress+"/invitations/accept", page)
	const refused = "Invalid or expired invitation token"
	accept := map[string]string{"token": token}
	elsewhere := ravi.Workspace + token[strings.IndexByte(token, '.'):]
	ravi.POST("/api/v1/invitations/accept", map[string]string{"token": elsewhere}).Problem(400, refused)
	asha.POST("/api/v1/invitations/accept", accept).Problem(409, "Already a member of this workspace")
	var joined struct {
		WorkspaceID string         `json:"workspace_id"`
		UserID      string         `json:"user_id"`
		Permissions map[string]any `json:"permissions"`
		Revision    int64          `json:"revision"`
	}
	ravi.POST("/api/v1/invitations/accept", accept).Status(200).JSON(&joined)
	require.Equal(t, []string{asha.Workspace, ravi.User.ID}, []string{joined.WorkspaceID, joined.UserID})
	require.Equal(t, sent.Permissions, joined.Permissions)
	ravi.POST("/api/v1/invitations/accept", accept).Problem(400, refused)

	// The new member reads there, and writes in his own workspace.
	require.Equal(t, "03-01 12.5", apptest.Balances(inAshas, apptest.Ledger(account)))
	inAshas.POST(apptest.Ledger(account), apptest.Deposit("2025-03-02", "1")).Problem(403, "Not enough permissions")
	apptest.Open(ravi.Client, "SBI")
	joined.Permissions = nil
	asha.PATCH(workspace+"/members/"+ravi.User.ID, `{"permissions":{"ledger":"write","marketplace":"none"}}`).Status(200).JSON(&joined)
	require.Equal(t, map[string]any{"ledger": "write"}, joined.Permissions)
	apptest.Post(inAshas, account, apptest.Deposit("2025-03-02", "1"))
	inAshas.GET(workspace+"/members").Problem(403, "Not enough permissions")
	asha.DELETE(workspace + "/members/" + ravi.User.ID).Status(204).None()
	inAshas.GET("/banks").Problem(404, "Workspace not found")
	require.Equal(t, "03-01 12.5, 03-02 13.5", apptest.Balances(asha.Client, apptest.Ledger(account)))
}

func TestWorkspacesAndMembersAreListed(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi := o.Person(o.Address("asha")), o.Person(o.Address("ravi"))
	asha.Join(o, ravi, `{"ledger":"read","marketplace":"read"}`)
	var members []apptest.Member
	ravi.GET("/api/v1/workspaces/" + asha.Workspace + "/members").Status(200).JSON(&members) // without the header
	require.Len(t, members, 2)
	require.Equal(t, []string{asha.User.ID, o.Address("asha"), "Asha", "Soni"},
		[]string{members[0].UserID, *members[0].Email, *members[0].FirstName, *members[0].LastName})
	require.Equal(t, ravi.User.ID, members[1].UserID)
	require.Equal(t, "read", members[1].Permissions["ledger"])
	var workspaces []struct {
		ID          string         `json:"id"`
		Name        string         `json:"name"`
		Own         bool           `json:"own"`
		Permissions map[string]any `json:"permissions"`
		JoinedAt    time.Time      `json:"joined_at"`
	}
	ravi.GET("/api/v1/workspaces").Status(200).JSON(&workspaces)
	require.Equal(t, []any{ravi.Workspace, true, asha.Workspace, false},
		[]any{workspaces[0].ID, workspaces[0].Own, workspaces[1].ID, workspaces[1].Own})
	require.Equal(t, "Asha Soni", workspaces[1].Name)
	for _, name := range []string{"Soni Jewellers", "Younger"} {
		asha.POST("/api/v1/companies", map[string]string{"name": name}).Status(201)
	}
	ravi.GET("/api/v1/workspaces").Status(200).JSON(&workspaces)
	require.Equal(t, []string{"Asha Soni", "Soni Jewellers"}, []string{workspaces[0].Name, workspaces[1].Name})
	asha.GET("/api/v1/workspaces").Status(200).JSON(&workspaces)
	require.Len(t, workspaces, 1)
	o.Operator().GET("/api/v1/workspaces/" + asha.Workspace + "/members").Status(200).JSON(&members)
	require.Len(t, members, 2)
}

func TestAnInvitationIsForItsAddress(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi := o.Person(o.Address("asha")), o.Person(o.Address("ravi"))
	asha.POST("/api/v1/workspaces/"+asha.Workspace+"/invitations", apptest.Invite(o.Address("usha"), `{"ledger":"read"}`)).Status(201)
	_, token := apptest.Link(t, o.Mailed(o.Address("usha"), apptest.InviteSubject, 1))
	accept := map[string]string{"token": token}
	for range 2 {
		ravi.POST("/api/v1/invitations/accept", accept).Problem(403, "This invitation was sent to another address")
	}
	o.Operator().POST("/api/v1/invitations/accept", accept).Problem(403, "Only a user who signed in can do this")
	const strayed = "Somebody else tried to accept an invitation to your workspace"
	o.Mailed(o.Address("asha"), strayed, 1)
	usha := o.Person(o.Address("usha")) // the invitation waited for the account
	usha.POST("/api/v1/invitations/accept", accept).Status(200)
	o.WaitJobs("send_stray_notice")
	require.Len(t, o.Mails(o.Address("asha"), strayed), 1)
}

// fieldsOf returns the names of a response's fields.
func fieldsOf(t testing.TB, a *apitest.Answer) string {
	t.Helper()
	body := apitest.Read[map[string]any](a)
	return strings.Join(slices.Sorted(maps.Keys(body)), " ")
}

func TestMain(m *testing.M) { apptest.Main(m, cli.Run) }

func TestErasuresDoNotBlockSignInsAndAreScrubbedTogether(t *testing.T) {
	t.Parallel()
	database, data := apptest.Database(t), t.TempDir()
	cmd := apptest.Command(t, data, "serve")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+database, "BAHI_DELETION_GRACE=1ms", "BAHI_LIMIT_AUTH=1000/1m")
	p := apptest.Serve(t, cmd)
	p.Ready()
	o := apptest.Visited(p, data)
	o.Person("usha@example.com")
	leaving := []apptest.Person{o.Person("asha@example.com"), o.Person("ravi@example.com")}

	// A reader of a table blocks its rewrite.
	reader := pgtest.Connect(t, database)
	pgtest.Exec(t, reader, `begin; lock table account.session in access share mode`)
	for _, l := range leaving {
		l.POST(apptest.Me+"/delete-request", nil).Status(200)
	}
	const forgotten = `msg="scrubbed Postgres of erased users"`
	p.Until(func(said, _ string) bool {
		for _, l := range leaving {
			if !strings.Contains(said, `msg="user erased" user=`+l.User.ID) {
				return false
			}
		}
		return true
	})
	// The last job was added after the last erasure, and one runs at a time. Once it has failed, every later attempt covers all erasures.
	require.Eventually(t, func() bool {
		failed := 0
		for _, job := range o.Jobs("kind=scrub_tables") {
			if job.LastError != nil && strings.Contains(*job.LastError, "lock timeout") {
				failed++
			}
		}
		return failed == len(leaving)
	}, time.Minute, 20*time.Millisecond)
	began := time.Now()
	o.SignIn("usha@example.com", apptest.GoodPassword)
	require.Less(t, time.Since(began), apptest.Promptly)
	require.NotContains(t, p.Text(), forgotten)
	require.Eventually(t, func() bool { // an attempt from before the last erasure would not cover all
		return len(o.Jobs("kind=scrub_tables&state=retryable")) == len(leaving)
	}, time.Minute, 200*time.Millisecond)
	pgtest.Exec(t, reader, `rollback`)
	for _, waits := range o.Jobs("kind=scrub_tables&state=retryable") { // the longer the reader blocked, the later the next attempt
		o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", waits.ID), nil)
	}
	p.Until(func(said, _ string) bool {
		done := 0
		for line := range strings.Lines(said) {
			if strings.Contains(line, `msg="job done"`) && strings.Contains(line, "kind=scrub_tables") {
				done++
			}
		}
		return done == len(leaving)
	})
	require.Equal(t, 1, strings.Count(p.Text(), forgotten), "once for all erasures")
}

func TestEachNodeRemovesFilesOfUsersErasedElsewhere(t *testing.T) {
	t.Parallel()
	one := apptest.StartErasing(t)
	asha, ravi := one.Person("asha@example.com"), one.Person("ravi@example.com") // while no other node mails
	s := apptest.Settings(t, one.Database)
	other := apptest.StartAs(t, s)
	id := uuid.MustParse(asha.User.ID)
	// A node that dies in the middle leaves these files: here, and on both.
	left := func(o *apptest.Server) (files []string) {
		for _, folder := range []string{filepath.Join("blobs", picture.Folder(id)), "mail"} {
			found, err := filepath.Glob(filepath.Join(o.Sys.Settings.Data, folder, "*"))
			require.NoError(t, err)
			for _, file := range found {
				if folder != "mail" || strings.Contains(file, hex.EncodeToString(id[:])) {
					files = append(files, file)
				}
			}
		}
		return files
	}
	leave := func(o *apptest.Server) {
		require.NoError(t, o.Sys.Blobs.Put(t.Context(), picture.Folder(id)+"orphan", "image/png", []byte("orphan")))
		require.NoError(t, o.Sys.Mailer.Send(t.Context(), leftMail(id)))
		require.GreaterOrEqual(t, len(left(o)), 3) // including the file with its type
	}
	leave(one)
	leave(other)
	his := uuid.MustParse(ravi.User.ID)
	require.NoError(t, other.Sys.Blobs.Put(t.Context(), picture.Folder(his)+"kept", "image/png", []byte("his")))
	other.Stop()
	one.Erased(asha)
	require.Empty(t, left(one))
	require.NotEmpty(t, left(other))

	again := apptest.StartAs(t, s)
	require.Eventually(t, func() bool { return len(left(again)) == 0 }, time.Minute, 5*time.Millisecond)
	keys, err := again.Sys.Blobs.List(t.Context(), "pictures/")
	require.NoError(t, err)
	require.Equal(t, []string{picture.Folder(his) + "kept"}, keys)

	// A new user of the address keeps their mails.
	again.Stop()
	one.Person("asha@example.com")
	require.NoError(t, one.Sys.Eraser().Clean(t.Context()))
	require.Len(t, one.Mails("asha@example.com", apptest.VerifySubject), 1)
}

// leftMail returns a mail to a user that an erasure must find by its name.
func leftMail(id uuid.UUID) mail.Message {
	return mail.Message{ID: "verification-" + hex.EncodeToString(id[:]) + "-0", To: netmail.Address{Address: "asha@example.com"},
		Subject: "Late", Text: "Hello"}
}

// lossyLog is a log that loses the responses to changes of pictures.
type lossyLog struct {
	eventstore.Store

	lost atomic.Bool
}

func (d *lossyLog) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	done, err := d.Store.Append(ctx, t)
	for _, w := range t.Writes {
		if err == nil && d.lost.Load() && w.Events[0].Type == "UserPictureChanged" {
			err = eventstore.ErrInDoubt
		}
	}
	return done, err
}

func TestPictureOfAnUncertainChangeIsKept(t *testing.T) {
	t.Parallel()
	log := &lossyLog{}
	o := apptest.StartErasing(t, func(s *app.System) {
		log.Store = s.Store
		s.Accounts.Commands = commands.New(log, s.Vault, time.Now)
	})
	asha := o.Person("asha@example.com")
	red := apptest.Painted(t, color.RGBA{200, 0, 0, 255}, 40, 30)
	log.lost.Store(true)
	apptest.Upload(t, asha.Client, "image/png", red).Status(503)
	log.lost.Store(false)
	shown := asha.Me().Picture
	require.NotNil(t, shown)
	o.Anonymous().GET(o.Path(*shown)).Status(200)

	// A write in the log must succeed even if the previous picture cannot be deleted.
	keys, err := o.Sys.Blobs.List(t.Context(), "pictures/")
	require.NoError(t, err)
	require.Len(t, keys, 1)
	before := filepath.Join(o.Sys.Settings.Data, "blobs", keys[0])
	require.NoError(t, os.Remove(before))
	require.NoError(t, os.MkdirAll(filepath.Join(before, "in the way"), 0o700))
	apptest.Upload(t, asha.Client, "image/png", red).Status(200)
	require.NoError(t, os.RemoveAll(before))
	o.Erased(asha)
	keys, err = o.Sys.Blobs.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, keys)
}
