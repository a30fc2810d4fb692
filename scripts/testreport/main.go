// Command testreport reads the output of `go test -json`. It prints a line per package, the output of failed tests, slow tests, and at the
// end "N passed, N failed". It exits with 1 if anything failed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	ok, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// A test or a package that takes more seconds is listed at the end.
const (
	longTest    = 5
	longPackage = 60
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // path of the package that did not build
	FailedBuild string
	Test        string
	Elapsed     float64
	Output      string
}

// reporter collects the output of tests, and prints that of failed ones.
type reporter struct {
	out            io.Writer
	passed, failed int
	said           map[string]*strings.Builder // by package and test
	failedIn       map[string]int              // by package
	slow           []event
}

// report prints the events of a test run, and reports whether it succeeded. A run without a passed test failed: it was started wrongly.
func report(in io.Reader, out io.Writer) (ok bool, err error) {
	r := &reporter{out: out, said: map[string]*strings.Builder{}, failedIn: map[string]int{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				r.printf("%s", line) // The go command's own words, not a test's.
			} else {
				r.take(e)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, fmt.Errorf("read events: %w", err)
		}
	}
	slices.SortFunc(r.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range r.slow {
		r.printf("slow: %7.1fs  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	r.printf("%d passed, %d failed\n", r.passed, r.failed)
	return r.failed == 0 && r.passed > 0, nil
}

func (r *reporter) take(e event) {
	long := e.Test == "" && e.Elapsed > longPackage || e.Test != "" && e.Elapsed > longTest
	if long && !strings.Contains(e.Test, "/") && (e.Action == "pass" || e.Action == "fail") {
		r.slow = append(r.slow, e)
	}
	switch {
	case e.Action == "run":
		r.log(e) // so that it is listed if it never ends, even without output
	case e.Action == "output" || e.Action == "build-output":
		if !frame(e.Output) {
			r.log(e).WriteString(e.Output)
		}
	case e.Test != "" && e.Action == "pass":
		r.passed++
		r.forget(e)
	case e.Test != "" && e.Action == "skip":
		r.forget(e)
	case e.Test != "" && e.Action == "fail":
		r.failed++
		r.failedIn[e.Package]++
		r.printf("--- FAIL: %s %s (%.2fs)\n%s", e.Package, e.Test, e.Elapsed, r.log(e))
		r.forget(e)
	case e.Test == "" && (e.Action == "pass" || e.Action == "skip"):
		if e.Action == "pass" {
			r.printf("ok    %s  %.1fs\n", e.Package, e.Elapsed)
		}
		r.forget(e)
	case e.Test == "" && e.Action == "fail":
		r.packageFailed(e)
	}
}

// packageFailed prints output outside tests: a build error, a panic, a data race at the end, the number of the shuffle.
func (r *reporter) packageFailed(e event) {
	if e.FailedBuild != "" {
		r.printf("%s", r.log(event{ImportPath: e.FailedBuild}))
	}
	r.printf("%s", r.log(e))
	for key, said := range r.said { // A test that was running when its process ended has no end of its own.
		if name, unfinished := strings.CutPrefix(key, e.Package+" "); unfinished && name != "" {
			r.printf("--- unfinished: %s\n%s", name, said)
			delete(r.said, key)
		}
	}
	if r.failedIn[e.Package] == 0 {
		r.failed++
	}
	r.printf("FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	r.forget(e)
}

func (r *reporter) log(e event) *strings.Builder {
	key := key(e)
	if r.said[key] == nil {
		r.said[key] = new(strings.Builder)
	}
	return r.said[key]
}

func (r *reporter) forget(e event) { delete(r.said, key(e)) }

func key(e event) string {
	if e.Package == "" {
		return "build " + e.ImportPath
	}
	return e.Package + " " + e.Test
}

// frame reports whether a line only marks that a test begins, pauses or ends, which the report itself shows.
func frame(line string) bool {
	line = strings.TrimLeft(line, " ")
	for _, start := range []string{"=== ", "--- ", "PASS\n", "FAIL\n", "FAIL\t", "ok  \t"} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

func (r *reporter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...) // To a terminal or CI's log; there is no other output.
}
