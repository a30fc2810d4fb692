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

// Words is the text of a PDF, with single spaces.
func Words(t *testing.T, a *apitest.Answer) string {
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
