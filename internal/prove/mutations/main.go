// Command mutations plants faults in the program, one at a time, and reports which part of the harness detects each. A fault that none
// detects is a gap in the harness.
//
// Its arguments are numbers or names of mutations, or all. It compiles with Go's overlay, so the tree is not touched.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context, names []string) error {
	all, err := readAll("internal/prove/mutations")
	if err != nil {
		return err
	}
	if !slices.Contains(names, "all") {
		all = slices.DeleteFunc(all, func(m mutation) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return name == m.name || name == m.name[:2] })
		})
	}
	if len(all) == 0 {
		return errors.New("no such mutation; name one by its number, or all")
	}
	began := time.Now()
	if err := control(ctx, all); err != nil {
		return err
	}
	var survivors []string
	for _, m := range all {
		if err := m.hunt(ctx); errors.Is(err, errSurvived) {
			survivors = append(survivors, m.name)
		} else if err != nil {
			return err
		}
	}
	fmt.Printf("%d of %d mutations were found in %s\n", len(all)-len(survivors), len(all), time.Since(began).Round(time.Second))
	if len(survivors) > 0 {
		return fmt.Errorf("not found: %s", strings.Join(survivors, ", "))
	}
	return nil
}

// control runs each finder once on the unchanged tree. A finder that fails there would detect every mutation. The tests of a package run
// together.
func control(ctx context.Context, all []mutation) error {
	tests, order := map[string][]string{}, []finder{}
	for _, m := range all {
		for _, f := range m.finders {
			words := strings.Fields(string(f))
			if words[0] != "test" || len(words) != 3 {
				order = append(order, f)
			} else if known := tests[words[1]]; !slices.Contains(known, words[2]) {
				tests[words[1]] = append(known, words[2])
			}
		}
	}
	for folder, regexes := range tests {
		order = append(order, finder("test "+folder+" "+strings.Join(regexes, "|")))
	}
	slices.Sort(order)
	for _, f := range slices.Compact(order) {
		began := time.Now()
		if out, err := f.run(ctx, ""); err != nil {
			return fmt.Errorf("%s fails without a mutation: %w\n%s", f, err, out)
		}
		fmt.Printf("without a mutation %s passes (%s)\n", f, time.Since(began).Round(time.Second))
	}
	return nil
}

var errSurvived = errors.New("no part of the harness has found the mutation")

// hunt runs the finders until one fails, and prints a line of the table.
func (m mutation) hunt(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // temporary
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	source, err := m.apply(root)
	if err != nil {
		return err
	}
	mutated, overlay := filepath.Join(folder, filepath.Base(m.file)), filepath.Join(folder, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): mutated}})
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(mutated, source, 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		return err
	}
	if out, err := gocmd(ctx, overlay, "build", "./"+filepath.Dir(m.file)); err != nil {
		return fmt.Errorf("%s does not compile: %w\n%s", m.name, err, out)
	}
	began := time.Now()
	for _, f := range m.finders {
		out, err := f.run(ctx, overlay)
		took := time.Since(began).Round(time.Second)
		switch _, failed := errors.AsType[*exec.ExitError](err); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			continue
		case !failed, strings.HasPrefix(string(f), "test") && !failedTest.Match(out): // it was not run, or was killed
			return fmt.Errorf("%s: %s: %w\n%s", m.name, f, err, out)
		}
		fmt.Printf("%-28s found by %s after %s\n", m.name, symptom(f, out), took)
		return nil
	}
	fmt.Printf("%-28s SURVIVED %d finders and %s: %s\n", m.name, len(m.finders), time.Since(began).Round(time.Second), m.title)
	return errSurvived
}

var (
	failedTest = regexp.MustCompile(`(?m)--- FAIL: (\S+)|^(?:panic|fatal error): (.{1,60})`)
	seed       = regexp.MustCompile(`(?i)seed[ =:]+\d+`)
)

// symptom returns the name of the failed test, and its seed if the output has one.
func symptom(f finder, out []byte) string {
	what := string(f)
	for _, found := range failedTest.FindAllSubmatch(out, -1) { // the last is the innermost
		what = strings.Fields(string(f))[1] + " " + cmp.Or(string(found[1]), string(found[2]))
	}
	if s := seed.Find(out); s != nil {
		what += ", " + string(s)
	}
	return what
}

// run runs the finder, with the optional overlay.
func (f finder) run(ctx context.Context, overlay string) ([]byte, error) {
	return gocmd(ctx, overlay, f.args()...)
}

// gocmd runs the go command. GOFLAGS carries the overlay, so that programs built by tests have the fault too.
func gocmd(ctx context.Context, overlay string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "BAHI_TEST_PROGRAM=") })
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	}
	return cmd.CombinedOutput()
}

// mutation is a planted fault: a few edits of one file, and the commands that detect it, the fastest first.
type mutation struct {
	name    string // name of its file, such as 07-lost-notice
	title   string
	file    string // relative to the module's root
	finders []finder
	edits   []edit
}

// edit replaces a text that occurs once in the file.
type edit struct{ before, after string }

// finder is a command of the harness that fails if it detects the fault: "test PACKAGE REGEX [FLAGS]" or "histories [FLAGS]".
type finder string

// args returns the arguments of the go command.
func (f finder) args() []string {
	words := strings.Fields(string(f))
	switch {
	case words[0] == "histories":
		return append([]string{"run", "./cmd/bahi-prove"}, words...)
	case len(words) < 3:
		return append([]string{"test"}, words[1:]...)
	default:
		return append([]string{"test", "-count=1", "-vet=off", "-failfast", "-timeout=10m", words[1], "-run", words[2]}, words[3:]...)
	}
}

const (
	before = "-- before --\n"
	after  = "-- after --\n"
)

// parse reads the text of a mutation: its title, the lines "file: PATH" and "find: COMMAND", and pairs of old and new texts.
func parse(name, text string) (m mutation, err error) {
	head, rest, _ := strings.Cut(text, before)
	m.name = name
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		switch key, value, _ := strings.Cut(line, ": "); key {
		case "file":
			m.file = value
		case "find":
			m.finders = append(m.finders, finder(value))
		default:
			m.title = strings.TrimSpace(m.title + " " + line)
		}
	}
	for pair := range strings.SplitSeq(rest, before) {
		was, is, paired := strings.Cut(pair, after)
		if !paired || was == is {
			return m, fmt.Errorf("%s: expected pairs of %q and %q that differ", name, before, after)
		}
		m.edits = append(m.edits, edit{was, is})
	}
	if m.title == "" || m.file == "" || len(m.finders) == 0 {
		return m, fmt.Errorf("%s: the title, the line file: or a line find: is missing", name)
	}
	return m, nil
}

// readAll returns the mutations of a folder, ordered by name.
func readAll(folder string) (all []mutation, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "[0-9][0-9]-*.txt"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(name), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// apply returns the mutated source. It fails if the product's code has moved.
func (m mutation) apply(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	for _, e := range m.edits {
		if n := bytes.Count(source, []byte(e.before)); n != 1 {
			return nil, fmt.Errorf("%s: the text to replace occurs %d times in %s:\n%s", m.name, n, m.file, e.before)
		}
		source = bytes.Replace(source, []byte(e.before), []byte(e.after), 1)
	}
	formatted, err := format.Source(source)
	if err == nil && !bytes.Equal(formatted, source) {
		err = fmt.Errorf("%s: %s is not formatted", m.name, m.file)
	}
	return source, err
}
