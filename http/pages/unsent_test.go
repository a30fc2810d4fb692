package pages_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/browsertest"
)

// line is a connection to the server that can be cut.
func line(o *apptest.Server) (address string, cut *atomic.Bool) {
	o.T.Helper()
	to, err := url.Parse(o.URL)
	require.NoError(o.T, err)
	cut, proxy := new(atomic.Bool), httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	o.T.Cleanup(server.Close)
	return server.URL, cut
}

func TestRowsWaitForAConnection(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	account := book(o, o.Clerk(o.Home), 0)
	address, cut := line(o)
	p := browsertest.Open(t, address)
	p.Go("/app/sign-in")
	p.Click("summary")
	p.Type("#key", o.Key(o.Home, write).Key)
	p.Submit("details button")
	p.Go(account)
	save := func(amount string) {
		p.Type(`[name="in_entries[0].amount"]`, amount)
		p.Click("#entry button.primary")
		p.Until(`!document.querySelector('[name="in_entries[0].amount"]').value`)
	}
	const two = `document.querySelector("#unsent").innerText.includes("2 rows not sent")`
	cut.Store(true)
	save("70")
	save("many") // nothing refuses it yet
	p.Until(two)
	require.Contains(t, p.Text("#unsent"), "HDFC")
	p.Click("#send-now")
	p.Until(`document.querySelector("#unsent[aria-busy=false]")`)

	cut.Store(false)
	p.Go("/app/") // the rows are shown on each page, and in another session
	p.Until(two)
	p.Click("#send-now")
	p.Until(`document.querySelectorAll("#unsent li").length === 1`)
	require.Contains(t, p.Text("#unsent em"), "number")
	p.Click("#send-now") // the row that was sent is not sent again
	p.Click("#unsent li button")
	p.Until(`document.getElementById("unsent").hidden`)
	p.Go(account)
	require.Len(t, p.Texts(".rows tbody tr"), 1)
	require.Contains(t, p.Text(".rows tbody"), "₹70.00")
	save("5")
	p.Until(`document.querySelector("main").innerText.includes("Saved.") && document.querySelectorAll(".rows tbody tr").length === 2`)

	p.Evaluate(`document.querySelector("#entry [name=token]").value = "x", 0`, new(int)) // as after a new sign-in in another tab
	save("9")
	p.Until(`document.querySelector("#unsent em").textContent.includes("earlier session")`)
	p.Click("#send-now")
	p.Until(`document.getElementById("unsent").hidden`)
	cut.Store(true)
	save("11")
	cut.Store(false)
	p.Evaluate(`window.confirm = () => false`, nil)
	p.Click(`form[action="/app/sign-out"] button`)
	p.Until(`localStorage.getItem("bahi-unsent")`)
	p.Evaluate(`window.confirm = text => { window.said = text; return true }`, nil)
	p.Submit(`form[action="/app/sign-out"] button`)
	require.Equal(t, "/app/sign-in", p.URL())
	require.True(t, p.Is(`localStorage.getItem("bahi-unsent") === null`))
}
