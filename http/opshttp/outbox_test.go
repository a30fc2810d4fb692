package opshttp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/http/opshttp"
	"bahi/internal/test/apptest"
)

func TestOperatorReadsKeptMails(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	o.Person("asha@example.com")
	var page []opshttp.Message
	a := o.Operator().GET("/ops/outbox?port=mail").Status(200).JSON(&page)
	require.Equal(t, "1", a.Header("X-Total-Count"))
	require.Equal(t, "no-store", a.Header("Cache-Control"))
	require.Len(t, page, 1)
	require.Equal(t, []string{"asha@example.com", apptest.VerifySubject}, []string{page[0].To, page[0].Subject})
	require.Equal(t, strings.ReplaceAll(o.Mails("asha@example.com", apptest.VerifySubject)[0], "\r\n", "\n"), page[0].Text)
	require.True(t, strings.HasSuffix(page[0].ID, ".eml"))
	for query, total := range map[string]string{
		"mail&page_size=1&page=2": "1", "mail&page=1000000000&page_size=1000": "1", "chat": "0", "crm": "0",
	} {
		none := o.Operator().GET("/ops/outbox?port=" + query).Status(200).Body(`[]`)
		require.Equal(t, total, none.Header("X-Total-Count"), query)
	}
	o.Operator().GET("/ops/outbox").Status(422)
}
