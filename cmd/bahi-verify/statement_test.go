//go:build !js

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"

	"bahi/domain/event"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/audittest"
	"bahi/internal/test/pdftest"
)

// party is an account whose statements the test requests.
type party struct {
	ledger  string // path of its rows
	in, out string // an entry of each side
}

var parties = []party{
	{"bank", `{"amount":%d.25}`, `{"amount":%d}`},
	{"bullion", `{"weight":%d,"touch":99.5}`, `{"kind":"cash","amount":%d.5}`},
	{"client", `{"item_name":"old gold","weight":%d,"touch":91.6}`, `{"weight":%d,"touch":92,"wastage_percent":3,"making_charge":1500}`},
	{"karigar", `{"pure_weight":%d,"fine_percent":92,"wastage_percent":2,"other":15}`, `{"weight":%d.123,"touch":99.5}`},
	{"polisher", `{"weight":%d.5,"loss_weight":1.5,"rate":5,"amount":60}`, `{"weight":%d,"pieces":12}`},
}

// workshop is a served system with books in it.
type workshop struct {
	*apptest.Server

	clerk    *apitest.Client
	accounts []string // paths of their rows
	keys     string   // file with the log's public keys
	trusted  archive.Given
	first    string // an early checkpoint
}

// newWorkshop makes books of two accounts in each ledger.
func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	const rows = 20 // of each account
	w := &workshop{Server: apptest.Start(t)}
	w.clerk = w.Bearer(w.Key(w.Home, `{"ledger":"write"}`).Key)
	random := mathrand.New(mathrand.NewPCG(42, uint64(rows)))
	day := func() string {
		return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, random.IntN(365)).Format(time.DateOnly)
	}
	side := func(entry string) string { return "[" + fmt.Sprintf(entry, 1+random.IntN(900)) + "]" }
	body := func(p party) string {
		switch random.IntN(3) {
		case 0:
			return fmt.Sprintf(`{"date":%q,"in_entries":%s}`, day(), side(p.in))
		case 1:
			return fmt.Sprintf(`{"date":%q,"out_entries":%s}`, day(), side(p.out))
		}
		return fmt.Sprintf(`{"date":%q,"in_entries":%s,"out_entries":%s}`, day(), side(p.in), side(p.out))
	}
	for i, p := range slices.Concat(parties, parties) {
		var opened struct{ ID int64 }
		kind := ""
		if p.ledger == "polisher" {
			kind = `,"type":0`
		}
		a := w.clerk.POST("/"+p.ledger, fmt.Sprintf(`{"name":"%s %d"%s}`, p.ledger, i, kind)).Status(201)
		require.NoError(t, json.Unmarshal([]byte(a.Text), &opened))
		path := fmt.Sprintf("/%s-ledger/%d", p.ledger, opened.ID)
		w.accounts = append(w.accounts, path)
		var posted struct{ Rows []struct{ ID int64 } }
		bodies := make([]string, rows)
		for n := range bodies {
			bodies[n] = body(p)
		}
		a = w.clerk.POST(path+"/rows", `{"rows":[`+strings.Join(bodies, ",")+`]}`).Status(201)
		require.NoError(t, json.Unmarshal([]byte(a.Text), &posted))
		for _, row := range posted.Rows {
			at := fmt.Sprintf("%s/row/%d", path, row.ID)
			switch random.IntN(10) {
			case 0, 1:
				w.clerk.PUT(path, fmt.Sprintf(`{"id":%d,"date":%q,"in_entries":%s}`, row.ID, day(), side(p.in))).Status(200)
			case 2:
				w.clerk.POST(at+"/void", `{"reason":"typo"}`).Status(200)
			case 3:
				w.clerk.POST(at+"/reverse", `{"reason":"typo"}`)
			case 4:
				w.clerk.DELETE(at).Status(204)
			}
		}
		if i == 0 {
			w.first = w.Signed().Note
		}
	}
	w.clerk.PUT("/books/lock", `{"locked_through":"2024-12-31"}`).Status(200)
	w.Signed()
	public := w.Operator().GET("/audit/key?format=text").Status(200).Text
	w.keys = audittest.File(t, "keys.txt", []byte(public))
	var err error
	w.trusted, err = archive.ReadGiven([]string{w.keys}, nil)
	require.NoError(t, err)
	return w
}

// statement returns the file of an account's statement.
func (w *workshop) statement(path string) []byte {
	w.T.Helper()
	return []byte(w.clerk.GET(path + "/statement.proof").Status(200).Text)
}

func TestStatements(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	t.Run("of random periods are verified", w.random)
	t.Run("have the events of their account alone", w.alone)
	t.Run("name each forgery", w.forgeries)
	t.Run("have a code on paper that is scanned", w.printed)
	t.Run("are compared with a code on paper", w.codeOnPaper) // last, because it posts rows
}

func (w *workshop) random(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(7, 7))
	folder, statements := t.TempDir(), 10*apptest.Rounds(t, 10)
	for i := range statements {
		path := w.accounts[random.IntN(len(w.accounts))] + "/statement.proof"
		first, length := random.IntN(420)-30, random.IntN(300)
		day := func(n int) string { return time.Date(2025, 1, 1+n, 0, 0, 0, 0, time.UTC).Format(time.DateOnly) }
		switch random.IntN(4) {
		case 0:
			path += "?from=" + day(first)
		case 1:
			path += "?to=" + day(first)
		case 2:
			path += "?from=" + day(first) + "&to=" + day(first+length)
		}
		file := []byte(w.clerk.GET(path).Status(200).Text)
		a, err := examineStatement(file, w.trusted, "")
		require.NoError(t, err)
		require.Equal(t, tlog.Verified, a.Verdict, "%s: %s", path, a.Sentences)
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.proof", i)), file, 0o600))
	}
	out, _, status := verifyBy(t, "statement", filepath.Join(folder, "0.proof"), "--key", w.keys)
	require.Zero(t, status, out)
	require.Regexp(t, `^VERIFIED\. Account \d+, \w+ \d, \w+ ledger, .*: opening ₹ \S+.*, closing ₹ `, out)
	require.Contains(t, out, "The books are locked through 2024-12-31.")
	byPython := func(files ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{"../../docs/statement.py", w.keys}, files...)...)
		said, _ := cmd.CombinedOutput() // the status has the result
		return string(said), cmd.ProcessState.ExitCode()
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.proof"))
	require.NoError(t, err)
	require.Len(t, files, statements)
	var said string
	said, status = byPython(files...)
	require.Zero(t, status, said)
	require.Equal(t, statements, strings.Count(said, ": VERIFIED. It is account "))
	s, err := tlog.ReadStatement(w.statement(w.accounts[0]))
	require.NoError(t, err)
	for reason, forge := range map[string]func(*tlog.Statement){
		"the opening cash is 1.00": func(s *tlog.Statement) { s.Opening.Cash = "1.00" },
		"events of account":        func(s *tlog.Statement) { s.Events = s.Events[:s.Entry.Size-1]; s.Common.Size = 0 },
		"does not lead to the map": func(s *tlog.Statement) { s.Entry.Hashes[0][0] ^= 1 },
		"is not as it was signed":  func(s *tlog.Statement) { s.Checkpoint = strings.Replace(s.Checkpoint, "\ntime 2", "\ntime 3", 1) },
		"or not in its place":      func(s *tlog.Statement) { s.Events[1], s.Events[2] = s.Events[2], s.Events[1] },
		"that were signed":         func(s *tlog.Statement) { s.Events[1].Data = append(s.Events[1].Data, ' ') },
	} {
		forged := s
		forged.Events, forged.Entry.Hashes = slices.Clone(s.Events), slices.Clone(s.Entry.Hashes)
		forge(&forged)
		said, status := byPython(audittest.File(t, "it.proof", written(t, forged)))
		require.Equal(t, 1, status, said)
		require.Contains(t, said, reason)
	}
	_, said, status = verifyBy(t, "statement", w.keys)
	require.Equal(t, 2, status)
	require.Contains(t, said, "read the statement")
}

func (w *workshop) forgeries(t *testing.T) {
	whole, err := tlog.ReadStatement(w.statement(w.accounts[0]))
	require.NoError(t, err)
	other, err := tlog.ReadStatement(w.statement(w.accounts[5])) // another bank account
	require.NoError(t, err)
	edited := slices.IndexFunc(whole.Events, func(e event.Stored) bool { return e.Type == "BankRowEdited" })
	last := int(whole.Entry.Size) - 1
	otherKey := func(s *tlog.Statement) {
		c, err := tlog.ParseCheckpoint([]byte(s.Checkpoint))
		require.NoError(t, err)
		private, _, err := note.GenerateKey(rand.Reader, c.Origin)
		require.NoError(t, err)
		key, err := tlog.ParseKey(private)
		require.NoError(t, err)
		note, err := c.Sign(key)
		require.NoError(t, err)
		s.Checkpoint = string(note)
	}
	for name, forgery := range map[string]struct {
		forge func(*tlog.Statement)
		said  string
	}{
		"nothing": {func(*tlog.Statement) {}, "VERIFIED. Account "},
		"dropped": {func(s *tlog.Statement) {
			added := slices.IndexFunc(s.Events, func(e event.Stored) bool { return e.Stream == s.Events[edited].Stream })
			s.Events = slices.Delete(s.Events, added, added+1)
		}, "TAMPERED. An event is missing before the event at position"},
		"added": {func(s *tlog.Statement) {
			e := s.Events[last]
			e.Position, e.Stream, e.Revision, e.Type = e.Position+1, "bankrow-9999999", 0, "BankRowAdded"
			e.Data = fmt.Appendf(nil, `{"account":%d,"date":"2025-05-05","in_entries":[{"amount":1}]}`, s.Account)
			s.Events = slices.Insert(s.Events, last+1, e)
		}, "TAMPERED. Events were added: there are"},
		"added twice": {func(s *tlog.Statement) { s.Events = slices.Insert(s.Events, last, s.Events[last]) },
			"TAMPERED. An event was added: the event at position"},
		"changed": {func(s *tlog.Statement) {
			s.Events[edited].Data = bytes.Replace(s.Events[edited].Data, []byte(`"amount":`), []byte(`"amount":1`), 1)
		}, "TAMPERED. An event was changed: the "},
		"reordered": {func(s *tlog.Statement) { s.Events[2], s.Events[3] = s.Events[3], s.Events[2] },
			"TAMPERED. The events are in another order: the event at position"},
		"opening": {func(s *tlog.Statement) { s.Opening.Cash = "100.00" }, "TAMPERED. The opening cash is 100.00 by the file, and 0.00 by"},
		"closing": {func(s *tlog.Statement) { s.Closing.Cash += "1" },
			"TAMPERED. The closing cash is " + whole.Closing.Cash + "1 by the file, and"},
		"closing metal": {func(s *tlog.Statement) { s.Closing.Fine = "1.000" },
			"TAMPERED. The closing fine weight is 1.000 by the file, and 0.000 by"},
		"other party's event": {func(s *tlog.Statement) { s.Events = slices.Insert(s.Events, 1, other.Events[0]) },
			"TAMPERED. It has an event of another party: the event at position"},
		"other party": {func(s *tlog.Statement) {
			s.Events, s.Entry, s.Closing = other.Events, other.Entry, other.Closing
		}, "TAMPERED. It has an event of another party: the event at position"},
		"old checkpoint": {func(s *tlog.Statement) { s.Checkpoint = w.first }, "TAMPERED. The checkpoint is an old one: it ends at position"},
		"cut tail": {func(s *tlog.Statement) { s.Events = slices.Delete(s.Events, last, last+1) },
			fmt.Sprintf("TAMPERED. Events are missing: of %d events of account", last+1)},
		"cut tail, with another size": {func(s *tlog.Statement) {
			s.Events = slices.Delete(s.Events, last, last+1)
			s.Entry.Size, s.Entry.Root = uint64(last), rootOf(s.Events[:last])
		}, "TAMPERED. The entry of the events of account"},
		"other key": {otherKey, "CANNOT TELL. The file is consistent, but no key that you trust signed its checkpoint."},
		"wrong signature": {func(s *tlog.Statement) { s.Checkpoint = strings.Replace(s.Checkpoint, "\ntime 2", "\ntime 3", 1) },
			"TAMPERED. The checkpoint is not as it was signed"},
		"common entry": {func(s *tlog.Statement) {
			s.Events[last+1].Data = bytes.Replace(s.Events[last+1].Data, []byte("2024"), []byte("2023"), 1)
		}, "TAMPERED. An event was changed: the 1 events common to all accounts"},
		"no common entry": {func(s *tlog.Statement) {
			s.Events, s.Common = s.Events[:last+1], tlog.StatementEntry{MapPath: s.Common.MapPath}
		},
			"TAMPERED. The entry of the events common to all accounts is not in the map"},
		"other workspace": {func(s *tlog.Statement) {
			s.Events, s.Workspace = s.Events[:last+1], uuid.NewString()
		}, "TAMPERED. The entry of the events common to all accounts"},
		"path": {func(s *tlog.Statement) { s.Entry.Hashes[0][3] ^= 1 }, "TAMPERED. The entry of the events of account"},
	} {
		forged := whole
		forged.Events = slices.Clone(whole.Events)
		forged.Entry.Hashes = slices.Clone(whole.Entry.Hashes)
		forgery.forge(&forged)
		var file bytes.Buffer
		require.NoError(t, tlog.WriteStatement(&file, forged))
		out, said, status := verifyBy(t, "statement", audittest.File(t, "it.proof", file.Bytes()), "--key", w.keys)
		require.Contains(t, out, forgery.said, "%s: %s", name, said)
		require.Equal(t, strings.HasPrefix(out, "TAMPERED"), status == statusTampered, name)
		require.Equal(t, strings.HasPrefix(out, "VERIFIED"), status == statusVerified, name)
	}
	out, _, status := verifyBy(t, "statement", audittest.File(t, "it.proof", w.statement(w.accounts[0])), "--checkpoint",
		audittest.File(t, "kept.txt", []byte(whole.Checkpoint)))
	require.Zero(t, status, out)
	require.Contains(t, out, "as in the checkpoint that you kept")
}

func (w *workshop) codeOnPaper(t *testing.T) {
	s, err := tlog.ReadStatement(w.statement(w.accounts[2]))
	require.NoError(t, err)
	checkpoint, err := tlog.ParseCheckpoint([]byte(s.Checkpoint))
	require.NoError(t, err)
	code := tlog.StatementCode{
		Checkpoint: tlog.CheckpointHash([]byte(s.Checkpoint)), Account: tlog.MapKey(tlog.AccountEntry(s.Account)), Position: checkpoint.Position,
		Stated: s.Stated,
	}
	apptest.Post(w.clerk, idIn(t, w.accounts[0]), apptest.Deposit("2025-05-05", "5"))
	w.clerk.POST(w.accounts[2], `{"date":"2025-05-05","in_entries":[{"amount":7}]}`).Status(201)
	w.Signed()
	later := audittest.File(t, "later.proof", w.statement(w.accounts[2]))
	earlier := audittest.File(t, "earlier.proof", written(t, s))
	for name, one := range map[string]struct {
		change     func(*tlog.StatementCode)
		file, said string
	}{
		"as printed": {func(*tlog.StatementCode) {}, earlier, "The figures on paper are those of the events up to position"},
		"of before":  {func(*tlog.StatementCode) {}, later, "The paper was printed at another checkpoint than that of the file."},
		"newer":      {func(c *tlog.StatementCode) { c.Position += 2 }, earlier, "CANNOT TELL. The file is older than the statement on paper"},
		"closing": {func(c *tlog.StatementCode) { c.Closing.Cash = "9.00" }, later,
			"TAMPERED. The closing cash is 9.00 by the statement on paper, and " + s.Closing.Cash + " by the events."},
		"opening": {func(c *tlog.StatementCode) { c.From = "2026-01-01" }, earlier,
			"TAMPERED. The opening cash is 0.00 by the statement on paper"},
		"account": {func(c *tlog.StatementCode) { c.Account[0] ^= 1 }, earlier, "TAMPERED. The statement on paper is of another account"},
	} {
		changed := code
		one.change(&changed)
		out, said, _ := verifyBy(t, "statement", one.file, "--key", w.keys, "--pdf-code", "https://books.example/verify"+changed.String())
		require.Contains(t, out, one.said, "%s: %s", name, said)
	}
	_, said, status := verifyBy(t, "statement", later, "--key", w.keys, "--pdf-code", "https://books.example/verify")
	require.Equal(t, statusUndecided, status)
	require.Contains(t, said, "not the code of a statement")
}

func idIn(t *testing.T, path string) (id int64) {
	t.Helper()
	_, err := fmt.Sscanf(path[strings.LastIndex(path, "/"):], "/%d", &id)
	require.NoError(t, err)
	return id
}

func written(t *testing.T, s tlog.Statement) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, tlog.WriteStatement(&file, s))
	return file.Bytes()
}

func TestStatementWaitsForItsCheckpoint(t *testing.T) {
	t.Parallel()
	settings := apptest.Settings(t, apptest.Database(t))
	settings.AuditInterval = 30 * time.Second
	o := apptest.StartAs(t, settings)
	clerk := o.Bearer(o.Key(o.Home, `{"ledger":"write"}`).Key)
	a := clerk.GET(apptest.Ledger(apptest.Open(clerk, "HDFC"), "/statement.proof"))
	a.Problem(503, "No checkpoint covers this position yet: one is signed within a second or two, try again")
	require.NotEmpty(t, a.Header("Retry-After"))
}

func (w *workshop) alone(t *testing.T) {
	path := w.accounts[4]
	w.clerk.GET(path + "0/statement.proof").Status(404)
	w.clerk.GET(path + "/statement.proof?known_at=5").Status(422)
	s, err := tlog.ReadStatement(w.statement(path))
	require.NoError(t, err)
	for _, e := range s.Events {
		require.Contains(t, []string{"polisher", "polisherrow", "bookslock"}, strings.SplitN(e.Stream, "-", 2)[0])
	}
	about, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(about), "karigar")
}

func (w *workshop) printed(t *testing.T) {
	for i, query := range []string{"", "?from=2025-03-01&to=2025-09-30", "?as_of=2025-06-30"} {
		path := w.accounts[i]
		code := pdftest.Code(t, []byte(w.clerk.GET(path+"/statement.pdf"+query).Status(200).Text))
		require.Contains(t, code, "/verify#s1/")
		file := w.statement(path)
		a, err := examineStatement(file, w.trusted, code)
		require.NoError(t, err)
		require.Equal(t, tlog.Verified, a.Verdict, "%s", a.Sentences)
		require.Contains(t, strings.Join(a.Sentences, "\n"), "The figures on paper are those of the events up to position")
		require.NotContains(t, strings.Join(a.Sentences, "\n"), "another checkpoint")
	}
}
