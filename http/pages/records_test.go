package pages_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestContactsSmoke(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := byKey(o, apptest.Home, `{"messaging":"write","marketplace":"write"}`)
	c := o.Bearer(o.Key(apptest.Home, `{"messaging":"write","marketplace":"write"}`).Key)
	c.POST("/api/bots", `{"name":"Helper","description":"Answers questions","systemPrompt":"Be kind"}`).Status(201)
	c.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)
	c.POST("/api/channels", `{"name":"Site","type":"web"}`).Status(201)
	co := c.POST("/api/v1/companies", `{"name":"Asha Mills","email":"asha@example.com"}`).Status(201)
	t.Log(co.Text)
	t.Log(c.POST("/api/v1/catalog", `{"name":"Payal","price_amount":150000}`).Status(201).Text)
	for _, p := range []string{"/app/list/contacts", "/app/list/lists", "/app/list/templates", "/app/list/channels", "/app/list/channels?type=web", "/app/list/channels?type=chat",
		"/app/list/channels/1", "/app/list/channels/2", "/app/list/channels/2/try", "/app/list/channels/1/usage", "/app/list/bots", "/app/list/bots/1", "/app/list/bots/1/files",
		"/app/list/bots/1/pages", "/app/list/bots/1/tools", "/app/list/bots/1/tools/1", "/app/list/bots/1/webhooks", "/app/list/bots/1/calls", "/app/list/bots/1/usage",
		"/app/campaigns", "/app/campaigns?type=broadcast", "/app/campaigns?type=drip", "/app/list/companies", "/app/list/products"} {
		t.Log(p, b.get(p).Words())
	}
}
