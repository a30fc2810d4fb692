package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
)

// words is the text of a PDF, with single spaces.
func words(t *testing.T, a *apitest.Answer) string {
	t.Helper()
	require.Equal(t, "application/pdf", a.Status(200).Header("Content-Type"))
	require.True(t, strings.HasPrefix(a.Text, "%PDF-1."), "it is a PDF")
	require.Contains(t, a.Text[len(a.Text)-20:], "%%EOF")
	program, err := exec.LookPath("pdftotext")
	if err != nil { // what stands in it is checked by the tests of http/pdf, which read it themselves
		return ""
	}
	file := filepath.Join(t.TempDir(), "statement.pdf")
	require.NoError(t, os.WriteFile(file, []byte(a.Text), 0o600))
	out, err := exec.Command(program, "-layout", file, "-").Output()
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(out)), " ")
}

func TestAStatementIsDrawnOfWhatTheLedgerShows(t *testing.T) {
	t.Parallel()
	o, s := tell(t)
	a := s.clerk.GET(ledger(s.account, "/statement.pdf"))
	require.Regexp(t, `^inline; filename=bank-\d+-statement\.pdf$`, a.Header("Content-Disposition"))
	require.Equal(t, s.deleted, a.Header("Bahi-Position"))
	for query, expected := range map[string][]string{
		"":                                      {"HDFC", "10 Jan 2025", "75.00", o.sys.Store.ID().String(), s.deleted},
		"?from=2025-02-01&to=2025-03-31":        {"10 Feb 2025", "35.00", "10.00"},
		"?from=2025-02-01&known_at=" + s.posted: {"10 Mar 2025", "65.00", s.posted},
		"?as_of=2025-02-28":                     {"35.00", "28 Feb 2025"},
		"?from=2025-05-01":                      {"75.00"},
		"?to=2024-12-31":                        {"0.00"},
	} {
		text := words(t, s.clerk.GET(ledger(s.account, "/statement.pdf")+query))
		for _, word := range expected {
			if text != "" {
				require.Contains(t, text, word, query)
			}
		}
	}
	s.clerk.GET(ledger(s.account+1, "/statement.pdf")).Problem(404, "Bank account not found")
	s.clerk.GET(ledger(s.account, "/statement.pdf?form=2025-01-01")).Problem(422, "Validation error", "form", "unknown parameter")
}

// What was drawn once can be drawn again, byte for byte.
func TestAStatementAsKnownIsAlwaysTheSame(t *testing.T) {
	t.Parallel()
	_, s := tell(t)
	path := ledger(s.account, "/statement.pdf?known_at=", s.edited)
	first := s.clerk.GET(path).Status(200).Text
	post(s.clerk, s.account, deposit("2025-01-01", "1000"))
	require.Equal(t, first, s.clerk.GET(path).Status(200).Text)
}
