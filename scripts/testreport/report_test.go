package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runTests runs go test on a module made of the given files, and returns the report.
func runTests(t *testing.T, files map[string]string) (string, bool) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module sample\n\ngo 1.26.0\n"
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "-vet=off", "./...")
	cmd.Dir = dir
	events, _ := cmd.Output() // The report has to show its status.
	var out bytes.Buffer
	ok, err := report(bytes.NewReader(events), &out)
	require.NoError(t, err)
	return out.String(), ok
}

func TestGoodRunIsShort(t *testing.T) {
	t.Parallel()
	out, ok := runTests(t, map[string]string{
		"a/a_test.go": `package a; import "testing"; func TestA(t *testing.T) { t.Log("chatter"); t.Run("sub", func(t *testing.T) {}) }`,
		"b/b.go":      `package b`,
	})
	require.True(t, ok, out)
	require.Contains(t, out, "ok    sample/a")
	require.NotContains(t, out, "chatter")
	require.True(t, strings.HasSuffix(out, "\n2 passed, 0 failed\n"), out)
}

func TestFailuresAreShownAndCounted(t *testing.T) {
	t.Parallel()
	out, ok := runTests(t, map[string]string{
		"a/a_test.go": `package a; import "testing"; func TestGood(t *testing.T) { t.Log("chatter") }; func TestBad(t *testing.T) { ` +
			`t.Error("the reason") }`,
		"b/b_test.go": `package b; import "testing"; func TestPanic(t *testing.T) { panic("the panic") }`,
		"c/c_test.go": `package c; import "testing"; func TestBuild(t *testing.T) { undefined() }`,
		"d/d_test.go": `package d; import ("os"; "testing"); func TestExit(t *testing.T) { println("last words"); os.Exit(3) }`,
		"e/e_test.go": `package e; import ("os"; "testing"); func TestSkips(t *testing.T) { t.Skip() }; func TestSilent(t *testing.T) { ` +
			`os.Exit(3) }`,
	})
	require.False(t, ok)
	for _, want := range []string{"--- FAIL: sample/a TestBad", "the reason", "the panic", "undefined: undefined", "last words",
		"FAIL  sample/c", "--- unfinished: TestSilent"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "chatter")
	require.NotContains(t, out, "TestSkips")
	require.True(t, strings.HasSuffix(out, "\n1 passed, 5 failed\n"), out)
}

func TestRunWithoutATestIsNotGood(t *testing.T) {
	t.Parallel()
	out, ok := runTests(t, map[string]string{"b/b.go": `package b`})
	require.False(t, ok)
	require.Equal(t, "0 passed, 0 failed\n", out)
}

func TestSlowTestsAndPackagesAreListed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ok, err := report(strings.NewReader(`{"Action":"pass","Package":"sample/a","Test":"TestShort","Elapsed":4.9}
{"Action":"pass","Package":"sample/a","Test":"TestLong/part","Elapsed":61}
{"Action":"pass","Package":"sample/a","Test":"TestLong","Elapsed":61}
{"Action":"pass","Package":"sample/a","Elapsed":62}
`), &out)
	require.NoError(t, err)
	require.True(t, ok)
	require.Contains(t, out.String(), "slow:    62.0s  sample/a \nslow:    61.0s  sample/a TestLong\n3 passed")
}
