package apptest

import (
	"crypto/rand"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
)

// Operation is an operation of the OpenAPI document.
type Operation struct {
	Method, path string // with the variables' values
	Name         string // with their names
	Permission   string // area:level, operator, or ""
	Open         bool
	body         string
}

// Operations returns the operations of the served document, with valid paths and bodies.
func (o *Server) Operations(t *testing.T, values, bodies map[string]string) (all []Operation) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Security   []map[string][]string `json:"security"`
			Permission string                `json:"x-permission"`
		} `json:"paths"`
	}
	Lenient(t, o.Anonymous().GET("/openapi.json").Status(200), &document)
	for path, methods := range document.Paths {
		for method, op := range methods {
			d := Operation{Method: strings.ToUpper(method), path: path, Permission: op.Permission, Open: len(op.Security) == 0}
			d.Name = d.Method + " " + path
			d.path = variables.ReplaceAllStringFunc(path, func(name string) string {
				require.Contains(t, values, name, "give the variable a value here")
				return values[name]
			})
			d.body = bodies[d.Method+" "+d.path]
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b Operation) int { return strings.Compare(a.Name, b.Name) })
	require.Greater(t, len(all), 30)
	return all
}

var variables = regexp.MustCompile(`\{[^}]+\}`)

// Ask sends the request, with its body if it has one.
func (d Operation) Ask(c *apitest.Client) *apitest.Answer {
	switch {
	case d.path == "/audit/events/stream":
		return c.Do(d.Method, d.path+"?from_position=1&limit=1", nil)
	case strings.HasPrefix(d.body, "--"):
		boundary, _, _ := strings.Cut(d.body[2:], "\r\n")
		return c.With("Content-Type", "multipart/form-data; boundary="+boundary).Do(d.Method, d.path, d.body)
	case d.body == "":
		return c.Do(d.Method, d.path, nil)
	}
	return c.Do(d.Method, d.path, d.body)
}

// Forgeries returns invalid tokens by their fault.
func (o *Server) Forgeries(t *testing.T, good SignedIn) map[string]string {
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
	secret, err := o.Sys.Vault.Named(t.Context(), "jwt/"+kid, 32)
	require.NoError(t, err)
	ended := o.SignIn("asha@example.com", GoodPassword)
	o.Bearer(ended.Access).POST(Auth+"/logout", nil).Status(200)
	return map[string]string{
		"none": "", "expired": o.Expired(good.Access), "unsigned": signed(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"signed with another key": signed(jwt.SigningMethodHS256, other), "signed in another way": signed(jwt.SigningMethodHS512, secret),
		"of a missing key":   signed(jwt.SigningMethodHS256, secret, "kid", uuid.NewString()),
		"of a key in a file": signed(jwt.SigningMethodHS256, []byte{}, "kid", "../../dev/null"),
		"for refreshing":     good.Refresh, "of no type": o.Forge(good.Access, func(c jwt.MapClaims) { delete(c, "typ") }),
		"without an expiry":           o.Forge(good.Access, func(c jwt.MapClaims) { delete(c, "exp") }),
		"of another deployment":       o.Forge(good.Access, func(c jwt.MapClaims) { c["iss"] = "https://elsewhere.example" }),
		"of no session":               o.Forge(good.Access, func(c jwt.MapClaims) { c["sid"] = uuid.NewString() }),
		"of a session that has ended": ended.Access, "cut": good.Access[:len(good.Access)-1],
		"with no signature": good.Access[:strings.LastIndexByte(good.Access, '.')+1],
	}
}
