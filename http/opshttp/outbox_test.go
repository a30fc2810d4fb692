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
	o.Operator().GET("/ops/outbox?port=chat").Status(200).Body(`[]`)
}

// A configured provider keeps nothing.
func TestNoOutboxIfMailsAreSent(t *testing.T) {
	t.Parallel()
	o := apptest.StartWithMailServer(t, nobody)
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration("asha@example.com")).Status(201)
	a := o.Operator().GET("/ops/outbox?port=mail").Status(200).Body(`[]`)
	require.Equal(t, "0", a.Header("X-Total-Count"))
}
