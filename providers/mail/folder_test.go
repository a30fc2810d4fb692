package mail_test

import (
	"context"
	"fmt"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/internal/test/worktest"
	"bahi/providers/mail"
)

func open(t *testing.T, now func() time.Time) (folder *mail.Folder, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data", "mail")
	folder, err := mail.OpenFolder(path, sender, now)
	require.NoError(t, err)
	return folder, path
}

func files(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestFolderKeepsSentMail(t *testing.T) {
	t.Parallel()
	folder, path := open(t, clock)
	sends(t, folder.Send, func() []byte {
		names := files(t, path)
		require.Len(t, names, 1)
		name := filepath.Join(path, names[0])
		raw := worktest.File(t, name)
		require.NoError(t, os.Remove(name))
		return raw
	})
	require.Empty(t, files(t, path), "a refused mail left a file")
}

func TestFolderIsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mail")
	require.NoError(t, os.Mkdir(path, 0o755))
	folder, err := mail.OpenFolder(path, sender, clock)
	require.NoError(t, err)
	require.NoError(t, folder.Send(t.Context(), verification()))
	require.Equal(t, []string{"20260401T093000.250Z-verify-17.eml"}, files(t, path))
	for name, mode := range map[string]os.FileMode{path: 0o700, filepath.Join(path, files(t, path)[0]): 0o600} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}
}

func TestLinksAreReadableInTheFiles(t *testing.T) {
	t.Parallel()
	folder, path := open(t, clock)
	m := verification()
	require.NoError(t, folder.Send(t.Context(), m))
	raw := worktest.File(t, filepath.Join(path, files(t, path)[0]))
	require.Contains(t, string(raw), "\r\nhttps://workshop.example/verify-email?token="+strings.Repeat("aB3_", 16)+"\r\n")
}

func TestResentMessageReplacesItsFile(t *testing.T) {
	t.Parallel()
	at := moment
	folder, path := open(t, func() time.Time { return at })
	other := verification()
	other.ID = "re-verify-17" // ends as the first one's id does
	require.NoError(t, folder.Send(t.Context(), other))
	m := verification()
	require.NoError(t, folder.Send(t.Context(), m))
	at = at.Add(time.Hour)
	m.Text = "again\n"
	require.NoError(t, folder.Send(t.Context(), m))
	require.Equal(t, []string{"20260401T093000.250Z-re-verify-17.eml", "20260401T093000.250Z-verify-17.eml"}, files(t, path))
	got, err := folder.Read(t.Context(), "20260401T093000.250Z-verify-17.eml")
	require.NoError(t, err)
	require.Equal(t, m, got)

	for _, forget := range []func(){
		func() { folder, err = mail.OpenFolder(path, sender, func() time.Time { return at.Add(time.Hour) }) },
		func() { err = folder.Scrub(t.Context(), "nobody") },
	} {
		forget()
		require.NoError(t, err)
		require.NoError(t, folder.Send(t.Context(), m))
		require.Len(t, files(t, path), 2)
	}
	require.NoError(t, folder.Scrub(t.Context(), "verify"))
	require.NoError(t, folder.Send(t.Context(), m))
	require.Equal(t, []string{"20260401T113000.250Z-verify-17.eml"}, files(t, path))
}

func TestMessageSentConcurrentlyIsKeptOnce(t *testing.T) {
	t.Parallel()
	var ticks sync.Mutex
	at := moment
	folder, path := open(t, func() time.Time {
		ticks.Lock()
		defer ticks.Unlock()
		at = at.Add(time.Second)
		return at
	})
	var all sync.WaitGroup
	errs := make(chan error, 16)
	for i := range cap(errs) {
		all.Go(func() {
			m := verification()
			m.ID = fmt.Sprint("job-", i%4)
			errs <- folder.Send(t.Context(), m)
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, files(t, path), 4)
}

func TestFolderListsTheNewestFirst(t *testing.T) {
	t.Parallel()
	at := moment
	folder, path := open(t, func() time.Time { return at })
	for i := range 3 {
		m := verification()
		m.ID, m.Subject = strconv.Itoa(9-i), fmt.Sprint("Nr. ", i)
		require.NoError(t, folder.Send(t.Context(), m))
		at = at.Add(time.Minute)
	}
	require.NoError(t, os.WriteFile(filepath.Join(path, "notes.txt"), []byte("no mail"), 0o600))
	kept, total, err := folder.List(t.Context(), 0, 2)
	require.NoError(t, err)
	require.Equal(t, 3, total)
	require.Equal(t, []mail.Kept{
		{Name: "20260401T093200.250Z-7.eml", SentAt: moment.Add(2 * time.Minute), To: asha, Subject: "Nr. 2"},
		{Name: "20260401T093100.250Z-8.eml", SentAt: moment.Add(time.Minute), To: asha, Subject: "Nr. 1"},
	}, kept)
	for skip, subjects := range [][]string{{"Nr. 2", "Nr. 1", "Nr. 0"}, {"Nr. 1", "Nr. 0"}, {"Nr. 0"}, {}, {}} {
		kept, total, err := folder.List(t.Context(), skip, 100)
		require.NoError(t, err)
		require.Equal(t, 3, total)
		listed := []string{}
		for _, k := range kept {
			listed = append(listed, k.Subject)
		}
		require.Equal(t, subjects, listed)
	}
}

func TestFolderReadsOnlyMail(t *testing.T) {
	t.Parallel()
	folder, path := open(t, clock)
	require.NoError(t, os.WriteFile(filepath.Join(path, "..", "secret"), []byte("To: a@b\r\n\r\nsecret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(path, "..", "secret.eml"), []byte("To: a@b\r\n\r\nsecret"), 0o600))
	for _, name := range []string{
		"", ".", "..", "../secret", "../secret.eml", "20260401T093000.250Z-/../../secret.eml", "20260401T093000.250Z-../secret.eml",
		"20260401T093000.250Z-gone.eml", "20260401T093000.250Z-a\x00.eml", "20260401T093000.250Z-a.eml\n",
	} {
		_, err := folder.Read(t.Context(), name)
		require.ErrorIs(t, err, mail.ErrNotKept, name)
	}
}

func TestScrubRemovesErasedMail(t *testing.T) {
	t.Parallel()
	folder, path := open(t, clock)
	send := func(id string) {
		require.NoError(t, folder.Send(t.Context(), mail.Message{ID: id, To: asha, Subject: "a1b2", Text: "a1b2"}))
	}
	for _, id := range []string{"verify-a1b2-1", "a1b2", "notice-c3-a1b2", "reset-d4-2", "verify-a1b2c-1", "a1b2.3", "other-1"} {
		send(id)
	}
	require.NoError(t, os.WriteFile(filepath.Join(path, "123.tmp"), []byte("To: asha@mi"), 0o600)) // a crash
	require.NoError(t, os.WriteFile(filepath.Join(path, "notes-a1b2.txt"), []byte("no mail"), 0o600))
	torn := filepath.Join(path, "20260101T000000.000Z-torn-a1b2.eml")
	require.NoError(t, os.WriteFile(torn, []byte("Subject: asha"), 0o600))

	const at = "20260401T093000.250Z-"
	for _, marks := range [][]string{{"a1b2", "d4"}, {"a1b2"}, {""}, {}} {
		require.NoError(t, folder.Scrub(t.Context(), marks...))
		require.Equal(t, []string{at + "a1b2.3.eml", at + "other-1.eml", at + "verify-a1b2c-1.eml", "notes-a1b2.txt"}, files(t, path))
	}
}

func TestScrubNamesAMailThatItCannotRemove(t *testing.T) {
	t.Parallel()
	folder, path := open(t, clock)
	require.NoError(t, folder.Send(t.Context(), verification()))
	stuck := filepath.Join(path, "20260101T000000.000Z-verify-0.eml")
	require.NoError(t, os.MkdirAll(filepath.Join(stuck, "more"), 0o700))
	require.ErrorContains(t, folder.Scrub(t.Context(), "verify"), filepath.Base(stuck))
	require.Equal(t, []string{filepath.Base(stuck)}, files(t, path), "the other mails are removed")
}

func TestListFailsOnAFileThatIsNoMail(t *testing.T) {
	t.Parallel()
	folder, path := open(t, clock)
	require.NoError(t, os.WriteFile(filepath.Join(path, "20260101T000000.000Z-torn.eml"), []byte("Subject: asha"), 0o600))
	_, _, err := folder.List(t.Context(), 0, 10)
	require.EqualError(t, err, "mail 20260101T000000.000Z-torn.eml has no head that can be read")
}

func TestFolderReadsANameWithABackslash(t *testing.T) {
	t.Parallel()
	folder, _ := open(t, clock)
	m := verification()
	m.To.Name = `आशा \ राव`
	require.NoError(t, folder.Send(t.Context(), m))
	got, err := folder.Read(t.Context(), "20260401T093000.250Z-verify-17.eml")
	require.NoError(t, err)
	require.Equal(t, "आशा / राव", got.To.Name)
}

func TestFolderHeedsCancellation(t *testing.T) {
	t.Parallel()
	folder, path := open(t, clock)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, folder.Send(ctx, verification()), context.Canceled)
	require.Empty(t, files(t, path))
}

func TestFolderReportsDiskErrors(t *testing.T) {
	t.Parallel()
	folder, path := open(t, clock)
	require.NoError(t, os.RemoveAll(path))
	err := folder.Send(t.Context(), verification())
	require.Error(t, err)
	var refused *mail.Permanent
	require.NotErrorAs(t, err, &refused, "a disk error is not permanent")
	unfit := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(unfit, nil, 0o600))
	_, err = mail.OpenFolder(unfit, sender, clock)
	require.Error(t, err)
	_, err = mail.OpenFolder(path, netmail.Address{Address: "nobody"}, clock)
	require.EqualError(t, err, "sender: not an address")
}

// Any text arrives as it was sent: control characters, long lines, lines that look like a boundary or an end.
func TestFolderReadsMailAsSent(t *testing.T) {
	t.Parallel()
	folder, _ := open(t, clock)
	line := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{".", "--", "From ", "=3D", "=", " trailing ", strings.Repeat("ल", 400), "\x00"}))
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.NewReplacer("\r", "").Replace(strings.Join(rapid.SliceOfN(line, 1, 6).Draw(t, "lines"), "\n"))
	})
	// Headers are folded at spaces, so only single spaces between words survive.
	word := rapid.Custom(func(t *rapid.T) string {
		character := rapid.OneOf(rapid.RuneFrom([]rune("abc आशा<>\",;:@()=?_")),
			rapid.Rune().Filter(func(r rune) bool { return !unicode.IsControl(r) && r != '\\' }))
		return strings.Join(strings.Fields(rapid.StringOf(character).Draw(t, "characters")), " ")
	})
	rapid.Check(t, func(t *rapid.T) {
		m := mail.Message{
			ID: "same", To: netmail.Address{Name: word.Draw(t, "name"), Address: "asha@mill.example"},
			Subject: word.Draw(t, "subject"), Text: text.Filter(func(s string) bool { return s != "" }).Draw(t, "text"),
		}
		require.NoError(t, folder.Send(context.Background(), m))
		got, err := folder.Read(context.Background(), "20260401T093000.250Z-same.eml")
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}
