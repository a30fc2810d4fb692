package pages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// TestARebuildIsWatched begins a rebuild that is slow, lets it go on without a limit, and sees its end without opening the page again.
func TestARebuildIsWatched(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	apptest.Fill(clerk, apptest.Open(clerk, "HDFC"), 50)
	p := enter(o, operatorRights)
	p.Go("/app/operate/projections/books")
	p.Submit(`#acts a[href$="/rebuild"]`)
	require.Equal(t, "/app/operate/projections/books/rebuild", p.URL())
	require.Contains(t, p.Text("main"), "It takes about")
	p.Type(`[name="throttle"]`, "1")
	p.Submit("main form.stack button.primary")
	p.Until(`document.querySelector("#live").innerText.includes("Filling")`)
	p.Until(`document.querySelector("progress").value > 0`)
	p.Click(`#acts details:has([name="events_per_second"]) summary`)
	p.Type(`[name="events_per_second"]`, "0")
	p.Submit(`#acts details:has([name="events_per_second"]) button`)
	require.Contains(t, p.Text(`#acts details[open] .error`), "must be at least 1")
	p.Evaluate(`document.querySelector('[name="events_per_second"]').value = ""`, nil)
	p.Submit(`#acts details:has([name="events_per_second"]) button`)
	p.Until(`!document.querySelector("progress, [data-stream]") && document.querySelector('#acts a[href$="/rebuild"]') &&
		document.querySelector("#live").innerText.includes("Live generation\n2")`)
	require.NotContains(t, p.Text("main"), "A rebuild goes on")
}
