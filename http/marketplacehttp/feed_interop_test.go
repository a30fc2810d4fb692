//go:build interop

package marketplacehttp_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// libxml2 reads the feed: scripts/interop, which make test-interop installs.
func TestFeedIsWhatItsSchemaSays(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	text := o.Anonymous().GET(feed(stocked(t, seller(o, o.Home)))).Status(200).Text
	validate := func(text string) (string, error) {
		node := exec.CommandContext(t.Context(), "node", "../../scripts/interop/feed.js", "testdata/catalog.xsd")
		node.Stdin = strings.NewReader(text)
		out, err := node.CombinedOutput()
		return string(out), err
	}
	out, err := validate(text)
	require.NoError(t, err, out)
	require.Contains(t, out, "valid")
	for _, broken := range []string{strings.Replace(text, "125.50", "125.5", 1), strings.Replace(text, "<currency>INR</currency>", "", 1),
		strings.TrimSuffix(text, "</catalog>\n")} {
		out, err = validate(broken)
		require.Error(t, err, out)
	}
}
