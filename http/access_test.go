package http_test

import (
	"image/color"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/http/api/apitest"
	"bahi/internal/app/apptest"
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

// shop is a workspace with something in it, and its operations.
type shop struct {
	*apptest.Office

	asha    apptest.Person // its owner
	account int64
	ops     []apptest.Errand
}

func startShop(t *testing.T) shop {
	t.Helper()
	o := apptest.Start(t)
	asha := o.Person("asha@example.com")
	account := apptest.Open(asha.Client, "HDFC")
	row := apptest.Post(asha.Client, account, apptest.Deposit("2025-03-01", "1"))
	key := o.Key(asha.Workspace, `{"ledger":"read"}`)
	o.Signed()
	values := map[string]string{
		"{workspace_id}": asha.Workspace, "{user_id}": asha.User.ID, "{api_key_id}": key.ID, "{job_id}": "1", "{name}": "books", "{invitation_id}": uuid.NewString(),
		"{bank_id}": strconv.FormatInt(account, 10), "{bank_account_id}": strconv.FormatInt(account, 10), "{row_id}": strconv.FormatInt(row.ID, 10),
	}
	picture, _ := apptest.Form(t, "image/png", apptest.Painted(t, color.White, 8, 8))
	bodies := map[string]string{
		"PUT /api/v1/users/me": `{}`, "POST /api/v1/users/me/profile-picture": string(picture), "POST /api/v1/invitations/accept": `{"token":"x"}`,
		"POST /api/v1/users/me/password":                                          `{"current_password":"x","new_password":"jadau and polki"}`,
		"POST /api/v1/workspaces/" + asha.Workspace + "/invitations":              `{"email":"x@example.com","permissions":{"ledger":"read"}}`,
		"PATCH /api/v1/workspaces/" + asha.Workspace + "/members/" + asha.User.ID: `{"permissions":{"ledger":"read"}}`,
	}
	for _, r := range apptest.RequestsOf(account, row.ID) {
		bodies[r.Method+" "+r.Path] = r.Body
	}
	return shop{o, asha, account, o.Operations(t, values, bodies)}
}

func TestOnlyWhatIsForEverybodyIsOpen(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	var found []string
	for _, op := range s.ops {
		if op.Open {
			found = append(found, op.Name)
			require.Empty(t, op.Permission, op.Name)
		}
	}
	require.Equal(t, forEverybody, found)
	forgeries := s.Forgeries(t, s.asha.SignedIn)
	before := s.Head()
	for what, token := range forgeries {
		for _, op := range s.ops {
			a := op.Ask(s.Bearer(token))
			if op.Open {
				require.NotEqual(t, 500, a.Response.StatusCode, "%s, token %s: %s", op.Name, what, a.Text)
				require.NotContains(t, a.Text, "Not authenticated", "%s, token %s", op.Name, what)
				continue
			}
			require.Equal(t, 401, a.Response.StatusCode, "%s, token %s: %s", op.Name, what, a.Text)
			a.Problem(401, "Not authenticated")
			require.Equal(t, "Bearer", a.Header("Www-Authenticate"))
		}
	}
	require.Equal(t, before, s.Head())
	s.asha.GET("/banks").Status(200)
}

func TestAnotherWorkspaceIsNotThere(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	ravi := s.Person("ravi@example.com")
	key := s.Bearer(s.Key(ravi.Workspace, `{"ledger":"write","messaging":"write","marketplace":"write","audit":"write"}`).Key)
	before := s.Head()
	for _, op := range s.ops {
		if op.Open {
			continue
		}
		for _, c := range []*apitest.Client{ravi.Client, key} {
			op.Ask(c.With("Bahi-Workspace", s.asha.Workspace)).Problem(404, "Workspace not found")
			switch {
			case op.Permission == "operator":
				op.Ask(c).Problem(403, "Not enough permissions")
			case strings.Contains(op.Name, "{"):
				require.Equal(t, 404, op.Ask(c).Response.StatusCode, op.Name)
			}
		}
	}
	require.Equal(t, before, s.Head())
}

func TestWhoMayReadMayNotWrite(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	ravi := s.Person("ravi@example.com")
	s.asha.Join(s.Office, ravi, `{"ledger":"read","messaging":"read","marketplace":"read","audit":"read"}`)
	for _, op := range s.ops {
		reader := s.Bearer(s.SignIn("ravi@example.com", apptest.GoodPassword).Access).With("Bahi-Workspace", s.asha.Workspace)
		before := s.Head()
		a := op.Ask(reader)
		status := a.Response.StatusCode
		switch {
		case op.Open:
		case slices.Contains(ofTheCallers, op.Name):
			require.Empty(t, op.Permission, op.Name)
			require.NotContains(t, []int{401, 403, 404, 500}, status, "%s: %s", op.Name, a.Text)
		case op.Permission != "operator" && op.Method == http.MethodGet:
			require.Equal(t, 200, status, "%s: %s", op.Name, a.Text)
		default:
			require.Equal(t, 403, status, "%s: %s", op.Name, a.Text)
			a.Problem(403, "Not enough permissions")
			require.Equal(t, before, s.Head(), op.Name)
		}
	}
}

func TestAKeyWithoutTheAreaOpensNothing(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	areas := []string{"ledger", "messaging", "marketplace", "audit"}
	for _, op := range s.ops {
		area, level, of := strings.Cut(op.Permission, ":")
		if op.Open {
			continue
		}
		all := "{"
		for _, other := range areas {
			if other != area && (of || other != "marketplace") { // what goes to a workspace in its path asks for the marketplace there
				all += `"` + other + `":"write",`
			}
		}
		without := s.Bearer(s.Key(s.asha.Workspace, strings.TrimSuffix(all, ",")+"}").Key)
		require.Equal(t, 403, op.Ask(without).Response.StatusCode, op.Name)
		if of && level == "write" {
			reads := s.Bearer(s.Key(s.asha.Workspace, `{"`+area+`":"read"}`).Key)
			op.Ask(reads).Problem(403, "Not enough permissions")
		}
	}
	require.Equal(t, "03-01 1", apptest.Balances(s.asha.Client, apptest.Ledger(s.account)))
}
