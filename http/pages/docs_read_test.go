package pages

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func readTestManual(t *testing.T) (document, *manual) {
	t.Helper()
	spec, err := os.ReadFile("../testdata/openapi.json")
	require.NoError(t, err)
	d, err := readDocument(spec)
	require.NoError(t, err)
	m, err := readManual(d)
	require.NoError(t, err)
	return d, m
}

func TestDocsKnowEachOperation(t *testing.T) {
	t.Parallel()
	d, m := readTestManual(t)
	require.Greater(t, len(d), 280)
	for _, o := range d {
		require.NotEmpty(t, o.Answers, o.ID)
		for _, r := range o.Refusals {
			require.NotEmpty(t, m.Meaning(r.Status).Means, "%s: the guide for clients does not tell what %s means", o.ID, r.Status)
			require.NotEmpty(t, r.Codes()[0], "%s: %s has no code", o.ID, r.Status)
		}
		first, _, _ := strings.Cut(o.curl(""), "\n")
		require.NotContains(t, first, "{", o.ID)
	}
}

func TestGuidesLinkToEachOther(t *testing.T) {
	t.Parallel()
	_, m := readTestManual(t)
	anchors := map[string]bool{}
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
