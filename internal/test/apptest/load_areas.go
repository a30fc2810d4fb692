package apptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	areasToken = "a-token-of-the-gateway"
	areasPhone = "919812345678"
)

// AreasSettings are the settings of a server for [Load.AllAreas].
func AreasSettings() []string {
	return []string{"GATEWAY_WEBHOOK_TOKEN=" + areasToken, "GATEWAY_ALLOWED_PHONES=" + areasPhone}
}

// areas are the records that a load writes beside the bank ledger.
type areas struct {
	company string
	client  int64
}

// mark is a record with a unique name.
type mark struct {
	kind *marked
	name string
}

// marked is a kind of record, with its requests to write and read.
type marked struct {
	post, list, also string // also: a text that the record has if it was written once
	paged            bool
	body             func(a *areas, name string, n int) any
}

var markedKinds = []marked{
	{post: "/api/v1/enquiries", list: "/api/v1/enquiries?limit=100", paged: true, body: func(a *areas, name string, _ int) any {
		return map[string]any{"to_company_id": a.company, "user_name": "Ravi Shah", "user_email": "ravi@example.org", "message": name}
	}},
	{post: "/api/v1/catalog", list: "/api/v1/catalog?limit=100", paged: true, body: func(a *areas, name string, _ int) any {
		return map[string]any{"company_id": a.company, "name": name, "price_amount": 100}
	}},
	{post: "/client-order", list: "/client-orders?page_size=100", paged: true, body: func(a *areas, name string, _ int) any {
		return map[string]any{"client_id": a.client, "slip_number": name, "date": "2025-03-01",
			"items": []any{map[string]any{"item_name": "ring", "weight": 2}}}
	}},
	{post: "/api/contacts", list: "/api/contacts?limit=100", paged: true, body: func(_ *areas, name string, _ int) any {
		return map[string]any{"name": name}
	}},
	{post: "/gateway_incoming_webhook?token=" + areasToken, list: "/order-drafts", body: func(_ *areas, name string, _ int) any {
		return map[string]any{"type": "message", "timestamp": time.Now().UnixMilli(), "payload": map[string]any{
			"id": name, "source": areasPhone, "type": "text", "payload": map[string]any{"text": "payal 250 gm " + name},
		}}
	}},
	{
		post: "/api/webhooks/gateway/incoming_msg?token=" + areasToken, list: "/api/contacts?limit=100", paged: true, also: `"unread":1,`,
		body: func(_ *areas, name string, n int) any { // each message has a new sender, who becomes a contact
			return map[string]any{"app": "Load", "version": 2, "type": "message", "payload": map[string]any{
				"id": name, "source": fmt.Sprintf("9198%08d", n), "type": "text", "payload": map[string]any{"text": "Hello"},
				"sender": map[string]any{"name": name},
			}}
		},
	},
}

// AllAreas lets the clients write in all areas, from now on.
func (l *Load) AllAreas() {
	l.t.Helper()
	var company struct{ ID string }
	require.NoError(l.t, json.Unmarshal(l.made("/api/v1/companies", map[string]any{"name": "Load Mills"}), &company))
	l.made("/api/channels", map[string]any{"name": "Load", "type": "chat",
		"settings": map[string]any{"dialect": "envelope_v2", "appName": "Load"}})
	l.areas = &areas{company: company.ID, client: IdOf(l.t, l.made("/client", map[string]any{"name": "Load"}))}
}

// mark returns a write of a record of another area.
func (c *loadClient) mark() *write {
	c.count++
	m := &mark{kind: &markedKinds[c.random.IntN(len(markedKinds))], name: fmt.Sprintf("mark %d %d end", c.nth, c.count)}
	c.marks = append(c.marks, m)
	return &write{"POST", m.kind.post, m.name, m.kind.body(c.l.areas, m.name, 100_000*c.nth+c.count), func([]byte) {}}
}

// verifyAreas requires that each acknowledged record exists once. The effect of a provider's call may take a moment.
func (l *Load) verifyAreas() {
	l.t.Helper()
	for i := range markedKinds {
		kind := &markedKinds[i]
		wrong := ""
		require.Eventually(l.t, func() bool {
			records := l.records(kind)
			wrong = ""
			for _, c := range l.Clients {
				for _, m := range c.marks {
					if m.kind != kind {
						continue
					}
					there := 0
					for _, r := range records {
						if strings.Contains(r, m.name) {
							there++
							if !strings.Contains(r, kind.also) {
								wrong = r
							}
						}
					}
					require.LessOrEqual(l.t, there, 1, "%s of %s occurs twice", m.name, kind.post)
					if there == 0 {
						wrong = m.name
					}
				}
			}
			return wrong == ""
		}, time.Minute, 100*time.Millisecond, "a record of %s is missing", kind.post)
	}
}

// records returns all records of a kind, as JSON.
func (l *Load) records(kind *marked) (all []string) {
	l.t.Helper()
	for page := 1; ; page++ {
		path := kind.list
		if kind.paged {
			path += fmt.Sprintf("&page=%d", page)
		}
		a, err := l.Clients[0].ask("GET", path, "", nil)
		require.NoError(l.t, err)
		require.Equal(l.t, http.StatusOK, a.Status, "%s", a.Body)
		text := a.Body
		var list []json.RawMessage
		if text[0] == '{' {
			var object map[string]json.RawMessage
			require.NoError(l.t, json.Unmarshal(text, &object))
			for _, field := range object {
				if field[0] == '[' {
					text = field
				}
			}
		}
		require.NoError(l.t, json.Unmarshal(text, &list))
		for _, record := range list {
			all = append(all, string(record))
		}
		if !kind.paged || len(list) == 0 {
			return all
		}
	}
}
