package cli_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/access/user"
	"bahi/internal/cli/backup"
	"bahi/internal/pgcluster"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

// dump returns a database as text.
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

// program runs a program of Postgres.
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

func TestRestoredBackupErasesListedUsersAgain(t *testing.T) {
	t.Parallel()
	database, data := apptest.Database(t), t.TempDir()
	run := func(url string, args ...string) (stdout, stderr string, status int) {
		t.Helper()
		cmd := apptest.Command(t, data, args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+url, "BAHI_DELETION_GRACE=1s", "BAHI_LIMIT_AUTH=1000/1m")
		return apptest.Execute(t, cmd)
	}
	serving := func(url string) *apptest.Process {
		t.Helper()
		cmd := apptest.Command(t, data, "serve")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+url, "BAHI_DELETION_GRACE=1s", "BAHI_LIMIT_AUTH=1000/1m")
		p := apptest.Serve(t, cmd)
		p.Ready()
		return p
	}
	p := serving(database)
	l := apptest.Live(t, p, data)
	l.Asha.PUT("/api/v1/users/me", `{"phone":"+919812345678"}`).Status(200)

	// The backup: Postgres, and the folder of mails and pictures.
	backup, files := dump(t, database), t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(files, "mail"), os.DirFS(filepath.Join(data, "mail"))))
	require.NoError(t, os.CopyFS(filepath.Join(files, "blobs"), os.DirFS(filepath.Join(data, "blobs"))))
	l.Person.POST("/api/v1/users/me/delete-request", nil).Status(200)
	p.Until(func(said, _ string) bool { return strings.Contains(said, `msg="user erased"`) })
	list := filepath.Join(t.TempDir(), "erasures.json")
	out, wrong, status := run(database, "vault", "erasures", "export", list)
	require.Equal(t, 0, status, wrong)
	require.Regexp(t, `^\d+ erased\n$`, out)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Contains(t, string(text), user.Kind.Category()+"-"+l.Id)
	require.Empty(t, l.Known.In("the list", text), "the list names nobody")
	p.Stop()

	// The disk is lost; only the backup is left.
	for _, folder := range []string{"mail", "blobs"} {
		require.NoError(t, os.RemoveAll(filepath.Join(data, folder)))
	}
	require.NoError(t, os.CopyFS(data, os.DirFS(files)))
	restored := restore(t, backup)
	require.Contains(t, apptest.Opened(t, restored), apptest.Addresses[2])
	require.NotEmpty(t, l.Known.InDatabase(restored))
	require.NotEmpty(t, l.Known.InFiles(data))
	_, wrong, status = run(restored, "vault", "erasures", "export", list)
	require.Equal(t, 1, status, "the export would overwrite the list")
	require.Contains(t, wrong, "apply it first")

	out, wrong, status = run(restored, "vault", "erasures", "apply", list)
	require.Equal(t, 0, status, wrong)
	require.Regexp(t, `^(\d+) of \d+ were erased once more\n$`, out)
	for _, text := range apptest.Opened(t, restored) {
		require.Contains(t, []string{"asha@example.org", "Asha", "Soni", "+919812345678"}, text)
	}
	require.Empty(t, l.Known.InDatabase(restored))
	require.Empty(t, l.Known.InFiles(data))
	out, wrong, status = run(restored, "vault", "erasures", "apply", list)
	require.Equal(t, 0, status, wrong)
	require.Contains(t, out, "0 of ", "the users are erased already")
	out, wrong, status = run(restored, "doctor")
	require.Equal(t, 0, status, out+wrong)
	_, wrong, status = run(restored, "vault", "erasures", "export", list)
	require.Equal(t, 0, status, wrong)

	// The other user's account works, the books are complete, and the address is free.
	p = serving(restored)
	l.Server = apptest.Visited(p, data)
	l.Asha.Client = l.Bearer(l.SignIn("asha@example.org", apptest.GoodPassword).Access)
	require.Equal(t, "03-01 12.5", l.Books())
	require.NotContains(t, l.Members(l.Workspace), l.Id)
	l.Person.At(p.URL).GET("/api/v1/users/me").Status(401)
	require.Equal(t, apptest.Addresses[2], l.Server.Person(apptest.Addresses[2]).Me().Email)
}

// erasedAt returns the time of a list's first entry.
func erasedAt(t *testing.T, file string) time.Time {
	t.Helper()
	list, err := backup.ErasureList{File: file}.Read()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list[0].At
}

func TestAListOfErasuresThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	list := filepath.Join(t.TempDir(), "erasures.json")
	_, wrong, status := apptest.Attached(t, o, "vault", "erasures", "apply", list)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: read the list of erasures: open "+list)
	require.NoError(t, os.WriteFile(list, []byte(`[{"subject":"user-`), 0o600))
	for _, verb := range []string{"apply", "export"} {
		_, wrong, status = apptest.Attached(t, o, "vault", "erasures", verb, list)
		require.Equal(t, 1, status)
		require.Contains(t, wrong, "bahi: read the list of erasures: ")
	}
	require.NoError(t, os.WriteFile(list, []byte(`[{"subject":"user-0f0e0d0c-0b0a-4908-8706-050403020100","at":"2026-01-02T03:04:05Z"}]`),
		0o600))
	out, wrong, status := apptest.Attached(t, o, "vault", "erasures", "apply", list)
	require.Equal(t, 0, status, wrong)
	require.Equal(t, "1 of 1 were erased once more\n", out)
	require.NoError(t, os.Remove(list))
	out, wrong, status = apptest.Attached(t, o, "vault", "erasures", "export", list)
	require.Equal(t, 0, status, wrong)
	require.Equal(t, "1 erased\n", out)
	require.WithinDuration(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), erasedAt(t, list), 0, "the first erasure's time")
}
