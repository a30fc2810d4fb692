package main_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/internal/cli/backup"
	"bahi/internal/pgcluster"
	"bahi/internal/pgtest"
)

// dump returns a database as text, and restore fills an empty one with it.
func dump(t *testing.T, url string) []byte {
	t.Helper()
	return program(t, nil, "pg_dump", "--no-owner", "--dbname", url)
}

func restore(t *testing.T, text []byte) (url string) {
	t.Helper()
	url = pgtest.DB(t)
	program(t, text, "psql", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", url)
	return url
}

// program runs one of Postgres's own.
func program(t *testing.T, in []byte, name string, args ...string) []byte {
	t.Helper()
	programs, err := pgcluster.Find(t.Context(), slog.New(slog.DiscardHandler), 0)
	require.NoError(t, err)
	var out, complaint bytes.Buffer
	cmd := programs.Command(t.Context(), name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &complaint
	require.NoError(t, cmd.Run(), &complaint)
	return out.Bytes()
}

// opened are the personal values of people that the log of a database still says.
func opened(t *testing.T, url string) (texts []string) {
	t.Helper()
	sys, err := testSettings(t, url).Open(t.Context(), false)
	require.NoError(t, err)
	defer sys.Close()
	for stored, err := range sys.Store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		if !strings.HasPrefix(stored.Stream, user.Kind.Category()+"-") {
			continue
		}
		r, err := user.Kind.Decode(stored)
		require.NoError(t, err)
		var values []event.Personal
		switch e := r.Data.(type) {
		case user.Registered:
			values = []event.Personal{e.Email, e.FirstName, e.LastName}
		case user.EmailChanged:
			values = []event.Personal{e.Email, e.Before}
		case user.EmailRestored:
			values = []event.Personal{e.Email}
		case user.ProfileChanged:
			values = []event.Personal{e.FirstName, e.LastName, e.Phone}
		}
		for _, value := range values {
			if value.IsZero() {
				continue
			}
			text, err := sys.Vault.Show(t.Context(), value.Sealed)
			if !errors.Is(err, event.ErrErased) {
				require.NoError(t, err)
				texts = append(texts, text)
			}
		}
	}
	return texts
}

func TestARestoredBackupForgetsWhoWasErasedSince(t *testing.T) {
	t.Parallel()
	database, data := testDatabase(t), t.TempDir()
	run := func(url string, args ...string) (stdout, stderr string, status int) {
		t.Helper()
		cmd := command(t, data, args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+url, "BAHI_DELETION_GRACE=1s", "BAHI_LIMIT_AUTH=1000/1m")
		return execute(t, cmd)
	}
	serving := func(url string) *process {
		t.Helper()
		cmd := command(t, data, "serve")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+url, "BAHI_DELETION_GRACE=1s", "BAHI_LIMIT_AUTH=1000/1m")
		p := serve(t, cmd)
		p.ready()
		return p
	}
	p := serving(database)
	l := live(t, p, data)
	l.asha.PUT("/api/v1/users/me", `{"phone":"+919812345678"}`).Status(200)

	// The backup: Postgres, and the folder of mails and pictures.
	backup, files := dump(t, database), t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(files, "mail"), os.DirFS(filepath.Join(data, "mail"))))
	require.NoError(t, os.CopyFS(filepath.Join(files, "blobs"), os.DirFS(filepath.Join(data, "blobs"))))
	l.person.POST("/api/v1/users/me/delete-request", nil).Status(200)
	p.until(func(said, _ string) bool { return strings.Contains(said, `msg="a user was erased"`) })
	list := filepath.Join(t.TempDir(), "erasures.json")
	out, wrong, status := run(database, "vault", "erasures", "export", list)
	require.Equal(t, 0, status, wrong)
	require.Regexp(t, `^\d+ erased\n$`, out)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Contains(t, string(text), user.Kind.Category()+"-"+l.id)
	require.Empty(t, l.known.in("the list", text), "it may be kept anywhere")
	p.stop()

	// The disk is lost, and the backup is all that there is.
	for _, folder := range []string{"mail", "blobs"} {
		require.NoError(t, os.RemoveAll(filepath.Join(data, folder)))
	}
	require.NoError(t, os.CopyFS(data, os.DirFS(files)))
	restored := restore(t, backup)
	require.Contains(t, opened(t, restored), addresses[2])
	require.NotEmpty(t, l.known.inDatabase(restored))
	require.NotEmpty(t, l.known.inFiles(data))
	_, wrong, status = run(restored, "vault", "erasures", "export", list)
	require.Equal(t, 1, status, "the list would be lost")
	require.Contains(t, wrong, "apply it first")

	out, wrong, status = run(restored, "vault", "erasures", "apply", list)
	require.Equal(t, 0, status, wrong)
	require.Regexp(t, `^(\d+) of \d+ were erased once more\n$`, out)
	for _, text := range opened(t, restored) {
		require.Contains(t, []string{"asha@example.org", "Asha", "Soni", "+919812345678"}, text)
	}
	require.Empty(t, l.known.inDatabase(restored))
	require.Empty(t, l.known.inFiles(data))
	out, wrong, status = run(restored, "vault", "erasures", "apply", list)
	require.Equal(t, 0, status, wrong)
	require.Contains(t, out, "0 of ", "once is enough")
	out, wrong, status = run(restored, "doctor")
	require.Equal(t, 0, status, out+wrong)
	_, wrong, status = run(restored, "vault", "erasures", "export", list)
	require.Equal(t, 0, status, wrong)

	// Who stayed goes on, the books stand, and the address is free.
	p = serving(restored)
	l.office = visited(p, data)
	l.asha.Client = l.bearer(l.signIn("asha@example.org", goodPassword).Access)
	require.Equal(t, "03-01 12.5", l.books())
	require.NotContains(t, l.members(l.workspace), l.id)
	l.person.At(p.url).GET("/api/v1/users/me").Status(401)
	require.Equal(t, addresses[2], l.office.person(addresses[2]).me().Email)
}

// erasedAt is the moment of a list's first entry.
func erasedAt(t *testing.T, file string) time.Time {
	t.Helper()
	list, err := backup.ErasureList{File: file}.Read()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list[0].At
}

func TestAListOfErasuresThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	o := start(t)
	list := filepath.Join(t.TempDir(), "erasures.json")
	_, wrong, status := attached(t, o, "vault", "erasures", "apply", list)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: read the list of erasures: open "+list)
	require.NoError(t, os.WriteFile(list, []byte(`[{"subject":"user-`), 0o600))
	for _, verb := range []string{"apply", "export"} {
		_, wrong, status = attached(t, o, "vault", "erasures", verb, list)
		require.Equal(t, 1, status)
		require.Contains(t, wrong, "bahi: read the list of erasures: ")
	}
	require.NoError(t, os.WriteFile(list, []byte(`[{"subject":"user-0f0e0d0c-0b0a-4908-8706-050403020100","at":"2026-01-02T03:04:05Z"}]`), 0o600))
	out, wrong, status := attached(t, o, "vault", "erasures", "apply", list)
	require.Equal(t, 0, status, wrong)
	require.Equal(t, "1 of 1 were erased once more\n", out)
	require.NoError(t, os.Remove(list))
	out, wrong, status = attached(t, o, "vault", "erasures", "export", list)
	require.Equal(t, 0, status, wrong)
	require.Equal(t, "1 erased\n", out)
	require.WithinDuration(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), erasedAt(t, list), 0, "with the moment of the first")
}
