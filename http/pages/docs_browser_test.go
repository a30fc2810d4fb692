package pages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
)

func TestTheDocsAreSearchedWhileTyping(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	p := browsertest.Open(t, o.URL)
	p.Go("/docs")
	p.Type("#docs-q", "fine_percent")
	p.Until(`document.querySelector('#docs-found a[href="/docs/add-karigar-row"]') &&
		!document.querySelector('#docs-found a[href="/docs/open-bank"]')`)
	p.Until(`location.search === "?q=fine_percent"`)
	require.True(t, p.Is(`document.activeElement.id === "docs-q"`))
	p.Submit(`#docs-found a[href="/docs/add-karigar-row"]`)
	require.Contains(t, p.Text(".curl"), "$BAHI/karigar-ledger/1")
	require.Equal(t, "Copy", p.Text(".curl .copy"))
	p.Evaluate(`navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }`, nil)
	p.Click(".curl .copy")
	p.Until(`document.querySelector(".curl .copy").textContent === "Copied"`)
	require.True(t, p.Is(`window.copied.startsWith("curl -sS -X POST") && !window.copied.includes("Copy")`))
}
