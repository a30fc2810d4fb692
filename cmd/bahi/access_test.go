package main_test

import (
	"crypto/rand"
	"image/color"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
)

// forEverybody are the operations that SPEC.txt lets everybody ask ("Authentication", 8), as far as they are
// built. Whoever adds one adds it here, on purpose.
var forEverybody = []string{
	"GET /api/v1/auth/idp", "GET /api/v1/auth/idp/callback", "POST /api/v1/auth/email-change/undo", "POST /api/v1/auth/login", "POST /api/v1/auth/password-reset/confirm",
	"POST /api/v1/auth/password-reset/request", "POST /api/v1/auth/refresh", "POST /api/v1/auth/register", "POST /api/v1/auth/verify-email",
}

// ofTheCallers are the operations about whoever asks, which need no permission. One that acts in a
// workspace named by its path asks for one there, which the document does not tell.
var ofTheCallers = []string{
	"GET /api/v1/users/me", "PUT /api/v1/users/me", "POST /api/v1/users/me/password", "POST /api/v1/users/me/profile-picture",
	"POST /api/v1/users/me/delete-request", "POST /api/v1/auth/logout", "GET /api/v1/workspaces", "POST /api/v1/invitations/accept",
}

// errand is an operation as the document has it.
type errand struct {
	method, path string // with the variables' values
	name         string // with their names
	permission   string // area:level, operator, or empty
	open         bool
	body         string
}

// operations are those of the document that is served, with paths and bodies that would be taken.
func (o *office) operations(t *testing.T, values, bodies map[string]string) (all []errand) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Security   []map[string][]string `json:"security"`
			Permission string                `json:"x-permission"`
		} `json:"paths"`
	}
	lenient(t, o.stranger().GET("/openapi.json").Status(200), &document)
	for path, methods := range document.Paths {
		for method, op := range methods {
			d := errand{method: strings.ToUpper(method), path: path, permission: op.Permission, open: len(op.Security) == 0}
			d.name = d.method + " " + path
			d.path = variables.ReplaceAllStringFunc(path, func(name string) string {
				require.Contains(t, values, name, "say here what the variable may be")
				return values[name]
			})
			d.body = bodies[d.method+" "+d.path]
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b errand) int { return strings.Compare(a.name, b.name) })
	require.Greater(t, len(all), 30)
	return all
}

var variables = regexp.MustCompile(`\{[^}]+\}`)

// ask sends the request, with its body if it has one.
func (d errand) ask(c *apitest.Client) *apitest.Answer {
	switch {
	case d.path == "/audit/events/stream":
		return c.Do(d.method, d.path+"?from_position=1&limit=1", nil)
	case strings.HasPrefix(d.body, "--"):
		boundary, _, _ := strings.Cut(d.body[2:], "\r\n")
		return c.With("Content-Type", "multipart/form-data; boundary="+boundary).Do(d.method, d.path, d.body)
	case d.body == "":
		return c.Do(d.method, d.path, nil)
	}
	return c.Do(d.method, d.path, d.body)
}

// shop is a workspace with something in it, and its operations.
type shop struct {
	*office

	asha    person // its owner
	account int64
	ops     []errand
}

func startShop(t *testing.T) shop {
	t.Helper()
	o := start(t)
	asha := o.person("asha@example.com")
	account := open(asha.Client, "HDFC")
	row := post(asha.Client, account, deposit("2025-03-01", "1"))
	key := o.key(asha.workspace, `{"ledger":"read"}`)
	o.signed()
	values := map[string]string{
		"{workspace_id}": asha.workspace, "{user_id}": asha.User.ID, "{api_key_id}": key.ID, "{job_id}": "1", "{name}": "books", "{invitation_id}": uuid.NewString(),
		"{bank_id}": strconv.FormatInt(account, 10), "{bank_account_id}": strconv.FormatInt(account, 10), "{row_id}": strconv.FormatInt(row.ID, 10),
	}
	picture, _ := form(t, "image/png", painted(t, color.White, 8, 8))
	bodies := map[string]string{
		"PUT /api/v1/users/me": `{}`, "POST /api/v1/users/me/profile-picture": string(picture), "POST /api/v1/invitations/accept": `{"token":"x"}`,
		"POST /api/v1/users/me/password":                                          `{"current_password":"x","new_password":"jadau and polki"}`,
		"POST /api/v1/workspaces/" + asha.workspace + "/invitations":              `{"email":"x@example.com","permissions":{"ledger":"read"}}`,
		"PATCH /api/v1/workspaces/" + asha.workspace + "/members/" + asha.User.ID: `{"permissions":{"ledger":"read"}}`,
	}
	for _, r := range requestsOf(account, row.ID) {
		bodies[r.method+" "+r.path] = r.body
	}
	return shop{o, asha, account, o.operations(t, values, bodies)}
}

// forgeries are tokens that open nothing, by what is wrong with them.
func (o *office) forgeries(t *testing.T, good signedIn) map[string]string {
	t.Helper()
	claims := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(good.Access, claims)
	require.NoError(t, err)
	signed := func(method jwt.SigningMethod, key any, header ...string) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = parsed.Header["kid"]
		for i := 0; i < len(header); i += 2 {
			token.Header[header[i]] = header[i+1]
		}
		text, err := token.SignedString(key)
		require.NoError(t, err)
		return text
	}
	other := make([]byte, 32)
	rand.Read(other)
	kid, _ := parsed.Header["kid"].(string)
	secret, err := o.sys.Vault.Named(t.Context(), "jwt/"+kid, 32)
	require.NoError(t, err)
	ended := o.signIn("asha@example.com", goodPassword)
	o.bearer(ended.Access).POST(auth+"/logout", nil).Status(200)
	return map[string]string{
		"none": "", "expired": o.expired(good.Access), "unsigned": signed(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"signed with another key": signed(jwt.SigningMethodHS256, other), "signed in another way": signed(jwt.SigningMethodHS512, secret),
		"of a key that is not there": signed(jwt.SigningMethodHS256, secret, "kid", uuid.NewString()), "of a key in a file": signed(jwt.SigningMethodHS256, []byte{}, "kid", "../../dev/null"),
		"for refreshing": good.Refresh, "of no type": o.forge(good.Access, func(c jwt.MapClaims) { delete(c, "typ") }),
		"without an end":              o.forge(good.Access, func(c jwt.MapClaims) { delete(c, "exp") }),
		"of another house":            o.forge(good.Access, func(c jwt.MapClaims) { c["iss"] = "https://elsewhere.example" }),
		"of no session":               o.forge(good.Access, func(c jwt.MapClaims) { c["sid"] = uuid.NewString() }),
		"of a session that has ended": ended.Access, "cut": good.Access[:len(good.Access)-1], "with no signature": good.Access[:strings.LastIndexByte(good.Access, '.')+1],
	}
}

func TestOnlyWhatIsForEverybodyIsOpen(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	var found []string
	for _, op := range s.ops {
		if op.open {
			found = append(found, op.name)
			require.Empty(t, op.permission, op.name)
		}
	}
	require.Equal(t, forEverybody, found)
	forgeries := s.forgeries(t, s.asha.signedIn)
	before := s.head()
	for what, token := range forgeries {
		for _, op := range s.ops {
			a := op.ask(s.bearer(token))
			if op.open {
				require.NotEqual(t, 500, a.Response.StatusCode, "%s, token %s: %s", op.name, what, a.Text)
				require.NotContains(t, a.Text, "Not authenticated", "%s, token %s", op.name, what)
				continue
			}
			require.Equal(t, 401, a.Response.StatusCode, "%s, token %s: %s", op.name, what, a.Text)
			a.Problem(401, "Not authenticated")
			require.Equal(t, "Bearer", a.Header("Www-Authenticate"))
		}
	}
	require.Equal(t, before, s.head())
	s.asha.GET("/banks").Status(200)
}

func TestAnotherWorkspaceIsNotThere(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	ravi := s.person("ravi@example.com")
	key := s.bearer(s.key(ravi.workspace, `{"ledger":"write","messaging":"write","marketplace":"write","audit":"write"}`).Key)
	before := s.head()
	for _, op := range s.ops {
		if op.open {
			continue
		}
		for _, c := range []*apitest.Client{ravi.Client, key} {
			op.ask(c.With("Bahi-Workspace", s.asha.workspace)).Problem(404, "Workspace not found")
			switch {
			case op.permission == "operator":
				op.ask(c).Problem(403, "Not enough permissions")
			case strings.Contains(op.name, "{"):
				require.Equal(t, 404, op.ask(c).Response.StatusCode, op.name)
			}
		}
	}
	require.Equal(t, before, s.head())
}

func TestWhoMayReadMayNotWrite(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	ravi := s.person("ravi@example.com")
	s.asha.join(s.office, ravi, `{"ledger":"read","messaging":"read","marketplace":"read","audit":"read"}`)
	for _, op := range s.ops {
		reader := s.bearer(s.signIn("ravi@example.com", goodPassword).Access).With("Bahi-Workspace", s.asha.workspace)
		before := s.head()
		a := op.ask(reader)
		status := a.Response.StatusCode
		switch {
		case op.open:
		case slices.Contains(ofTheCallers, op.name):
			require.Empty(t, op.permission, op.name)
			require.NotContains(t, []int{401, 403, 404, 500}, status, "%s: %s", op.name, a.Text)
		case op.permission != "operator" && op.method == http.MethodGet:
			require.Equal(t, 200, status, "%s: %s", op.name, a.Text)
		default:
			require.Equal(t, 403, status, "%s: %s", op.name, a.Text)
			a.Problem(403, "Not enough permissions")
			require.Equal(t, before, s.head(), op.name)
		}
	}
}

func TestAKeyWithoutTheAreaOpensNothing(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	areas := []string{"ledger", "messaging", "marketplace", "audit"}
	for _, op := range s.ops {
		area, level, of := strings.Cut(op.permission, ":")
		if op.open {
			continue
		}
		all := "{"
		for _, other := range areas {
			if other != area && (of || other != "marketplace") { // what goes to a workspace in its path asks for the marketplace there
				all += `"` + other + `":"write",`
			}
		}
		without := s.bearer(s.key(s.asha.workspace, strings.TrimSuffix(all, ",")+"}").Key)
		require.Equal(t, 403, op.ask(without).Response.StatusCode, op.name)
		if of && level == "write" {
			reads := s.bearer(s.key(s.asha.workspace, `{"`+area+`":"read"}`).Key)
			op.ask(reads).Problem(403, "Not enough permissions")
		}
	}
	require.Equal(t, "03-01 1", balances(s.asha.Client, ledger(s.account)))
}
