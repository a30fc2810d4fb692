package pages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
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
	p.Until(`!document.querySelector("progress") && document.querySelector('#acts a[href$="/rebuild"]')`)
	require.Contains(t, p.Text("#live"), "Live generation\n2")
	require.NotContains(t, p.Text("main"), "A rebuild goes on")
	require.False(t, p.Is(`document.querySelector("[data-stream]")`), "nothing is watched any more")
}

func TestPagesOfOperatorsFit(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	asha := o.Person("asha@example.com")
	asha.POST("/api/v1/companies", `{"name":"Asha's Silver","city":"Rajkot","category":"Jewellery"}`).Status(201)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Fill(clerk, account, 20)
	o.Signed()
	o.Sql(`insert into river.river_job (id, state, kind, args, attempt, max_attempts, scheduled_at, errors) values
		(900, 'retryable', 'send_verification', '{"user_id":"6f1f0f5e-0000-4000-8000-000000000001"}', 1, 5, now() + interval '1 day',
		array['{"error":"dial tcp 10.20.30.40:25: connect: connection refused by the mail server of the workshop"}'::jsonb])`)
	o.Park()
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "1"))
	b := byKey(o, apptest.Home, operatorRights)
	b.until("/app/operate", "Stopped at an event: 1")
	p := enter(o, operatorRights)
	for _, path := range []string{
		"", "/projections", "/projections/books", "/projections/users/rebuild", "/events", "/events/5", "/jobs?state=retryable",
		"/parked", "/webhooks", "/outbox", "/workspaces", "/companies",
	} {
		for i, lang := range []string{"en", "gu"} {
			p.Speak(lang)
			for j, width := range []int64{360, 1280} {
				fits(t, p, "/app/operate"+path, width, (i+j)%2 == 1, lang)
			}
		}
	}
}
