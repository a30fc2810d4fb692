package accesshttp_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"image/color"
	netmail "net/mail"
	"os"
	"path/filepath"
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
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/providers/mail"
)

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
