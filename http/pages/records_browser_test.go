package pages_test

import (
	"testing"


	"bahi/internal/test/apptest"
)

func TestACampaignIsWatched(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk, _ := shop(o, apptest.Home)
	clerk.POST("/api/contacts", `{"name":"Asha","phone":"9812300001"}`).Status(201)
	clerk.PATCH("/api/contacts/1", `{"optIn":true}`).Status(200)
	clerk.POST("/api/campaigns", `{"name":"Diwali","type":"broadcast","templateId":1,"audience":"all",
		"templateParams":{"1":"A-204","2":"{{name}}"}}`).Status(201)
	p := enter(o, trade)
	p.Go("/app/campaigns/1")
	p.Click(".act > summary")
	p.Submit(".act button")
	p.Until(`document.querySelector("#live").innerText.includes("Completed")`)
}
