package pages_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
)

func TestContactsSmoke(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	b := byKey(o, apptest.Home, `{"messaging":"write","marketplace":"write"}`)
	t.Log(b.get("/app/list/contacts").Words())
	added := b.submitOf("/app/list/contacts", "/app/list/contacts", "add-messaging-contact", "name", "Asha", "phone", "9812300001")
	sheet := b.follow(added)
	t.Log(added.Header, sheet.Text)
	t.Log(b.get("/app/list/contacts").Text)
	_ = bytes.MinRead
	_ = multipart.ErrMessageTooLarge
	_ = http.StatusOK
	_ = textproto.TrimString
	_ = url.Values{}
	_ = strings.ToUpper
	require.True(t, true)
}
