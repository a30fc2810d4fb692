//go:build !js

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/internal/test/audittest"
)

// booksArchive returns an archive with these events: stream, type and payload.
func booksArchive(t *testing.T, events ...[3]string) string {
	t.Helper()
	l := audittest.New(t, 0)
	for i, e := range events {
		l.Events = append(l.Events, event.Stored{
			Position: event.Position(i + 1), Stream: e[0], ID: uuid.New(), Type: e[1], Data: []byte(e[2]),
			Meta: []byte(`{"schema":1,"workspace":"11111111-1111-4111-8111-111111111111"}`), At: time.Date(2026, 11, 21, 18, 0, i, 0, time.UTC),
		})
	}
	return l.Archive(t)
}

// opened are the events of an account with two rows.
var opened = [][3]string{
	{"bank-1", "BankAccountOpened", `{"name":"HDFC"}`},
	{"bankrow-5", "BankRowAdded", `{"account":1,"date":"2025-03-31","in_entries":[{"amount":12.5}]}`},
	{"bankrow-6", "BankRowAdded", `{"account":1,"date":"2025-04-01","out_entries":[{"amount":2}]}`},
}

func TestBooks(t *testing.T) {
	t.Parallel()
	dir := booksArchive(t, opened...)
	out, problems, status := verifyBy(t, "books", dir)
	require.Zero(t, status, problems)
	require.Contains(t, out, "\nclosing bank 1 1050 0 2\ntrial bank 1050 0\ntrial unpaired 0 1050\ndigest ")
	require.NotContains(t, out, "\nrow ")
	out, _, _ = verifyBy(t, "books", dir, "--as-of", "2025-03-31")
	require.Contains(t, out, "bahi-books/v1 3 as_of 2025-03-31 known_at -\n")
	require.Contains(t, out, "\nclosing bank 1 1250 0 1\n")
	out, _, _ = verifyBy(t, "books", dir, "--known-at", "1")
	require.Contains(t, out, "bahi-books/v1 1 as_of - known_at 1\n")
	require.Contains(t, out, "\nclosing bank 1 0 0 0\n")
	out, _, status = verifyBy(t, "books", dir, "--as-of", "2025-03-31", "--rows", "--json")
	require.Zero(t, status)
	var r booksResult
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.EqualValues(t, 3, r.Position)
	require.Contains(t, r.Books, "closing bank 1 1250 0 1")
	require.Contains(t, out, `"row 5 2025-03-31 1250 `)
	_, problems, status = verifyBy(t, "books", dir, "--as-of", "yesterday")
	require.Equal(t, 2, status)
	require.Contains(t, problems, "--as-of: expected a date")
}

func TestBooksAreCompared(t *testing.T) {
	t.Parallel()
	dir := booksArchive(t, opened...)
	text, _, _ := verifyBy(t, "books", dir, "--rows")
	file := audittest.File(t, "books.txt", []byte(text))
	out, _, status := verifyBy(t, "books", dir, "--compare", file)
	require.Zero(t, status, out)
	require.Equal(t, "EQUAL. The books of the file are those of the archive at position 3.\n", out)

	forged := audittest.File(t, "forged.txt", []byte(strings.ReplaceAll(text, "row 6 2025-04-01 0 0 200 ", "row 6 2025-04-01 0 0 100 ")))
	out, _, status = verifyBy(t, "books", dir, "--compare", forged)
	require.Equal(t, 1, status)
	require.Equal(t, "DIFFERENT. The first difference of the file from the archive: account 1, row 6, newest event at position 3: "+
		"OUT paise is 200, and 100 in the file.\n", out)
	out, _, status = verifyBy(t, "books", dir, "--compare", forged, "--json")
	require.Equal(t, 1, status)
	var r booksResult
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, "different", r.Verdict)
	require.EqualValues(t, 6, r.Difference.Row)

	later := booksArchive(t, append(opened, [3]string{"bankrow-6", "BankRowVoided", `{}`})...)
	out, _, status = verifyBy(t, "books", later, "--compare", file)
	require.Zero(t, status, "the archive goes on: "+out)
	out, _, status = verifyBy(t, "books", booksArchive(t, opened[:2]...), "--compare", file)
	require.Equal(t, 2, status)
	require.Contains(t, out, "CANNOT TELL. The archive ends at position 2, and the file has the books at position 3.")
	_, problems, status := verifyBy(t, "books", dir, "--compare", file, "--as-of", "2025-03-31")
	require.Equal(t, 2, status)
	require.Contains(t, problems, "leave out --as-of")
	_, problems, status = verifyBy(t, "books", dir, "--compare", audittest.File(t, "x.txt", []byte("x")))
	require.Equal(t, 2, status)
	require.Contains(t, problems, "its first line is not one of bahi-books/v1")
}

func TestBooksNameBrokenRulesAndUnknownEvents(t *testing.T) {
	t.Parallel()
	locked := [3]string{"bookslock-11111111-1111-4111-8111-111111111111", "BooksLockMoved", `{"from":null,"to":"2025-03-31"}`}
	broken := booksArchive(t, append(opened, locked, [3]string{"bankrow-5", "BankRowDeleted", `{}`})...)
	out, problems, status := verifyBy(t, "books", broken)
	require.Equal(t, 1, status)
	require.Contains(t, problems, "RULE BROKEN at position 5, account 1, row 5: a row on a locked date is written.\n")
	require.Contains(t, out, "\nclosing bank 1 -200 0 1\n")

	unknown := booksArchive(t, append(opened, [3]string{"bankrow-5", "BankRowSplit", `{}`})...)
	out, problems, status = verifyBy(t, "books", unknown)
	require.Equal(t, 2, status)
	sentence := `CANNOT TELL from position 4 on, account 1: of the event "BankRowSplit" in "bankrow-5", its type is unknown.`
	require.Contains(t, problems, sentence)
	require.Contains(t, out, "account bank 1 1\nunknown account\nunknown trial\nunknown metal\nunknown digest\n")
	text, _, _ := verifyBy(t, "books", booksArchive(t, opened...), "--rows")
	file := audittest.File(t, "books.txt", []byte(strings.Replace(text, "bahi-books/v1 3", "bahi-books/v1 4", 1)))
	out, _, status = verifyBy(t, "books", unknown, "--compare", file)
	require.Equal(t, 2, status)
	require.Equal(t, "CANNOT TELL. All other accounts of the file are equal to the archive's at position 4.\n"+sentence+"\n", out)
}
