package tidy

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// archaic has the words that STYLE.md bans, each with what to write instead. The expressions are taken apart so that this file has none.
var archaic = []struct {
	word    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\ban` + `ew\b`), "again, or the new state by its name"},
	{regexp.MustCompile(`(?i)\bforsa` + `k\w*`), "abandoned"},
	{regexp.MustCompile(`(?i)\bwho` + `ever\b`), "the actor by its noun"},
	{regexp.MustCompile(`(?i)\bof it` + `self\b`), "by itself, or nothing"},
	{regexp.MustCompile(`(?i)\bthere` + `of\b`), "its"},
	{regexp.MustCompile(`(?i)\bwhat` + `soever\b`), "nothing"},
	{regexp.MustCompile(`(?i)\bst` + `ands?\b([^-]|$)`), "is, exists, has stopped"},
	{regexp.MustCompile(`(?i)\bst` + `ood\b`), "was, existed"},
	{regexp.MustCompile(`^// (\(?\*?\w+\)?\.)?\w+ ans` + `wers\b`), "returns, in a doc comment"},
}

// standsFor are the two uses of a banned verb that mean something else.
var standsFor = regexp.MustCompile(`(?i)\bst` + `and(s|ing)? (in )?for\b`)

// quoted is a name or somebody else's text in the middle of a sentence.
var quoted = regexp.MustCompile("`[^`]*`|“[^”]*”")

// notYetPlain has the folders and files whose prose nobody has gone through. It only gets shorter.
var notYetPlain = []string{
	"http/api/docs/LICENSE", "http/audit/events.go", "http/audit/trail.go", "http/audit/trail_test.go",
	"internal/app/gateway.go", "internal/app/gateway_test.go",
}

// prose complains of archaic words in Go's comments and strings, and in every line of documents, SQL and scripts.
func prose(fsys fs.FS, names []string) (complaints []string) {
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			complaints = append(complaints, err.Error())
			continue
		}
		complain := func(line int, said string) {
			said = standsFor.ReplaceAllString(quoted.ReplaceAllString(said, ""), "")
			for _, a := range archaic {
				if word := a.word.FindString(said); word != "" {
					complaints = append(complaints, fmt.Sprintf("%s:%d: %q: write %s", name, line, strings.TrimSpace(word), a.instead))
				}
			}
		}
		switch {
		case generated.Match(text):
		case path.Ext(name) == ".go":
			files := token.NewFileSet()
			var s scanner.Scanner
			s.Init(files.AddFile(name, -1, len(text)), text, nil, scanner.ScanComments)
			for {
				pos, kind, said := s.Scan()
				if kind == token.EOF {
					break
				}
				if kind == token.COMMENT || kind == token.STRING && !strings.HasPrefix(said, "`") {
					for i, line := range strings.Split(said, "\n") {
						complain(files.Position(pos).Line+i, line)
					}
				}
				if kind == token.STRING && strings.HasPrefix(said, "`") { // a tag has help texts; the quotes of a raw string are not a quotation
					for i, line := range strings.Split(strings.Trim(said, "`"), "\n") {
						complain(files.Position(pos).Line+i, line)
					}
				}
			}
		case slices.Contains([]string{".md", ".sql", ".sh", ".yml", ""}, path.Ext(name)) && !strings.Contains(name, "testdata/"):
			for i, line := range strings.Split(string(text), "\n") {
				complain(i+1, line)
			}
		}
	}
	return complaints
}

func TestProseIsPlain(t *testing.T) {
	t.Parallel()
	fsys, names := repository(t)
	for _, folder := range notYetPlain {
		require.NotEmpty(t, prose(fsys, below(names, folder)), "%s is plain; take it out of notYetPlain", folder)
		names = slices.DeleteFunc(names, func(name string) bool { return isBelow(name, folder) })
	}
	for _, complaint := range prose(fsys, names) {
		t.Error(complaint)
	}
}

// isBelow reports whether a name is a folder's, or of a file in it.
func isBelow(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// below returns the names that are in a folder.
func below(names []string, folder string) (found []string) {
	for _, name := range names {
		if isBelow(name, folder) {
			found = append(found, name)
		}
	}
	return found
}

func TestArchaicWordsAreFound(t *testing.T) {
	t.Parallel()
	again, anyone, is, returns := "an"+"ew", "Who"+"ever", "st"+"ands", "ans"+"wers"
	for text, name := range map[string]string{
		"// It is made " + again + ".\n":                          "a.go",
		"/* One line.\n" + anyone + " comes. */":                  "a.go",
		`var help = "` + anyone + ` asks."`:                       "a.go",
		"type s struct{ A int `help:\"Build it " + again + "\"`}": "a.go",
		"// Get " + returns + " what is kept.\nfunc Get() {}":     "a.go",
		"// A row that " + is + " there.":                         "a.go",
		"-- what " + is + " in the log":                           "a.sql",
		"Tables are built " + again + ".":                         "a.md",
		"build: ## build it " + again:                             "Makefile",
	} {
		if name == "a.go" {
			text = "package a\n" + text
		}
		require.Len(t, prose(fstest.MapFS{name: {Data: []byte(text)}}, []string{name}), 1, text)
	}
	for text, name := range map[string]string{
		"package a // The name " + is + " for the kind.\n":    "a.go",
		"package a\nvar " + is + " = 1 // the client asks\n":  "a.go",
		"package a // The server " + returns + " in time.\n":  "a.go",
		"The event `Built" + again + "` and `" + again + "`.": "a.md",
		"// Code generated by x. DO NOT EDIT.\n// " + again:   "b.go",
		`{"type": "` + again + `"}`:                           "a.json",
	} {
		require.Empty(t, prose(fstest.MapFS{name: {Data: []byte(text)}}, []string{name}), text)
	}
}
