package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bahi/internal/test/worktest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// A fault that does not apply to the code any more, or does not compile, shows nothing.
func TestEachMutationAppliesToTheTree(t *testing.T) {
	t.Parallel()
	all, err := readAll(".")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 30)
	packages, tests := listed(t, all), testsOf(t)
	numbers := map[string]bool{}
	for _, m := range all {
		require.False(t, numbers[m.name[:2]], "two mutations have the number %s", m.name[:2])
		numbers[m.name[:2]] = true
		source, err := m.apply(root)
		require.NoError(t, err)
		assert.NoError(t, compiles(packages, m, source), m.name)
		for _, f := range m.finders {
			folder := strings.Trim(strings.TrimPrefix(strings.Fields(string(f))[1], "./"), "/")
			for _, name := range testName.FindAllString(string(f), -1) {
				assert.True(t, tests[folder+"."+name], "%s: there is no test %s in %s", m.name, name, folder)
			}
		}
	}
}

// A reader must be able to look up what the document names.
func TestThePageNamesWhatExists(t *testing.T) {
	t.Parallel()
	text := worktest.File(t, filepath.Join(root, "docs/correctness.md"))
	tests := testsOf(t)
	require.NotEmpty(t, testName.FindAllString(string(text), -1))
	for _, name := range testName.FindAllString(string(text), -1) {
		assert.True(t, tests[name], "there is no test %s", name)
	}
	for _, path := range regexp.MustCompile("`((?:internal|scripts|docs|cmd)/[^ `]+)`").FindAllStringSubmatch(string(text), -1) {
		_, err := os.Stat(filepath.Join(root, path[1]))
		assert.NoError(t, err)
	}
}

var testName = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]+`)

// testsOf returns the names of all tests, alone and with their folders.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		for _, name := range declared.FindAllStringSubmatch(string(text), -1) {
			found[name[1]], found[filepath.ToSlash(filepath.Dir(path))+"."+name[1]] = true, true
		}
		return err
	}))
	return found
}

func TestAMutationMustMatchOnce(t *testing.T) {
	t.Parallel()
	text := "Title.\n\nfile: internal/prove/mutations/main.go\nfind: test . TestX\n" + before
	for _, was := range []string{"no such text\n", "\n"} {
		m, err := parse("99-x", text+was+after+"x\n")
		require.NoError(t, err)
		_, err = m.apply(root)
		require.ErrorContains(t, err, "occurs")
	}
	_, err := parse("99-x", text+"same\n"+after+"same\n")
	require.Error(t, err)
}

type listedPackage struct {
	Dir, Export, ImportPath string
	GoFiles                 []string
	DepOnly                 bool
}

// listed returns the packages that are mutated, and all their imports, by import path and by folder.
func listed(t *testing.T, all []mutation) map[string]listedPackage {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=Dir,Export,ImportPath,GoFiles,DepOnly"}
	for _, m := range all {
		args = append(args, "./"+filepath.Dir(m.file))
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	packages := map[string]listedPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages[p.ImportPath], packages[p.Dir] = p, p
	}
}

// compiles checks the types of the mutated package.
func compiles(packages map[string]listedPackage, m mutation, source []byte) error {
	folder, err := filepath.Abs(filepath.Join(root, filepath.Dir(m.file)))
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range packages[folder].GoFiles {
		var text any
		if name == filepath.Base(m.file) {
			text = source
		}
		f, err := parser.ParseFile(files, filepath.Join(folder, name), text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	config := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(packages[path].Export)
	})}
	_, err = config.Check(packages[folder].ImportPath, files, parsed, nil)
	return err
}
