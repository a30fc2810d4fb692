package accesshttp_test

import (
	"bufio"
	"fmt"
	"image/color"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/accesscmd/credentials"
	"bahi/internal/test/apptest"
)

// town is a system with people. Its ids and tokens differ in each process that tries inputs, so inputs have names for them, in braces.
type town struct {
	*apptest.Server

	asha   uuid.UUID
	access string // Asha's
	names  *strings.Replacer
}

func settle(t testing.TB) *town {
	t.Helper()
	o := apptest.Start(t)
	asha, ravi := o.Person("asha@example.com"), o.Person("ravi@example.com")
	in := "/api/v1/workspaces/" + asha.Workspace
	invite := func(email string) (id, token string) {
		var made map[string]any
		asha.POST(in+"/invitations", fmt.Sprintf(`{"email":%q,"permissions":{"ledger":"read"}}`, email)).Status(201).JSON(&made)
		_, token = apptest.Link(t, o.Mailed(email, apptest.InviteSubject, 1))
		return fmt.Sprint(made["id"]), token
	}
	_, accept := invite("ravi@example.com")
	open, _ := invite("usha@example.com")
	o.Anonymous().POST(apptest.Auth+"/register", apptest.Registration("mira@example.com")).Status(201)
	_, verify := apptest.Link(t, o.Mailed("mira@example.com", apptest.VerifySubject, 1))
	o.Anonymous().POST(apptest.Auth+"/password-reset/request", `{"email":"ravi@example.com"}`).Status(200)
	_, reset := apptest.Link(t, o.Mailed("ravi@example.com", apptest.ResetSubject, 1))
	usha := o.Person("usha@example.com")
	usha.PUT(apptest.Me, `{"email":"usha@example.org"}`).Status(200)
	_, undo := apptest.Link(t, o.Mailed("usha@example.com", "Your email address at Bahi was changed", 1))
	return &town{Server: o, asha: uuid.MustParse(asha.User.ID), access: asha.Access, names: strings.NewReplacer(
		"{asha}", asha.User.ID, "{workspace}", asha.Workspace, "{ravi}", ravi.User.ID, "{invitation}", open,
		"{accept}", accept, "{verify}", verify, "{reset}", reset, "{undo}", undo,
		"{refresh}", o.SignIn("asha@example.com", apptest.GoodPassword).Refresh, "{key}", o.Key(asha.Workspace, `{"ledger":"read"}`).ID,
	)}
}

// again signs Asha in again, after an input that signed her out.
func (tn *town) again(t *testing.T) {
	t.Helper()
	in, err := tn.Sys.Accounts.Credentials.Sessions.SignIn(t.Context(), credentials.Vouched(tn.asha))
	require.NoError(t, err)
	tn.access = in.Access
}

// These are the callers of an input.
const (
	byAsha byte = iota
	byStranger
	byOperator
	callers
)

// FuzzAccountRequest sends arbitrary requests to the operations of accounts, as a user, without a credential and with the operator's key.
// No response may be a 5xx.
func FuzzAccountRequest(f *testing.F) {
	tn := settle(f)
	handler := tn.Api(apptest.OperatorKey)
	const (
		json   = "Content-Type: application/json\r\n"
		member = "/api/v1/workspaces/{workspace}/members"
		invite = "/api/v1/workspaces/{workspace}/invitations"
	)
	for _, seed := range []struct{ method, path, body string }{
		{"POST", apptest.Auth + "/register", `{"email":"new@example.com","password":"kundan and meena","first_name":"आशा","last_name":"Soni"}`},
		{"POST", apptest.Auth + "/register", `{"email":"ASHA@EXAMPLE.COM","password":"kundan and meena","first_name":"A","last_name":"S"}`},
		{"POST", apptest.Auth + "/register",
			`{"email":"a@\u0000","password":"\ud83d\ude00","first_name":" ","last_name":"` + strings.Repeat("é", 400) + `"}`},
		{"POST", apptest.Auth + "/register",
			`{"email":"xn--@xn--a.in","password":"` + strings.Repeat("p", 1000) + `","first_name":"\u202e","last_name":"\n"}`},
		{"POST", apptest.Auth + "/login", `{"email":"asha@example.com","password":"kundan and meena"}`},
		{"POST", apptest.Auth + "/login", `{"email":"mira@example.com","password":"kundan and meena"}`}, // not verified
		{"POST", apptest.Auth + "/login", `{"email":"nobody@example.com","password":""}`},
		{"POST", apptest.Auth + "/logout", ``},
		{"POST", apptest.Auth + "/verify-email", `{"token":"{verify}"}`},
		{"POST", apptest.Auth + "/verify-email", `{"token":"{asha}."}`},
		{"POST", apptest.Auth + "/password-reset/request", `{"email":"asha@example.com"}`},
		{"POST", apptest.Auth + "/password-reset/confirm", `{"token":"{reset}","new_password":"jadau and polki"}`},
		{"POST", apptest.Auth + "/password-reset/confirm",
			`{"token":"{ravi}.x","new_password":"\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000"}`},
		{"POST", apptest.Auth + "/email-change/undo", `{"token":"{undo}"}`},
		{"POST", apptest.Auth + "/email-change/undo", `{"token":"{asha}.-1.x"}`},
		{"POST", apptest.Auth + "/refresh", `{"refresh_token":"{refresh}"}`},
		{"POST", apptest.Auth + "/refresh", `{"refresh_token":"eyJhbGciOiJub25lIn0.e30."}`},
		{"GET", apptest.Me, ``},
		{"PUT", apptest.Me, `{"email":"asha@example.org","first_name":"Usha","last_name":"Rao","phone":"+91 98123 45678"}`},
		{"PUT", apptest.Me, `{"email":null,"first_name":"","last_name":[],"phone":"00919812345678"}`},
		{"POST", apptest.Me + "/password", `{"current_password":"kundan and meena","new_password":"jadau and polki"}`},
		{"POST", apptest.Me + "/delete-request", ``},
		{"GET", "/api/v1/workspaces", ``},
		{"GET", member, ``},
		{"PATCH", member + "/{ravi}", `{"permissions":{"ledger":"write","marketplace":"none"}}`},
		{"PATCH", member + "/{asha}", `{"permissions":{"operator":true}}`},
		{"DELETE", member + "/{asha}", ``},
		{"POST", invite, `{"email":"guest@example.com","permissions":{"ledger":"read","messaging":"none","marketplace":"write","audit":"read"}}`},
		{"GET", invite, ``},
		{"DELETE", invite + "/{invitation}", ``},
		{"POST", "/api/v1/invitations/accept", `{"token":"{accept}"}`},
		{"POST", "/api/v1/api-keys", `{"name":"till","permissions":{"ledger":"write"}}`},
		{"POST", "/api/v1/api-keys", `{"name":"till","workspace_id":"{workspace}","permissions":{"operator":true}}`},
		{"GET", "/api/v1/api-keys", ``},
		{"DELETE", "/api/v1/api-keys/{key}", ``},
	} {
		for who := range callers {
			f.Add(who, seed.method, seed.path, json, seed.body)
		}
		f.Add(byAsha, seed.method, seed.path, json+"Idempotency-Key: k\r\nIf-Match: \"0\"\r\nBahi-Reason: %E2%82%B9\r\nBahi-Workspace: "+
			"{workspace}\r\n", seed.body)
	}
	picture, form := apptest.Form(f, "image/png", apptest.Painted(f, color.RGBA{200, 0, 0, 255}, 4, 3))
	for _, body := range []string{
		string(picture), string(picture[:len(picture)/2]), strings.Replace(string(picture), "image/png", "image/jpeg", 1),
		strings.Replace(string(picture), "asha.png", "../\x00", 1), strings.Replace(string(picture), `name="file"`, `name="other"`, 1), "--x--",
	} {
		f.Add(byAsha, "POST", apptest.Me+"/profile-picture", "Content-Type: "+form+"\r\n", body)
	}
	f.Add(byAsha, "POST", apptest.Me+"/profile-picture", "Content-Type: multipart/form-data\r\n", string(picture))
	f.Add(byStranger, "POST", apptest.Auth+"/refresh", "Cookie: bahi_refresh={refresh}; bahi_refresh=x\r\n", "")
	f.Fuzz(func(t *testing.T, who byte, method, path, headers, body string) {
		bearer := map[byte]string{byAsha: tn.access, byStranger: "", byOperator: apptest.OperatorKey}[who%callers]
		path, headers, body = tn.names.Replace(path), tn.names.Replace(headers), tn.names.Replace(body)
		raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n", method, path, headers, len(body))
		if bearer != "" {
			raw += "Authorization: Bearer " + bearer + "\r\n"
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw + "\r\n" + body)))
		if err != nil || strings.HasPrefix(r.URL.Path, apptest.Auth+"/idp") {
			return // net/http responds, or the missing provider causes a 503
		}
		a := httptest.NewRecorder()
		handler.ServeHTTP(a, r.WithContext(t.Context()))
		require.Less(t, a.Code, 500, "%q: %s", raw+body, a.Body)
		require.NotEmpty(t, a.Header().Get("X-Request-ID"))
		if bearer == tn.access && a.Code == http.StatusUnauthorized {
			tn.again(t)
		}
	})
}
