package crm_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/worktest"
	"bahi/providers/crm"
)

// system is a crm of ours that records its requests.
type system struct {
	*httptest.Server

	asked []string
	reply func(n int) (status int, body string)
}

func start(t *testing.T, reply func(n int) (int, string)) *system {
	t.Helper()
	s := &system{reply: reply}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.asked = append(s.asked, fmt.Sprintf("%s %s %s %s", r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"),
			body))
		status, text := s.reply(len(s.asked))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s
}

func always(status int, body string) func(int) (int, string) {
	return func(int) (int, string) { return status, body }
}

var lead = crm.Lead{ID: "e-1", Name: "Asha Rani Rao", Email: "asha@example.org", Phone: "+919812345678", Company: "Mill",
	Product: "Hook", Message: "How many?", Quantity: 3, Source: "web"}

func client(t *testing.T, s crm.Settings) *crm.Client {
	t.Helper()
	if s.Client = cmp.Or(s.Client, http.DefaultClient); s.Now == nil {
		s.Now = time.Now
	}
	c, err := crm.New(s)
	require.NoError(t, err)
	return c
}

func TestEachDialectPushesALead(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		settings crm.Settings
		status   int
		body, id string
		told     []string
	}{
		{crm.Settings{}, 201, `{"id": 7}`, "7", []string{`"user_email":"asha@example.org"`, `"id":"e-1"`}},
		{crm.Settings{Token: "secret", Pointer: "/a/1/b~1c"}, 200, `{"a":[0,{"b/c":"x"}]}`, "x", []string{"Bearer secret e-1"}},
		{crm.Settings{}, 204, ``, "", nil},
		{crm.Settings{Dialect: "data_array", Token: "secret", Scheme: "Vendor"}, 201, `{"data":[{"code":"SUCCESS","details":{"id":"55"}}]}`, "55",
			[]string{"Vendor-oauthtoken secret", `"Last_Name":"Rao"`, `"First_Name":"Asha Rani"`, `"Company":"Individual"`, `Enquiry e-1 to Mill`}},
		{crm.Settings{Dialect: "properties", Token: "secret"}, 201, `{"id":"9"}`, "9", []string{"Bearer secret", `"lastname":"Rao"`}},
		{crm.Settings{Dialect: "properties", Token: "secret"}, 409, `{"message":"Contact already exists. Existing ID: 31"}`, "31", nil},
		{crm.Settings{Dialect: "attribute_list", AccessKey: "k", SecretKey: "secret"}, 200, `{"Status":"Success","Message":{"Id":"u"}}`, "u",
			[]string{"accessKey=k&secretKey=secret", `{"Attribute":"EmailAddress","Value":"asha@example.org"}`}},
		{crm.Settings{Dialect: "attribute_list"}, 200, `{"Status":"Success","Message":{}}`, "", nil},
	} {
		s := start(t, always(of.status, of.body))
		of.settings.URL = s.URL + "/leads"
		id, err := client(t, of.settings).Push(t.Context(), lead)
		require.NoError(t, err, of.settings.Dialect)
		require.Equal(t, of.id, id, of.settings.Dialect)
		require.Len(t, s.asked, 1)
		for _, part := range of.told {
			require.Contains(t, s.asked[0], part, of.settings.Dialect)
		}
	}
	id, err := crm.Sandbox{}.Push(t.Context(), lead)
	require.NoError(t, err)
	require.Equal(t, "sandbox-e-1", id)
}

func TestWhatIsRefusedForGoodIsToldFromWhatMayPass(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		dialect string
		status  int
		body    string
		final   bool
	}{
		{"generic", 400, `{}`, true}, {"generic", 401, ``, true}, {"generic", 302, ``, true}, {"generic", 500, ``, false},
		{"generic", 429, ``, false}, {"generic", 200, `<html>`, false},
		{"generic", 200, `{"id":"` + strings.Repeat("a", 300) + `"}`, false},
		{"data_array", 202, `{"data":[{"code":"MANDATORY_NOT_FOUND"}]}`, true}, {"data_array", 201, `{}`, true},
		{"properties", 409, `{"message":"taken"}`, true},
		{"attribute_list", 200, `{"Status":"Error"}`, true},
	} {
		s := start(t, always(of.status, of.body))
		_, err := client(t, crm.Settings{URL: s.URL, Dialect: of.dialect, Token: "secret", AccessKey: "secret",
			SecretKey: "secret"}).Push(t.Context(), lead)
		_, final := errors.AsType[*crm.Refused](err)
		require.Error(t, err)
		require.Equal(t, of.final, final, "%s %d %s", of.dialect, of.status, of.body)
		require.NotContains(t, fmt.Sprintf("%v %+v %s", err, lead, lead), "asha")
		require.NotContains(t, err.Error(), "secret")
	}
	gone := start(t, always(200, ""))
	gone.Close()
	_, err := client(t, crm.Settings{URL: gone.URL, Dialect: "attribute_list", SecretKey: "secret"}).Push(t.Context(), lead)
	require.EqualError(t, err, "the crm cannot be reached")
	_, err = crm.Sandbox{}.Push(t.Context(), crm.Lead{Name: "Nobody 000"})
	require.Error(t, err)
	slow := worktest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has gone
		<-r.Context().Done()
	}))
	_, err = client(t, crm.Settings{URL: slow.URL, Timeout: time.Millisecond}).Push(t.Context(), lead)
	require.EqualError(t, err, "the crm cannot be reached")
}

func TestATokenThatRanOutIsRenewed(t *testing.T) {
	t.Parallel()
	renewed := 0
	tokens := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		renewed++
		if r.FormValue("refresh_token") != "again" || r.FormValue("client_id") != "c" || r.FormValue("client_secret") != "s" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprint("t", renewed), "expires_in": 3600})
	}))
	s := start(t, func(n int) (int, string) {
		if n == 1 {
			return 401, ""
		}
		return 200, `{"data":[{"code":"SUCCESS","details":{"id":"1"}}]}`
	})
	now := time.Now()
	settings := crm.Settings{
		URL: s.URL, Dialect: "data_array", Token: "old", TokenURL: tokens.URL, RefreshToken: "again", ClientID: "c", ClientSecret: "s",
		Now: func() time.Time { return now },
	}
	c := client(t, settings)
	push := func() { _, err := c.Push(context.WithoutCancel(t.Context()), lead); require.NoError(t, err) }
	push()
	require.Contains(t, s.asked[0], "oauthtoken old")
	require.Contains(t, s.asked[1], "oauthtoken t1")
	push()
	require.Equal(t, 1, renewed)
	now = now.Add(time.Hour)
	push()
	require.Equal(t, 2, renewed)
	settings.RefreshToken, settings.Token = "wrong", ""
	_, err := client(t, settings).Push(t.Context(), lead)
	require.EqualError(t, err, "the crm returned no token")
}

func TestWrongSettingsAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]crm.Settings{
		"CRM_DIALECT": {URL: "https://crm.example.org", Dialect: "soap"}, "CRM_URL": {URL: "crm"},
		"CRM_TOKEN_URL":    {URL: "https://crm.example.org", TokenURL: "x"},
		"CRM_LEAD_POINTER": {URL: "https://crm.example.org", Pointer: "id"}, "CRM_TOKEN": {URL: "https://crm.example.org", Dialect: "data_array"},
	} {
		_, err := crm.New(s)
		require.ErrorContains(t, err, name)
	}
	require.Equal(t, "crm.example.org", client(t, crm.Settings{URL: "https://crm.example.org/leads?key=secret"}).To())
}
