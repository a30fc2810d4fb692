package main_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/access/workspace"
	"bahi/domain/event"
	"bahi/http/api/apitest"
	"bahi/internal/app"
	"bahi/readmodels"
)

// member is a user as the other members see them.
type member struct {
	UserID      string         `json:"user_id"`
	Email       *string        `json:"email"`
	FirstName   *string        `json:"first_name"`
	LastName    *string        `json:"last_name"`
	Permissions map[string]any `json:"permissions"`
	JoinedAt    time.Time      `json:"joined_at"`
	Revision    int64          `json:"revision"`
}

// invitation is the answer to one that was sent.
type invitation struct {
	ID          uuid.UUID      `json:"id"`
	Email       *string        `json:"email"`
	Permissions map[string]any `json:"permissions"`
	InvitedBy   string         `json:"invited_by"`
	ExpiresAt   time.Time      `json:"expires_at"`
}

// invite is the body of an invitation.
func invite(email, permissions string) map[string]any {
	return map[string]any{"email": email, "permissions": json.RawMessage(permissions)}
}

// join invites somebody into a workspace and accepts for them.
func (p person) join(o *office, guest person, permissions string) {
	o.t.Helper()
	p.POST("/api/v1/workspaces/"+p.workspace+"/invitations", invite(guest.User.Email, permissions)).Status(201)
	_, token := link(o.t, o.mailed(guest.User.Email, inviteSubject, 1))
	guest.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)
}

func TestSomebodyIsInvitedAndWorksInTheOthersBooks(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi := o.person("asha@example.com"), o.person("ravi@example.com")
	account := open(asha.Client, "HDFC")
	row := post(asha.Client, account, deposit("2025-03-01", "12.5"))
	inAshas := ravi.With("Bahi-Workspace", asha.workspace)
	workspace := "/api/v1/workspaces/" + asha.workspace

	// Two users know nothing of each other's books.
	ravi.GET("/banks").Status(200).Body(`[]`)
	for _, r := range requestsOf(account, row.ID) {
		if strings.ContainsAny(r.path, "0123456789") {
			ravi.Do(r.method, r.path, r.body).Status(404)
		}
		inAshas.Do(r.method, r.path, r.body).Problem(404, "Workspace not found")
	}
	ravi.GET(workspace+"/members").Problem(404, "Workspace not found")

	var sent invitation
	a := asha.POST(workspace+"/invitations", invite(" Ravi@example.com", `{"ledger":"read","marketplace":"read"}`)).Status(201)
	a.JSON(&sent)
	require.Equal(t, []string{"ravi@example.com", "user:" + asha.User.ID}, []string{*sent.Email, sent.InvitedBy})
	require.Equal(t, map[string]any{"ledger": "read", "marketplace": "read"}, sent.Permissions)
	require.WithinDuration(t, time.Now().Add(7*24*time.Hour), sent.ExpiresAt, time.Minute)
	page, token := link(t, o.mailed("ravi@example.com", inviteSubject, 1))
	require.Equal(t, app.OwnAddress+"/invitations/accept", page)
	const refused = "Invalid or expired invitation token"
	o.swept()
	accept := map[string]string{"token": token}
	for _, wrong := range []string{"", "x", token[1:], token + "x", asha.workspace + ".", ravi.workspace + token[strings.IndexByte(token, '.'):]} {
		ravi.POST("/api/v1/invitations/accept", map[string]string{"token": wrong}).Problem(400, refused)
	}
	o.sql(`update account.mailed_token set expires_at = expires_at - interval '8 days' where kind = 'invitation'`)
	ravi.POST("/api/v1/invitations/accept", accept).Problem(400, refused)
	o.sql(`update account.mailed_token set expires_at = expires_at + interval '8 days' where kind = 'invitation'`)
	asha.POST("/api/v1/invitations/accept", accept).Problem(409, "Already a member of this workspace")
	var joined struct {
		WorkspaceID string         `json:"workspace_id"`
		UserID      string         `json:"user_id"`
		Permissions map[string]any `json:"permissions"`
		Revision    int64          `json:"revision"`
	}
	ravi.POST("/api/v1/invitations/accept", accept).Status(200).JSON(&joined)
	require.Equal(t, []string{asha.workspace, ravi.User.ID}, []string{joined.WorkspaceID, joined.UserID})
	require.Equal(t, sent.Permissions, joined.Permissions)
	ravi.POST("/api/v1/invitations/accept", accept).Problem(400, refused)

	// He reads there, and writes in his own.
	require.Equal(t, "03-01 12.5", balances(inAshas, ledger(account)))
	inAshas.POST(ledger(account), deposit("2025-03-02", "1")).Problem(403, "Not enough permissions")
	inAshas.POST("/bank", `{"name":"SBI"}`).Problem(403, "Not enough permissions")
	open(ravi.Client, "SBI")
	joined.Permissions = nil
	asha.PATCH(workspace+"/members/"+ravi.User.ID, `{"permissions":{"ledger":"write"}}`).Status(200).JSON(&joined)
	require.Equal(t, map[string]any{"ledger": "write"}, joined.Permissions)
	post(inAshas, account, deposit("2025-03-02", "1"))
	inAshas.GET(workspace+"/members").Problem(403, "Not enough permissions")
	asha.DELETE(workspace + "/members/" + ravi.User.ID).Status(204).None()
	inAshas.GET("/banks").Problem(404, "Workspace not found")
	inAshas.POST("/bank", `{"name":"SBI"}`).Problem(404, "Workspace not found")
	ravi.GET(ledger(account)).Status(404)
	require.Equal(t, "03-01 12.5, 03-02 13.5", balances(asha.Client, ledger(account)))
}

func TestWhoBelongsWhereIsListed(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi := o.person("asha@example.com"), o.person("ravi@example.com")
	asha.join(o, ravi, `{"ledger":"read","marketplace":"read"}`)
	var members []member
	ravi.GET("/api/v1/workspaces/" + asha.workspace + "/members").Status(200).JSON(&members) // without the header
	require.Len(t, members, 2)
	require.Equal(t, []string{asha.User.ID, "asha@example.com", "Asha", "Soni"}, []string{members[0].UserID, *members[0].Email, *members[0].FirstName, *members[0].LastName})
	require.Equal(t, ravi.User.ID, members[1].UserID)
	require.Equal(t, "read", members[1].Permissions["ledger"])
	var workspaces []struct {
		ID          string         `json:"id"`
		Own         bool           `json:"own"`
		Permissions map[string]any `json:"permissions"`
		JoinedAt    time.Time      `json:"joined_at"`
	}
	ravi.GET("/api/v1/workspaces").Status(200).JSON(&workspaces)
	require.Equal(t, []any{ravi.workspace, true, asha.workspace, false}, []any{workspaces[0].ID, workspaces[0].Own, workspaces[1].ID, workspaces[1].Own})
	asha.GET("/api/v1/workspaces").Status(200).JSON(&workspaces)
	require.Len(t, workspaces, 1)
	o.operator().GET("/api/v1/workspaces/" + asha.workspace + "/members").Status(200).JSON(&members)
	require.Len(t, members, 2)
}

func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi, usha := o.person("asha@example.com"), o.person("ravi@example.com"), o.person("usha@example.com")
	asha.join(o, ravi, `{"ledger":"read","marketplace":"write"}`)
	asha.join(o, usha, `{"ledger":"write"}`)
	workspace := "/api/v1/workspaces/" + asha.workspace
	const more = "A member cannot be given more permissions than the caller has"
	for _, path := range []string{workspace + "/invitations", workspace + "/members/" + usha.User.ID} {
		method := "POST"
		if strings.Contains(path, "members") {
			method = "PATCH"
		}
		ravi.Do(method, path, invite("x@example.com", `{"ledger":"write"}`)).Problem(403, more)
		ravi.Do(method, path, invite("x@example.com", `{"audit":"read"}`)).Problem(403, more)
		usha.Do(method, path, invite("x@example.com", `{"ledger":"read"}`)).Problem(403, "Not enough permissions")
		for permissions, status := range map[string]int{`{}`: 422, `{"ledger":"none"}`: 422, `{"operator":true}`: 422, `{"ledger":"all"}`: 422, `7`: 422, `null`: 422} {
			asha.Do(method, path, invite("x@example.com", permissions)).Status(status)
		}
		asha.Do(method, path, `{`).Status(400)
		asha.Do(method, path, `{}`).Status(422)
	}
	asha.POST(workspace+"/invitations", invite("no address", `{"ledger":"read"}`)).Problem(422, "Validation error", "email", "expected an email address")

	nobody := uuid.NewString()
	asha.PATCH(workspace+"/members/"+nobody, `{"permissions":{"ledger":"read"}}`).Problem(404, "Member not found")
	asha.DELETE(workspace+"/members/"+nobody).Problem(404, "Member not found")
	asha.DELETE(workspace + "/members/x").Status(422)
	asha.GET("/api/v1/workspaces/"+nobody+"/members").Problem(404, "Workspace not found")
	asha.GET("/api/v1/workspaces/x/members").Status(422)
	asha.With("Bahi-Workspace", nobody).GET("/banks").Problem(404, "Workspace not found")
	asha.With("Bahi-Workspace", "x").GET("/banks").Status(422)

	// The books are never left without somebody who may say who belongs to them.
	asha.PATCH(workspace+"/members/"+usha.User.ID, `{"permissions":{"ledger":"write","messaging":"write","marketplace":"write","audit":"write"}}`).Status(200)
	const owner = "The owner of a workspace cannot be removed, or given fewer permissions, by others"
	usha.DELETE(workspace+"/members/"+asha.User.ID).Problem(403, owner)
	usha.PATCH(workspace+"/members/"+asha.User.ID, `{"permissions":{"ledger":"read"}}`).Problem(403, owner)
	asha.DELETE(workspace + "/members/" + asha.User.ID).Status(204)
	usha.DELETE(workspace + "/members/" + ravi.User.ID).Status(204)
	const last = "The last member with write access cannot be removed"
	usha.DELETE(workspace+"/members/"+usha.User.ID).Problem(409, last)
	usha.PATCH(workspace+"/members/"+usha.User.ID, `{"permissions":{"ledger":"read","marketplace":"read"}}`).Problem(409, last)
	asha.GET("/banks").Problem(403, "Not enough permissions") // it is her home still, and she may do nothing there
	require.Empty(t, asha.me().Permissions)
}

func TestAnInvitationIsSentOnceByItsKey(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	keyed := asha.With("Idempotency-Key", "k")
	path := "/api/v1/workspaces/" + asha.workspace + "/invitations"
	var first, again invitation
	keyed.POST(path, invite("ravi@example.com", `{"ledger":"read"}`)).Status(201).JSON(&first)
	a := keyed.POST(path, invite("ravi@example.com", `{"ledger":"read"}`)).Status(201)
	require.Equal(t, "true", a.Header("Idempotency-Replayed"))
	a.JSON(&again)
	require.Equal(t, first, again)
	keyed.POST(path, invite("usha@example.com", `{"ledger":"read"}`)).Status(422)
	o.mailed("ravi@example.com", inviteSubject, 1)
	o.worked("send_invitation")
	require.Len(t, o.mails("ravi@example.com", inviteSubject), 1)
}

func TestAnInvitationIsAcceptedOnceByItsKey(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi, usha := o.person("asha@example.com"), o.person("ravi@example.com"), o.person("usha@example.com")
	sent := func(by person, nth int) map[string]string {
		by.POST("/api/v1/workspaces/"+by.workspace+"/invitations", invite("ravi@example.com", `{"ledger":"read"}`)).Status(201)
		_, token := link(t, o.mailed("ravi@example.com", inviteSubject, nth))
		return map[string]string{"token": token}
	}
	accept, abroad := sent(asha, 1), sent(usha, 2)
	const path = "/api/v1/invitations/accept"
	keyed := ravi.With("Idempotency-Key", "k")
	first := keyed.POST(path, accept).Status(200)
	require.Empty(t, first.Header("Idempotency-Replayed"))
	again := keyed.POST(path, accept).Status(200)
	require.Equal(t, "true", again.Header("Idempotency-Replayed"))
	require.Equal(t, first.Text, again.Text)
	require.Equal(t, []string{first.Header("ETag"), first.Header("Bahi-Position")}, []string{again.Header("ETag"), again.Header("Bahi-Position")})
	for _, other := range []map[string]string{abroad, {"token": "x"}} {
		keyed.POST(path, other).Problem(422, "Idempotency-Key was used with another request")
	}
	ravi.POST(path, accept).Problem(400, "Invalid or expired invitation token")
	ravi.POST(path, abroad).Status(200)
}

func TestAnInvitationIsForWhoeverHasTheMail(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha := o.person("asha@example.com")
	asha.POST("/api/v1/workspaces/"+asha.workspace+"/invitations", invite("new@example.com", `{"ledger":"write"}`)).Status(201)
	_, token := link(t, o.mailed("new@example.com", inviteSubject, 1))
	o.stranger().POST("/api/v1/invitations/accept", map[string]string{"token": token}).Problem(401, "Not authenticated")
	o.operator().POST("/api/v1/invitations/accept", map[string]string{"token": token}).Problem(403, "Only a user who signed in can do this")
	somebody := o.person("new@example.com")
	somebody.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)
	open(somebody.With("Bahi-Workspace", asha.workspace), "HDFC")
	require.Len(t, clerkBanks(asha.GET("/banks")), 1)

	// A key of a workspace does not leave it.
	key := o.bearer(o.key(asha.workspace, `{"ledger":"write"}`).Key)
	require.Len(t, clerkBanks(key.GET("/banks")), 1)
	key.With("Bahi-Workspace", somebody.workspace).GET("/banks").Problem(404, "Workspace not found")
}

func TestInvitationsAreListedAndWithdrawn(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi := o.person("asha@example.com"), o.person("ravi@example.com")
	path := "/api/v1/workspaces/" + asha.workspace + "/invitations"
	asha.GET(path).Status(200).Body(`[]`)
	var first, second invitation
	asha.POST(path, invite("usha@example.com", `{"ledger":"read"}`)).Status(201).JSON(&first)
	asha.join(o, ravi, `{"marketplace":"read"}`)
	o.operator().POST(path, invite("ravi@example.org", `{"ledger":"write"}`)).Status(201).JSON(&second)
	require.Equal(t, "api_key:admin", second.InvitedBy)
	var open []invitation
	ravi.GET(path).Status(200).JSON(&open)
	require.Equal(t, []invitation{first, second}, open)
	ravi.DELETE(path+"/"+first.ID.String()).Problem(403, "Not enough permissions")
	o.person("usha@example.org").GET(path).Problem(404, "Workspace not found")

	_, token := link(t, o.mailed("usha@example.com", inviteSubject, 1))
	asha.DELETE(path+"/"+uuid.NewString()).Problem(404, "Invitation not found")
	asha.DELETE(path + "/" + first.ID.String()).Status(204).None()
	asha.DELETE(path+"/"+first.ID.String()).Problem(404, "Invitation not found")
	o.person("usha@example.com").POST("/api/v1/invitations/accept", map[string]string{"token": token}).Problem(400, "Invalid or expired invitation token")
	ravi.GET(path).Status(200).JSON(&open)
	require.Equal(t, []invitation{second}, open)
}

func TestWhatSomebodyGaveEndsWithWhatTheyHad(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi, again := o.person("asha@example.com"), o.person("ravi@example.com"), o.person("again@example.com")
	asha.join(o, ravi, `{"ledger":"write","marketplace":"write"}`)
	path := "/api/v1/workspaces/" + asha.workspace
	nth := 0
	invited := func(by *apitest.Client) map[string]string {
		nth++
		by.POST(path+"/invitations", invite("again@example.com", `{"ledger":"write"}`)).Status(201)
		_, token := link(t, o.mailed("again@example.com", inviteSubject, nth))
		return map[string]string{"token": token}
	}
	const refused = "Invalid or expired invitation token"
	inAshas := ravi.With("Bahi-Workspace", asha.workspace)
	var made, kept apiKey
	inAshas.POST("/api/v1/api-keys", `{"name":"till","permissions":{"ledger":"write","marketplace":"write"}}`).Status(201).JSON(&made)
	asha.POST("/api/v1/api-keys", `{"name":"till","permissions":{"ledger":"write"}}`).Status(201).JSON(&kept)
	till, other := o.bearer(made.Key), o.bearer(kept.Key)
	open(till, "HDFC")
	byRavi, byKey := invited(ravi.Client), invited(till)
	asha.PATCH(path+"/members/"+ravi.User.ID, `{"permissions":{"ledger":"read","marketplace":"write"}}`).Status(200)
	till.POST("/bank", `{"name":"SBI"}`).Problem(403, "Not enough permissions")
	till.GET("/banks").Status(200)
	again.POST("/api/v1/invitations/accept", byRavi).Problem(400, refused)
	again.POST("/api/v1/invitations/accept", byKey).Problem(400, refused)
	asha.DELETE(path + "/members/" + ravi.User.ID).Status(204)
	till.GET("/banks").Problem(401, "Not authenticated")
	other.GET("/banks").Status(200)
	again.POST("/api/v1/invitations/accept", byRavi).Problem(400, refused)

	// A key that is revoked, and an operator who is one no more.
	temporary := o.key(asha.workspace, `{"ledger":"write","marketplace":"write"}`)
	byTemporary := invited(o.bearer(temporary.Key))
	asha.DELETE("/api/v1/api-keys/" + temporary.ID).Status(204)
	again.POST("/api/v1/invitations/accept", byTemporary).Problem(400, refused)
	usha := o.person("usha@example.com")
	id := uuid.MustParse(usha.User.ID)
	require.NoError(t, o.sys.Accounts.Grant(t.Context(), o.sys.ByOperator(uuid.MustParse(usha.workspace)), id, true))
	require.Eventually(t, func() bool { return usha.GET("/ops/jobs").Response.StatusCode == http.StatusOK }, time.Minute, 10*time.Millisecond)
	byOperator := invited(usha.Client)
	require.NoError(t, o.sys.Accounts.Grant(t.Context(), o.sys.ByOperator(uuid.MustParse(usha.workspace)), id, false))
	again.POST("/api/v1/invitations/accept", byOperator).Problem(400, refused)

	again.POST("/api/v1/invitations/accept", invited(asha.Client)).Status(200)
}

func TestWhoseInvitationIsOverIsForgotten(t *testing.T) {
	t.Parallel()
	o := start(t)
	asha, ravi := o.person("asha@example.com"), o.person("ravi@example.com")
	o.swept()
	path := "/api/v1/workspaces/" + asha.workspace + "/invitations"
	asha.join(o, ravi, `{"ledger":"read"}`)
	var withdrawn, open invitation
	asha.POST(path, invite("usha@example.com", `{"ledger":"read"}`)).Status(201).JSON(&withdrawn)
	asha.DELETE(path + "/" + withdrawn.ID.String()).Status(204)
	written := asha.POST(path, invite("usha@example.com", `{"ledger":"read"}`)).Status(201)
	written.JSON(&open)
	position, err := strconv.ParseUint(written.Header("Bahi-Position"), 10, 64)
	require.NoError(t, err)
	ctx := readmodels.AtLeast(t.Context(), event.Position(position))
	over := func(after time.Duration) []uuid.UUID {
		ids, err := o.sys.Market.InvitationsToForget(ctx, time.Now().Add(after))
		require.NoError(t, err)
		return ids
	}
	ended := over(0)
	require.Len(t, ended, 2, "one was accepted, one withdrawn")
	require.Contains(t, ended, withdrawn.ID)
	for _, id := range ended {
		require.NoError(t, o.sys.Vault.Erase(ctx, workspace.InvitationSubject(id)))
	}
	require.Empty(t, over(6*24*time.Hour))
	require.Equal(t, []uuid.UUID{open.ID}, over(8*24*time.Hour), "one expired by then")

	key, err := o.sys.Accounts.EmailKey(ctx, "usha@example.com")
	require.NoError(t, err)
	to, err := o.sys.Market.InvitationsTo(ctx, []string{key})
	require.NoError(t, err)
	require.ElementsMatch(t, []uuid.UUID{withdrawn.ID, open.ID}, to)
	require.NoError(t, o.sys.Vault.Erase(ctx, workspace.InvitationSubject(open.ID)))
	var left []invitation
	asha.GET(path).Status(200).JSON(&left)
	require.Len(t, left, 1)
	require.Nil(t, left[0].Email)
}
