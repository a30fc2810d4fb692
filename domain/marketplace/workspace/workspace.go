// Package workspace is a tenant: whose books, catalogue and messages are kept apart from everybody
// else's (CONTRACT.md 0.2). It has members, each with permissions.
package workspace

import (
	"maps"
	"time"

	"github.com/google/uuid"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// Kind names what a stream workspace-<uuid> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("workspace",
	event.Of[Made]("WorkspaceMade", 1),
	event.Of[Invited]("MemberInvited", 1),
	event.Of[Joined]("MemberJoined", 1),
	event.Of[Changed]("MemberChanged", 1),
	event.Of[Removed]("MemberRemoved", 1),
)

// What is answered to those who may not, or not so.
var (
	ErrNotFound     = fault.New(fault.NotFound, "Workspace not found")
	ErrNoMember     = fault.New(fault.NotFound, "Member not found")
	ErrNoInvitation = fault.New(fault.Malformed, "Invalid or expired invitation token")
	ErrMember       = fault.New(fault.Conflict, "Already a member of this workspace")
	ErrLastMember   = fault.New(fault.Conflict, "The last member with write access cannot be removed")
	ErrTooMuch      = fault.New(fault.Forbidden, "A member cannot be given more permissions than the caller has")
	ErrAbove        = fault.New(fault.Forbidden, "A member who has more permissions than the caller is not the caller's to change or remove")
)

// Owner is what a user may do in the workspace that was made with them.
var Owner = actor.Permissions{Ledger: actor.Write, Messaging: actor.Write, Marketplace: actor.Write, Audit: actor.Write}

// Invitation is one that nobody has accepted yet.
type Invitation struct {
	Email       event.Personal
	Permissions actor.Permissions
	ExpiresAt   time.Time
}

// State is who belongs to it. A workshop has a handful of members.
type State struct {
	Made        bool
	Members     map[uuid.UUID]actor.Permissions
	Invitations map[uuid.UUID]Invitation
}

// writers counts the members who may change who belongs to it.
func (s State) writers() (n int) {
	for _, p := range s.Members {
		if p.Marketplace.Allows(actor.Write) {
			n++
		}
	}
	return n
}

// Made: the workspace began, with its first member.
type Made struct {
	Owner uuid.UUID `json:"owner_id"`
}

// Invited: somebody was asked to join.
type Invited struct {
	Invitation  uuid.UUID         `json:"invitation_id"`
	Email       event.Personal    `json:"email,omitzero"`
	Permissions actor.Permissions `json:"permissions"`
	ExpiresAt   time.Time         `json:"expires_at"`
}

// Joined: a user accepted an invitation.
type Joined struct {
	Invitation  uuid.UUID         `json:"invitation_id"`
	User        uuid.UUID         `json:"user_id"`
	Permissions actor.Permissions `json:"permissions"`
}

// Changed: a member may do other things than before.
type Changed struct {
	User uuid.UUID         `json:"user_id"`
	From actor.Permissions `json:"from"`
	To   actor.Permissions `json:"to"`
}

// Removed: somebody belongs to it no more.
type Removed struct {
	User   uuid.UUID `json:"user_id"`
	Erased bool      `json:"erased,omitempty"` // the person is gone, and may have been the last
}

// Evolve begins the workspace.
func (e Made) Evolve(State) State {
	return State{Made: true, Members: map[uuid.UUID]actor.Permissions{e.Owner: Owner}}
}

// Evolve notes the invitation.
func (e Invited) Evolve(s State) State {
	s.Invitations = changed(s.Invitations)
	s.Invitations[e.Invitation] = Invitation{Email: e.Email, Permissions: e.Permissions, ExpiresAt: e.ExpiresAt}
	return s
}

// Evolve takes the member in.
func (e Joined) Evolve(s State) State {
	s.Members, s.Invitations = changed(s.Members), changed(s.Invitations)
	s.Members[e.User] = e.Permissions
	delete(s.Invitations, e.Invitation)
	return s
}

// Evolve gives the member other permissions.
func (e Changed) Evolve(s State) State {
	s.Members = changed(s.Members)
	s.Members[e.User] = e.To
	return s
}

// Evolve lets the member go.
func (e Removed) Evolve(s State) State {
	s.Members = changed(s.Members)
	delete(s.Members, e.User)
	return s
}

// changed is a copy: the state before may be in use elsewhere.
func changed[V any](m map[uuid.UUID]V) map[uuid.UUID]V {
	if m == nil {
		return map[uuid.UUID]V{}
	}
	return maps.Clone(m)
}

// Make begins a workspace.
type Make struct {
	Owner uuid.UUID
}

// Decide makes it once.
func (c Make) Decide(s State) ([]event.Event[State], error) {
	if s.Made {
		return nil, nil
	}
	return []event.Event[State]{Made(c)}, nil
}

// Invite asks somebody to join, with no more permissions than who asks has.
type Invite struct {
	By          actor.Actor
	Invitation  uuid.UUID
	Email       event.Personal
	Permissions actor.Permissions
	ExpiresAt   time.Time
}

// Decide refuses to give what the caller does not have.
func (c Invite) Decide(s State) ([]event.Event[State], error) {
	switch {
	case !s.Made:
		return nil, ErrNotFound
	case c.Permissions.Empty() || c.Permissions.Operator:
		return nil, fault.Fields(fault.Field{Field: "permissions", Message: "at least one area is needed, and operator is not a workspace's to give"})
	case !c.Permissions.Within(c.By.Permissions):
		return nil, ErrTooMuch
	}
	return []event.Event[State]{Invited{Invitation: c.Invitation, Email: c.Email, Permissions: c.Permissions, ExpiresAt: c.ExpiresAt.UTC()}}, nil
}

// Join accepts an invitation.
type Join struct {
	Invitation uuid.UUID
	User       uuid.UUID
	Now        time.Time
}

// Decide refuses an invitation that is not there any more, and who belongs already.
func (c Join) Decide(s State) ([]event.Event[State], error) {
	i, open := s.Invitations[c.Invitation]
	_, member := s.Members[c.User]
	switch {
	case !open || !c.Now.Before(i.ExpiresAt):
		return nil, ErrNoInvitation
	case member:
		return nil, ErrMember
	}
	return []event.Event[State]{Joined{Invitation: c.Invitation, User: c.User, Permissions: i.Permissions}}, nil
}

// Change gives a member other permissions.
type Change struct {
	By   actor.Actor
	User uuid.UUID
	To   actor.Permissions
}

// Decide keeps at least one member who may write, gives nothing that the caller does not have, and leaves
// those alone who have more.
func (c Change) Decide(s State) ([]event.Event[State], error) {
	from, member := s.Members[c.User]
	switch {
	case !member:
		return nil, ErrNoMember
	case c.To.Empty() || c.To.Operator:
		return nil, fault.Fields(fault.Field{Field: "permissions", Message: "at least one area is needed, and operator is not a workspace's to give"})
	case !c.To.Within(c.By.Permissions):
		return nil, ErrTooMuch
	case !from.Within(c.By.Permissions):
		return nil, ErrAbove
	case from.Within(c.To) && c.To.Within(from):
		return nil, nil
	case from.Marketplace.Allows(actor.Write) && !c.To.Marketplace.Allows(actor.Write) && s.writers() == 1:
		return nil, ErrLastMember
	}
	return []event.Event[State]{Changed{User: c.User, From: from, To: c.To}}, nil
}

// Remove lets a member go. A person who is erased goes also as the last: the books stay.
type Remove struct {
	By     actor.Actor // not asked for who is erased
	User   uuid.UUID
	Erased bool
}

// Decide keeps at least one member who may write, and those who have more than the caller.
func (c Remove) Decide(s State) ([]event.Event[State], error) {
	p, member := s.Members[c.User]
	switch {
	case !member && c.Erased:
		return nil, nil
	case !member:
		return nil, ErrNoMember
	case !c.Erased && !p.Within(c.By.Permissions):
		return nil, ErrAbove
	case !c.Erased && p.Marketplace.Allows(actor.Write) && s.writers() == 1:
		return nil, ErrLastMember
	}
	return []event.Event[State]{Removed{User: c.User, Erased: c.Erased}}, nil
}
