package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/ops"
)

func TestAnOperatorReadsTheMailsThatWereKept(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	var page []ops.Message
	a := o.operator().GET("/ops/outbox?port=mail").Status(200).JSON(&page)
	require.Equal(t, "1", a.Header("X-Total-Count"))
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Len(t, page, 1)
	require.Equal(t, []string{"asha@example.com", verifySubject}, []string{page[0].To, page[0].Subject})
	require.Equal(t, strings.ReplaceAll(o.mails("asha@example.com", verifySubject)[0], "\r\n", "\n"), page[0].Text)
	require.True(t, strings.HasSuffix(page[0].ID, ".eml"))
	o.operator().GET("/ops/outbox?port=chat").Status(200).Body(`[]`)

	for _, port := range []string{"mail", "chat", "crm"} {
		asha.GET("/ops/outbox?port="+port).Problem(403, "Not enough permissions")
	}
	o.stranger().GET("/ops/outbox?port=mail").Problem(401, "Not authenticated")
}

// Where mails are sent, none is kept.
func TestThereIsNoOutboxWhereMailsAreSent(t *testing.T) {
	t.Parallel()
	o := startWithMailServer(t, nobody)
	o.stranger().POST(auth+"/register", registration("asha@example.com")).Status(201)
	a := o.operator().GET("/ops/outbox?port=mail").Status(200).Body(`[]`)
	require.Equal(t, "0", a.Header("X-Total-Count"))
}
