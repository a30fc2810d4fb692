package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
)

// mutation is a planted fault: a few edits of one file, and the commands that detect it, the fastest first.
type mutation struct {
	name    string // of its file, such as 07-lost-notice
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
		return m, fmt.Errorf("%s: expected a title, a line file: and a line find:", name)
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
