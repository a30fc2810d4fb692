package apptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
)

// Words returns the text of a PDF, with single spaces.
func Words(t *testing.T, a *apitest.Answer) string {
	t.Helper()
	require.Equal(t, "application/pdf", a.Status(200).Header("Content-Type"))
	require.True(t, strings.HasPrefix(a.Text, "%PDF-1."), "not a PDF")
	require.Contains(t, a.Text[len(a.Text)-20:], "%%EOF")
	program, err := exec.LookPath("pdftotext")
	if err != nil { // the tests of http/pdf check the text; they parse it themselves
		return ""
	}
	file := filepath.Join(t.TempDir(), "statement.pdf")
	require.NoError(t, os.WriteFile(file, []byte(a.Text), 0o600))
	out, err := exec.Command(program, "-layout", file, "-").Output()
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(out)), " ")
}
