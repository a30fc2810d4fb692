package apptest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/pdftest"
)

// Words returns the text of a PDF, with single spaces.
func Words(t *testing.T, a *apitest.Answer) string {
	t.Helper()
	require.Equal(t, "application/pdf", a.Status(200).Header("Content-Type"))
	return pdftest.Read(t, []byte(a.Text)).Words()
}
