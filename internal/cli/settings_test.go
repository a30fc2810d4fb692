package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"bahi/internal/cli"
)

func TestEverySettingIsInTheOperatorsGuide(t *testing.T) {
	t.Parallel()
	k, err := kong.New(&cli.Commands{})
	require.NoError(t, err)
	serve := slices.IndexFunc(k.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	require.GreaterOrEqual(t, serve, 0)
	var settings []string
	for _, flags := range k.Model.Children[serve].AllFlags(false) {
		for _, flag := range flags {
			settings = append(settings, flag.Envs...)
		}
	}
	slices.Sort(settings)
	require.Contains(t, settings, "BAHI_DELETION_GRACE")

	text, err := os.ReadFile("../../docs/accounts.md")
	require.NoError(t, err)
	var named []string
	for line := range strings.Lines(string(text)) {
		row, isRow := strings.CutPrefix(line, "| `")
		names, _, _ := strings.Cut(row, " | ")
		for _, name := range regexp.MustCompile(`[A-Z_]{4,}`).FindAllString(names, -1) {
			if isRow && name != "BAHI_LIMIT_" && name != "GROUP" { // a family of settings, tested elsewhere
				named = append(named, name)
			}
		}
	}
	slices.Sort(named)
	require.Equal(t, settings, named, "each setting once, and no unknown one")
}
