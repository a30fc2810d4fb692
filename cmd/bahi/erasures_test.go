package main_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/access/picture"
	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/app"
)

// erased asks for somebody's deletion, and waits until they are erased.
func (o *office) erased(p person) {
	o.t.Helper()
	p.POST(me+"/delete-request", nil).Status(200)
	id := uuid.MustParse(p.User.ID)
	require.Eventually(o.t, func() bool {
		l, err := commands.Load(o.t.Context(), o.sys.Commands.Fresh(), user.Kind, id.String())
		require.NoError(o.t, err)
		return l.State.Erased
	}, time.Minute, 20*time.Millisecond)
}

// startErasing serves a system that erases people as soon as they ask for it.
func startErasing(t *testing.T, adapt ...func(*app.System)) *office {
	t.Helper()
	s := testSettings(t, testDatabase(t))
	s.Outside.Grace = new(time.Millisecond)
	return startAs(t, s, adapt...)
}

func TestErasuresStallNoSignInAndAreForgottenTogether(t *testing.T) {
	t.Parallel()
	database, data := testDatabase(t), t.TempDir()
	cmd := command(t, data, "serve")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+database, "BAHI_DELETION_GRACE=1ms", "BAHI_LIMIT_AUTH=1000/1m")
	p := serve(t, cmd)
	p.ready()
	o := visited(p, data)
	o.person("usha@example.com")
	leaving := []person{o.person("asha@example.com"), o.person("ravi@example.com"), o.person("mira@example.com")}

	// Somebody who reads a table keeps it from being written again.
	reader, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer reader.Close(context.WithoutCancel(t.Context()))
	_, err = reader.Exec(t.Context(), `begin; lock table account.session in access share mode`)
	require.NoError(t, err)
	for _, l := range leaving {
		l.POST(me+"/delete-request", nil).Status(200)
	}
	const forgotten = `msg="Postgres has forgotten who was erased"`
	p.until(func(said, _ string) bool {
		for _, l := range leaving {
			if !strings.Contains(said, `msg="a user was erased" user=`+l.User.ID) {
				return false
			}
		}
		return strings.Contains(said, "kind=scrub_tables") && strings.Contains(said, "lock timeout")
	})
	began := time.Now()
	o.signIn("usha@example.com", goodPassword)
	require.Less(t, time.Since(began), promptly)
	require.NotContains(t, p.text(), forgotten)
	_, err = reader.Exec(t.Context(), `rollback`)
	require.NoError(t, err)
	for _, waits := range o.jobs("kind=scrub_tables&state=retryable") { // the longer it was in the way, the later they would try again
		o.operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", waits.ID), nil)
	}
	p.until(func(said, _ string) bool {
		done := 0
		for line := range strings.Lines(said) {
			if strings.Contains(line, `msg="a job is done"`) && strings.Contains(line, "kind=scrub_tables") {
				done++
			}
		}
		return done == len(leaving)
	})
	require.Equal(t, 1, strings.Count(p.text(), forgotten), "once for all")
}

func TestWhoIsErasedTakesNothingOfWhoHasTheAddress(t *testing.T) {
	t.Parallel()
	o := startErasing(t)
	asha, eve := o.person("asha@example.com"), o.person("eve@example.com")
	eve.PUT(me, map[string]string{"email": "ravi@example.com"}).Status(200) // which is not hers
	o.mailed("ravi@example.com", verifySubject, 1)
	asha.POST("/api/v1/workspaces/"+asha.workspace+"/invitations", `{"email":"ravi@example.com","permissions":{"ledger":"read"}}`).Status(201)
	_, token := link(t, o.mailed("ravi@example.com", inviteSubject, 1))
	asha.POST("/api/v1/workspaces/"+asha.workspace+"/invitations", `{"email":"eve@example.com","permissions":{"ledger":"read"}}`).Status(201)
	o.mailed("eve@example.com", inviteSubject, 1)
	o.worked("send_invitation")
	o.erased(eve)
	require.Empty(t, o.mails("ravi@example.com", verifySubject), "it was sent on her account")
	require.Empty(t, o.mails("eve@example.com", verifySubject))
	require.Empty(t, o.mails("eve@example.com", inviteSubject), "that address was hers")
	require.Len(t, o.mails("ravi@example.com", inviteSubject), 1)
	ravi := o.person("ravi@example.com")
	ravi.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)
}

func TestEachNodeForgetsWhoWasErasedOnAnother(t *testing.T) {
	t.Parallel()
	one := startErasing(t)
	asha, ravi := one.person("asha@example.com"), one.person("ravi@example.com") // while no other node mails
	s := testSettings(t, one.database)
	other := startAs(t, s)
	id := uuid.MustParse(asha.User.ID)
	// What is left when a node dies in the middle: here, and on both.
	left := func(o *office) (files []string) {
		for _, folder := range []string{filepath.Join("blobs", picture.Folder(id)), "mail"} {
			found, err := filepath.Glob(filepath.Join(o.sys.Settings.Data, folder, "*"))
			require.NoError(t, err)
			for _, file := range found {
				if folder != "mail" || strings.Contains(file, hex.EncodeToString(id[:])) {
					files = append(files, file)
				}
			}
		}
		return files
	}
	leave := func(o *office) {
		require.NoError(t, o.sys.Blobs.Put(t.Context(), picture.Folder(id)+"orphan", "image/png", []byte("orphan")))
		require.NoError(t, o.sys.Mails.Mail(t.Context(), "verification-"+hex.EncodeToString(id[:])+"-0", "asha@example.com", "Hello", "Hello"))
		require.GreaterOrEqual(t, len(left(o)), 3) // with what says its type
	}
	leave(one)
	leave(other)
	his := uuid.MustParse(ravi.User.ID)
	require.NoError(t, other.sys.Blobs.Put(t.Context(), picture.Folder(his)+"kept", "image/png", []byte("his")))
	other.stop()
	one.erased(asha)
	require.Empty(t, left(one))
	require.NotEmpty(t, left(other))

	again := startAs(t, s)
	require.Eventually(t, func() bool { return len(left(again)) == 0 }, time.Minute, 5*time.Millisecond)
	keys, err := again.sys.Blobs.List(t.Context(), "pictures/")
	require.NoError(t, err)
	require.Equal(t, []string{picture.Folder(his) + "kept"}, keys)

	// Who has the address by then keeps their mails.
	again.stop()
	one.person("asha@example.com")
	require.NoError(t, one.sys.Eraser().Clean(t.Context()))
	require.Len(t, one.mails("asha@example.com", verifySubject), 1)
}

func TestAnErasureThatIsDoneAgainStillFindsTheMails(t *testing.T) {
	t.Parallel()
	o := startErasing(t)
	asha := o.person("asha@example.com")
	o.erased(asha)
	id := uuid.MustParse(asha.User.ID)
	require.NoError(t, o.sys.Mails.Mail(t.Context(), "verification-"+hex.EncodeToString(id[:])+"-0", "asha@example.com", "Late", "Hello"))
	require.Len(t, o.mails("asha@example.com", "Late"), 1)
	require.NoError(t, o.sys.Eraser().Erase(t.Context(), id))
	require.Empty(t, o.mails("asha@example.com", "Late"))
}

// doubtful is a log whose answers to a picture can get lost.
type doubtful struct {
	eventstore.Store

	lost atomic.Bool
}

func (d *doubtful) Append(ctx context.Context, stream string, expected eventstore.Expected, events ...event.New) (eventstore.Appended, error) {
	done, err := d.Store.Append(ctx, stream, expected, events...)
	if err == nil && d.lost.Load() && events[0].Type == "UserPictureChanged" {
		err = eventstore.ErrInDoubt
	}
	return done, err
}

func TestAPictureWhoseChangeIsInDoubtIsKept(t *testing.T) {
	t.Parallel()
	log := &doubtful{}
	o := startErasing(t, func(s *app.System) {
		log.Store = s.Store
		s.Accounts.Commands = commands.New(log, s.Vault, time.Now)
	})
	asha := o.person("asha@example.com")
	red := painted(t, color.RGBA{200, 0, 0, 255}, 40, 30)
	log.lost.Store(true)
	upload(t, asha.Client, "image/png", red).Status(503)
	log.lost.Store(false)
	shown := asha.me().Picture
	require.NotNil(t, shown)
	o.stranger().GET(o.path(*shown)).Status(200)

	// And a write that is in the log is no error because the picture before cannot be deleted.
	keys, err := o.sys.Blobs.List(t.Context(), "pictures/")
	require.NoError(t, err)
	require.Len(t, keys, 1)
	before := filepath.Join(o.sys.Settings.Data, "blobs", keys[0])
	require.NoError(t, os.Remove(before))
	require.NoError(t, os.MkdirAll(filepath.Join(before, "in the way"), 0o700))
	upload(t, asha.Client, "image/png", red).Status(200)
	require.NoError(t, os.RemoveAll(before))
	o.erased(asha)
	keys, err = o.sys.Blobs.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, keys)
}
