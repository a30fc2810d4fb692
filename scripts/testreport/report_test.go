package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runTests runs go test on a module made of the given files, and answers the report.
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
	events, _ := cmd.Output() // Its status is what the report is to tell.
	var out bytes.Buffer
	slow, err := newSlowness("", func() float64 { return 1 })
	require.NoError(t, err)
	ok, err := report(bytes.NewReader(events), &out, slow)
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

// judged reports a run of one package with one test that took so long, where slow.txt has these lines.
func judged(t *testing.T, lines string, pace, seconds float64, cached string) (string, bool) {
	t.Helper()
	slow, err := newSlowness(lines, func() float64 { return pace })
	require.NoError(t, err)
	var out bytes.Buffer
	events := fmt.Sprintf(`{"Action":"pass","Package":"sample/a","Test":"TestLong","Elapsed":%[1]f}
{"Action":"pass","Package":"sample/a","Test":"TestLong/part","Elapsed":%[1]f}
{"Action":"output","Package":"sample/a","Output":"ok  \tsample/a\t%[2]s\n"}
{"Action":"pass","Package":"sample/a","Elapsed":%[1]f}
`, seconds, cached)
	ok, err := report(strings.NewReader(events), &out, slow)
	require.NoError(t, err)
	return out.String(), ok
}

func TestASlowTestNeedsAReason(t *testing.T) {
	t.Parallel()
	out, ok := judged(t, "", 1, 4.9, "4.9s")
	require.True(t, ok)
	require.NotContains(t, out, "slow")
	out, ok = judged(t, "", 1, 19, "19s")
	require.True(t, ok, "this machine may be slow in another way")
	require.Contains(t, out, "19.0s  a TestLong: no reason in")
	require.NotContains(t, out, "part")
	out, ok = judged(t, "", 1, 201, "201s")
	require.False(t, ok)
	require.Contains(t, out, "201.0s  a TestLong: TOO SLOW")
	out, ok = judged(t, "", 2, 201, "201s")
	require.True(t, ok, out)
	_, ok = judged(t, "", 1, 201, "(cached)")
	require.True(t, ok, "it was judged when it ran")
	out, ok = judged(t, "# why\na TestLong: it waits for a minute to pass\n", 1, 61, "61s")
	require.True(t, ok, out)
	require.Contains(t, out, "61.0s  a TestLong: it waits for a minute to pass\n")
	require.Contains(t, out, "61.0s  a: no reason in")
	_, ok = judged(t, "a TestLong: it waits\n", 1, 2401, "2401s")
	require.False(t, ok, "the package is too slow")
}

func TestTheListNamesTestsThatThereAre(t *testing.T) {
	t.Parallel()
	out, ok := judged(t, "a TestGone: it was long\nb TestElsewhere: it was not run\n", 1, 1, "1s")
	require.False(t, ok)
	require.Contains(t, out, "has a TestGone, which does not exist")
	require.NotContains(t, out, "TestElsewhere")
	_, err := newSlowness("a TestLong\n", nil)
	require.ErrorContains(t, err, `"a TestLong" has no reason`)
	_, err = newSlowness(slowTests, nil)
	require.NoError(t, err)
}
