package opshttp_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/opshttp"
)

// outboxFixture has three messages.
type outboxFixture struct{}

func (outboxFixture) Captured(_ context.Context, skip, limit int) ([]opshttp.Message, int, error) {
	all := []opshttp.Message{}
	for _, id := range []string{"c", "b", "a"} {
		all = append(all, opshttp.Message{ID: id, Time: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), To: "asha@example.com", Subject: "Hello",
			Text: "Open it"})
	}
	all = all[min(skip, len(all)):]
	return all[:min(limit, len(all))], 3, nil
}

func TestOutboxIsListedInPages(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	list := func(query string) (ids string) {
		var page []opshttp.Message
		a := r.operator().GET("/ops/outbox?" + query).Status(200).JSON(&page)
		for _, m := range page {
			ids += m.ID
		}
		return ids + " of " + a.Header("X-Total-Count")
	}
	require.Equal(t, "cba of 3", list("port=mail"))
	require.Equal(t, "cb of 3", list("port=mail&page_size=2"))
	require.Equal(t, "a of 3", list("port=mail&page_size=2&page=2"))
	require.Equal(t, " of 3", list("port=mail&page=1000000000&page_size=1000"))
	require.Equal(t, " of 0", list("port=chat"))
	require.Equal(t, " of 0", list("port=crm"))
	r.operator().GET("/ops/outbox?port=mail&page_size=1").Status(200).
		Body(`[{"id":"c","time":"2026-03-01T10:00:00Z","to":"asha@example.com","subject":"Hello","text":"Open it","at":"0001-01-01T00:00:00Z",` +
			`"status":""}]`)
	r.operator().GET("/ops/outbox").Status(422)
}
