package tidy

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// guide is the document whose excerpts are compared with their files.
const guide = "CONTRIBUTING.md"

// excerptOf is the line above a block of code: the path of its file in backquotes, and a remark for the reader.
var excerptOf = regexp.MustCompile("^`([^` ]+)`")

// excerpts reports each block of Go, SQL or shell that names no file, and each line that its file lacks. The lines of a block occur in
// their order in the file. A line "…" marks an omission.
func excerpts(fsys fs.FS, name string) (complaints []string) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return []string{err.Error()}
	}
	var source, above string
	var rest []string // the lines of source that are below the last one found
	inside := false
	for i, line := range strings.Split(string(text), "\n") {
		place := fmt.Sprintf("%s:%d", name, i+1)
		trimmed := strings.TrimSpace(line)
		switch {
		case inside && trimmed == "```":
			inside, source = false, ""
		case inside && source != "" && trimmed != "" && trimmed != "…" && trimmed != "// …" && trimmed != "-- …":
			at := slices.IndexFunc(rest, func(l string) bool { return strings.TrimSpace(l) == trimmed })
			if at < 0 {
				complaints = append(complaints, fmt.Sprintf("%s: %s has no such line below the excerpt's last one: %s", place, source, trimmed))
				continue
			}
			rest = rest[at+1:]
		case inside:
		case strings.HasPrefix(trimmed, "```"):
			inside = true
			m := excerptOf.FindStringSubmatch(above)
			language := strings.TrimPrefix(trimmed, "```")
			switch {
			case !slices.Contains([]string{"go", "sql", "sh"}, language):
			case m == nil:
				complaints = append(complaints, fmt.Sprintf("%s: the line above this block names no file", place))
			default:
				file, err := fs.ReadFile(fsys, m[1])
				if err != nil {
					complaints = append(complaints, fmt.Sprintf("%s: %v", place, err))
					continue
				}
				source, rest = m[1], strings.Split(string(file), "\n")
			}
		case trimmed != "":
			above = trimmed
		}
	}
	return complaints
}

func TestExcerptsOfTheGuideMatchTheirFiles(t *testing.T) {
	t.Parallel()
	fsys, _ := repository(t)
	require.Empty(t, excerpts(fsys, guide))
}

func TestOutdatedExcerptsAreFound(t *testing.T) {
	t.Parallel()
	source := &fstest.MapFile{Data: []byte("package a\n\nfunc F() {\n\tone()\n\ttwo()\n}\n")}
	block := func(above, language string, lines ...string) string {
		return above + "\n\n```" + language + "\n" + strings.Join(lines, "\n") + "\n```\n"
	}
	for text, complaint := range map[string]string{
		block("`a/a.go`", "go", "func F() {", "\tthree()",
			"}"): "guide.md:5: a/a.go has no such line below the excerpt's last one: three()",
		block("`a/a.go`", "go", "two()",
			"one()"): "guide.md:5: a/a.go has no such line below the excerpt's last one: one()",
		block("`a/b.go`", "go", "func F() {"):                            "guide.md:3: open a/b.go: file does not exist",
		block("See here:", "go", "func F() {"):                           "guide.md:3: the line above this block names no file",
		block("`a/a.go`", "go", "one()") + block("And:", "sql", "two()"): "guide.md:8: the line above this block names no file",
	} {
		require.Equal(t, []string{complaint}, excerpts(fstest.MapFS{"guide.md": {Data: []byte(text)}, "a/a.go": source}, "guide.md"), text)
	}
	for _, text := range []string{
		block("`a/a.go` has the function:", "go", "func F() {", "", "\t…", "    two()", "}"),
		block("In a shell:", "console", "$ make test"),
		block("No code:", "", "a picture"),
	} {
		require.Empty(t, excerpts(fstest.MapFS{"guide.md": {Data: []byte(text)}, "a/a.go": source}, "guide.md"), text)
	}
}
