package accesshttp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apptest"
)

// invitation is the response to an invitation.
type invitation struct {
	ID          uuid.UUID      `json:"id"`
	Email       *string        `json:"email"`
	Permissions map[string]any `json:"permissions"`
	InvitedBy   string         `json:"invited_by"`
	ExpiresAt   time.Time      `json:"expires_at"`
}

func TestInvitedUserWorksInTheOthersBooks(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi := o.Person(o.Address("asha")), o.Person(o.Address("ravi"))
	account := apptest.Open(asha.Client, "HDFC")
	apptest.Post(asha.Client, account, apptest.Deposit("2025-03-01", "12.5"))
	inAshas := ravi.With("Bahi-Workspace", asha.Workspace)
	workspace := "/api/v1/workspaces/" + asha.Workspace

	var sent invitation
	asha.POST(workspace+"/invitations", apptest.Invite("x", `{}`)).Problem(422, "Validation error", "email", "expected an email address",
		"permissions", "at least one area is required, and a workspace cannot grant operator")
	a := asha.POST(workspace+"/invitations", apptest.Invite(" "+strings.ToUpper(o.Address("ravi")),
		`{"ledger":"read","marketplace":"read"}`)).Status(201)
	a.JSON(&sent)
	require.Equal(t, []string{o.Address("ravi"), "user:" + asha.User.ID}, []string{*sent.Email, sent.InvitedBy})
	require.Equal(t, map[string]any{"ledger": "read", "marketplace": "read"}, sent.Permissions)
	require.WithinDuration(t, time.Now().Add(7*24*time.Hour), sent.ExpiresAt, time.Minute)
	page, token := apptest.Link(t, o.Mailed(o.Address("ravi"), apptest.InviteSubject, 1))
	require.Equal(t, app.OwnAddress+"/invitations/accept", page)
	const refused = "Invalid or expired invitation token"
	accept := map[string]string{"token": token}
	elsewhere := ravi.Workspace + token[strings.IndexByte(token, '.'):]
	ravi.POST("/api/v1/invitations/accept", map[string]string{"token": elsewhere}).Problem(400, refused)
	asha.POST("/api/v1/invitations/accept", accept).Problem(409, "Already a member of this workspace")
	var joined struct {
		WorkspaceID string         `json:"workspace_id"`
		UserID      string         `json:"user_id"`
		Permissions map[string]any `json:"permissions"`
		Revision    int64          `json:"revision"`
	}
	ravi.POST("/api/v1/invitations/accept", accept).Status(200).JSON(&joined)
	require.Equal(t, []string{asha.Workspace, ravi.User.ID}, []string{joined.WorkspaceID, joined.UserID})
	require.Equal(t, sent.Permissions, joined.Permissions)
	ravi.POST("/api/v1/invitations/accept", accept).Problem(400, refused)

	// The new member reads there, and writes in his own workspace.
	require.Equal(t, "03-01 12.5", apptest.Balances(inAshas, apptest.Ledger(account)))
	inAshas.POST(apptest.Ledger(account), apptest.Deposit("2025-03-02", "1")).Problem(403, "Not enough permissions")
	apptest.Open(ravi.Client, "SBI")
	joined.Permissions = nil
	asha.PATCH(workspace+"/members/"+ravi.User.ID, `{"permissions":{"ledger":"write","marketplace":"none"}}`).Status(200).JSON(&joined)
	require.Equal(t, map[string]any{"ledger": "write"}, joined.Permissions)
	apptest.Post(inAshas, account, apptest.Deposit("2025-03-02", "1"))
	inAshas.GET(workspace+"/members").Problem(403, "Not enough permissions")
	asha.DELETE(workspace + "/members/" + ravi.User.ID).Status(204).None()
	inAshas.GET("/banks").Problem(404, "Workspace not found")
	require.Equal(t, "03-01 12.5, 03-02 13.5", apptest.Balances(asha.Client, apptest.Ledger(account)))
}

func TestWorkspacesAndMembersAreListed(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi := o.Person(o.Address("asha")), o.Person(o.Address("ravi"))
	asha.Join(o, ravi, `{"ledger":"read","marketplace":"read"}`)
	var members []apptest.Member
	ravi.GET("/api/v1/workspaces/" + asha.Workspace + "/members").Status(200).JSON(&members) // without the header
	require.Len(t, members, 2)
	require.Equal(t, []string{asha.User.ID, o.Address("asha"), "Asha", "Soni"},
		[]string{members[0].UserID, *members[0].Email, *members[0].FirstName, *members[0].LastName})
	require.Equal(t, ravi.User.ID, members[1].UserID)
	require.Equal(t, "read", members[1].Permissions["ledger"])
	var workspaces []struct {
		ID          string         `json:"id"`
		Name        string         `json:"name"`
		Own         bool           `json:"own"`
		Permissions map[string]any `json:"permissions"`
		JoinedAt    time.Time      `json:"joined_at"`
	}
	ravi.GET("/api/v1/workspaces").Status(200).JSON(&workspaces)
	require.Equal(t, []any{ravi.Workspace, true, asha.Workspace, false},
		[]any{workspaces[0].ID, workspaces[0].Own, workspaces[1].ID, workspaces[1].Own})
	require.Equal(t, "Asha Soni", workspaces[1].Name)
	for _, name := range []string{"Soni Jewellers", "Younger"} {
		asha.POST("/api/v1/companies", map[string]string{"name": name}).Status(201)
	}
	ravi.GET("/api/v1/workspaces").Status(200).JSON(&workspaces)
	require.Equal(t, []string{"Asha Soni", "Soni Jewellers"}, []string{workspaces[0].Name, workspaces[1].Name})
	asha.GET("/api/v1/workspaces").Status(200).JSON(&workspaces)
	require.Len(t, workspaces, 1)
	o.Operator().GET("/api/v1/workspaces/" + asha.Workspace + "/members").Status(200).JSON(&members)
	require.Len(t, members, 2)
}

func TestAnInvitationIsForItsAddress(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi := o.Person(o.Address("asha")), o.Person(o.Address("ravi"))
	asha.POST("/api/v1/workspaces/"+asha.Workspace+"/invitations", apptest.Invite(o.Address("usha"), `{"ledger":"read"}`)).Status(201)
	_, token := apptest.Link(t, o.Mailed(o.Address("usha"), apptest.InviteSubject, 1))
	accept := map[string]string{"token": token}
	for range 2 {
		ravi.POST("/api/v1/invitations/accept", accept).Problem(403, "This invitation was sent to another address")
	}
	o.Operator().POST("/api/v1/invitations/accept", accept).Problem(403, "Only a user who signed in can do this")
	const strayed = "Somebody else tried to accept an invitation to your workspace"
	o.Mailed(o.Address("asha"), strayed, 1)
	usha := o.Person(o.Address("usha")) // the invitation waited for the account
	usha.POST("/api/v1/invitations/accept", accept).Status(200)
	o.WaitJobs("send_stray_notice")
	require.Len(t, o.Mails(o.Address("asha"), strayed), 1)
}
