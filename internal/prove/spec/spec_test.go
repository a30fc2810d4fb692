package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func explored[S comparable](t *testing.T, m Model[S]) error {
	t.Helper()
	states, err := Explore(m)
	t.Logf("%d states", states)
	return err
}

// No order of steps breaks a rule.
func TestProtocols(t *testing.T) {
	t.Parallel()
	require.NoError(t, explored(t, Commit{}.Model()))
	require.NoError(t, explored(t, Commit{Journal: true}.Model()))
	require.NoError(t, explored(t, Pointer{}.Model()))
	require.NoError(t, explored(t, Lease{}.Model()))
}

// Each step is needed: without it, some order of steps breaks a rule.
func TestProtocolsWithoutAStep(t *testing.T) {
	t.Parallel()
	for step, rule := range map[string]string{
		"end": "a refused group is in the log", "head": "both groups are in the log", "commit": "an acknowledged group is not in the log",
	} {
		require.ErrorContains(t, explored(t, Commit{Without: step}.Model()), rule, step)
	}
	for step, rule := range map[string]string{"revision": "twice", "commit": "an acknowledged group is not in the log"} {
		require.ErrorContains(t, explored(t, Commit{Journal: true, Without: step}.Model()), rule, step)
	}
	for step, rule := range map[string]string{
		"fence": "its checkpoint is", "record": "a reader sees less", "reach": "a reader sees less", "kept": "a reader sees less",
	} {
		require.ErrorContains(t, explored(t, Pointer{Without: step}.Model()), rule, step)
	}
	for step, rule := range map[string]string{
		"sent": "two jobs have the lease", "deadline": "two jobs have the lease", "key": "a message has two replies",
	} {
		require.ErrorContains(t, explored(t, Lease{Without: step}.Model()), rule, step)
	}
}

// A model names existing functions.
func TestModelsDescribeTheProgram(t *testing.T) {
	t.Parallel()
	for _, described := range []map[string][]string{CommitDescribes, PointerDescribes, LeaseDescribes} {
		for file, names := range described {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../../..", file), nil, 0)
			require.NoError(t, err)
			var there []string
			for _, d := range parsed.Decls {
				if f, is := d.(*ast.FuncDecl); is {
					there = append(there, f.Name.Name)
				}
			}
			require.Subset(t, there, names, file)
		}
	}
}
