package apptest

import (
	"encoding/json"
	"time"
)

// Member is a user as the other members see them.
type Member struct {
	UserID      string         `json:"user_id"`
	Email       *string        `json:"email"`
	FirstName   *string        `json:"first_name"`
	LastName    *string        `json:"last_name"`
	Permissions map[string]any `json:"permissions"`
	JoinedAt    time.Time      `json:"joined_at"`
	Revision    int64          `json:"revision"`
}

// Invite is the body of an invitation.
func Invite(email, permissions string) map[string]any {
	return map[string]any{"email": email, "permissions": json.RawMessage(permissions)}
}

// Join invites a guest to a workspace and accepts for them.
func (p Person) Join(o *Server, guest Person, permissions string) {
	o.T.Helper()
	p.POST("/api/v1/workspaces/"+p.Workspace+"/invitations", Invite(guest.User.Email, permissions)).Status(201)
	_, token := Link(o.T, o.Mailed(guest.User.Email, InviteSubject, 1))
	guest.POST("/api/v1/invitations/accept", map[string]string{"token": token}).Status(200)
}
