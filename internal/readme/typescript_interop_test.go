//go:build interop

package readme

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bahi/internal/test/worktest"

	"github.com/stretchr/testify/require"
)

func TestTypeScriptClientRunsTheSession(t *testing.T) {
	t.Parallel()
	const dir = "../../scripts/document"
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		var wrong strings.Builder
		cmd.Stderr = &wrong
		text, err := cmd.Output()
		require.NoError(t, err, "%s %s: %s%s", program, args, text, wrong.String())
		return string(text)
	}
	run("node_modules/.bin/openapi-typescript", "../../http/testdata/openapi.json", "-o", "api.d.ts")
	run("node_modules/.bin/tsc", "--project", ".")

	var shown strings.Builder
	for _, name := range []string{"README.md", "docs/books.md"} {
		page := worktest.File(t, "../../"+name)
		for _, s := range steps(string(page)) {
			if strings.HasPrefix(s.command, "api ") {
				shown.WriteString(s.shown)
			}
		}
	}
	checkout := t.TempDir()
	build(t, checkout)
	address, data := serve(t, filepath.Join(checkout, "bin", "bahi"))
	key := worktest.File(t, filepath.Join(data, "keys", "admin.key"))
	require.Equal(t, shown.String(), run("node", "session.js", "http://"+address, strings.TrimSpace(string(key))))
}
