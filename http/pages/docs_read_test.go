package pages

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func readTestManual(t *testing.T) *manual {
	t.Helper()
	spec, err := os.ReadFile("../testdata/openapi.json")
	require.NoError(t, err)
	m, err := readManual(spec)
	require.NoError(t, err)
	return m
}

func TestDocsKnowEachOperation(t *testing.T) {
	t.Parallel()
	m := readTestManual(t)
	require.Greater(t, len(m.operations), 280)
	for _, o := range m.operations {
		require.NotEmpty(t, o.Answers, o.ID)
		for _, r := range o.Refusals {
			require.NotEmpty(t, r.Means, "%s: the guide for clients does not tell what %d means", o.ID, r.Status)
			require.NotEmpty(t, r.Codes[0], "%s: %d has no code", o.ID, r.Status)
		}
		first, _, _ := strings.Cut(o.curl(""), "\n")
		require.NotContains(t, first, "{", o.ID)
	}
}

func TestGuidesLinkToEachOther(t *testing.T) {
	t.Parallel()
	m, anchors := readTestManual(t), map[string]bool{}
	for _, g := range m.guides {
		anchors[g.Link()] = true
		for _, s := range g.Sections {
			anchors[g.Link()+"#"+s.ID] = true
		}
	}
	for _, g := range m.guides {
		for _, link := range regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(string(g.HTML), -1) {
			to := link[1]
			if strings.HasPrefix(to, "#") {
				to = g.Link() + to
			}
			require.True(t, anchors[to] || strings.HasPrefix(to, "https://"), "%s links to %s", g.Name, to)
		}
		require.NotContains(t, string(g.HTML), "<script")
	}
}
