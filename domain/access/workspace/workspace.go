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
	event.Of[Created]("WorkspaceMade", 1),
	event.Of[Invited]("MemberInvited", 1),
	event.Of[Withdrawn]("InvitationWithdrawn", 1),
	event.Of[Joined]("MemberJoined", 1),
	event.Of[Changed]("MemberChanged", 1),
	event.Of[Removed]("MemberRemoved", 1),
	event.Of[AddressMismatched]("InvitationStrayed", 1),
).Sealing(Invitations)

// What is answered to those who may not, or not so.
var (
	ErrNotFound     = fault.New(fault.NotFound, "Workspace not found")
	ErrNotPermitted = fault.New(fault.Forbidden, "Not enough permissions")
	ErrNoMember     = fault.New(fault.NotFound, "Member not found")
	ErrNoInvitation = fault.New(fault.Malformed, "Invalid or expired invitation token")
	ErrAnothers     = fault.New(fault.Forbidden, "This invitation was sent to another address")
	ErrNotOpen      = fault.New(fault.NotFound, "Invitation not found")
	ErrMember       = fault.New(fault.Conflict, "Already a member of this workspace")
	ErrInvitations  = fault.New(fault.Conflict, "Too many open invitations")
	ErrMembers      = fault.New(fault.Conflict, "Too many members")
	ErrLastMember   = fault.New(fault.Conflict, "The last member with write access cannot be removed")
	ErrTooMuch      = fault.New(fault.Forbidden, "A member cannot be given more permissions than the caller has")
	ErrAbove        = fault.New(fault.Forbidden, "A member who has more permissions than the caller is not the caller's to change or remove")
	ErrOwner        = fault.New(fault.Forbidden, "The owner of a workspace cannot be removed, or given fewer permissions, by others")
)

// How many there can be at once: every event copies them, and a sign-in reads all events.
const (
	MaxInvitations = 100
	MaxMembers     = 500
)

// Owner is what a user may do in the workspace that was made with them.
var Owner = actor.Permissions{Ledger: actor.Write, Messaging: actor.Write, Marketplace: actor.Write, Audit: actor.Write}

// Invitations are the subjects of the addresses that somebody was invited at. The key is destroyed when the invitation is over, so that a
// person who never came is forgotten.
const Invitations event.SubjectType = "invitation"

// InvitationSubject returns the name of the key that an invitation's address is sealed with.
func InvitationSubject(id uuid.UUID) string { return Invitations.Of(id.String()) }

// Invitation is one that nobody has accepted yet.
type Invitation struct {
	By          string // who sent it, as [actor.Actor] names them
	Email       event.Personal
	EmailKey    string // keyed hash of the address
	Strayed     bool   // somebody with another address tried to accept it
	Permissions actor.Permissions
	ExpiresAt   time.Time
}

// State is who belongs to it. A workshop has a handful of members.
type State struct {
	Made        bool
	Owner       uuid.UUID // whom it was made for; uuid.Nil once they left
	Members     map[uuid.UUID]actor.Permissions
	Invitations map[uuid.UUID]Invitation // some of them expired
	Revisions   map[uuid.UUID]int64      // of the newest event about each member, in the workspace's stream
	Events      int64                    // how many there were; the newest has the revision before this
}

// next is the state with one event more.
func (s State) next() State {
	s.Events++
	return s
}

// concerns is next, with an event that is about the member.
func (s State) concerns(member uuid.UUID) State {
	s.Revisions = changed(s.Revisions)
	s.Revisions[member] = s.Events
	return s.next()
}

// open counts the invitations that can be accepted now.
func (s State) open(now time.Time) (n int) {
	for _, i := range s.Invitations {
		if now.Before(i.ExpiresAt) {
			n++
		}
	}
	return n
}

// may returns what a caller may do here who may say who belongs, and refuses anybody else. What a member may is taken
// from the state that the decision is about: the one that they signed in with may have been late.
func (s State) may(by actor.Actor) (actor.Permissions, error) {
	p := by.Permissions
	if by.Type == "user" && !p.Operator {
		id, err := uuid.Parse(by.ID)
		rights, member := s.Members[id]
		if err != nil || !member {
			return rights, ErrNotFound
		}
		p = rights
	}
	if !p.Level(actor.Marketplace).Allows(actor.Write) {
		return p, ErrNotPermitted
	}
	return p, nil
}

// owns says whether the caller decides about the owner: themselves, or an operator.
func (s State) owns(by actor.Actor) bool {
	return by.Permissions.Operator || by.Type == "user" && by.ID == s.Owner.String()
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

// Created records a new workspace with its first member.
type Created struct {
	Owner uuid.UUID `json:"owner_id"`
}

// Invited records an invitation to join.
type Invited struct {
	Invitation  uuid.UUID         `json:"invitation_id"`
	By          string            `json:"by"`
	Email       event.Personal    `json:"email,omitzero"`
	EmailKey    string            `json:"email_key"` // by which who is erased finds it
	Permissions actor.Permissions `json:"permissions"`
	InvitedAt   time.Time         `json:"invited_at"`
	ExpiresAt   time.Time         `json:"expires_at"`
}

// Withdrawn records that an invitation can no longer be accepted.
type Withdrawn struct {
	Invitation uuid.UUID `json:"invitation_id"`
}

// AddressMismatched records that a user with another address tried to accept an invitation, for the first time.
type AddressMismatched struct {
	Invitation uuid.UUID `json:"invitation_id"`
}

// Joined records that a user accepted an invitation.
type Joined struct {
	Invitation  uuid.UUID         `json:"invitation_id"`
	User        uuid.UUID         `json:"user_id"`
	Permissions actor.Permissions `json:"permissions"`
}

// Changed records a member's new permissions.
type Changed struct {
	User uuid.UUID         `json:"user_id"`
	From actor.Permissions `json:"from"`
	To   actor.Permissions `json:"to"`
}

// Removed records that a user is no longer a member.
type Removed struct {
	User   uuid.UUID `json:"user_id"`
	Erased bool      `json:"erased,omitempty"` // the person is gone, and may have been the last
}

// Evolve begins the workspace.
func (e Created) Evolve(State) State {
	return State{Made: true, Owner: e.Owner, Members: map[uuid.UUID]actor.Permissions{e.Owner: Owner}}.concerns(e.Owner)
}

// Evolve notes the invitation, and forgets those that had expired before it.
func (e Invited) Evolve(s State) State {
	s.Invitations = changed(s.Invitations)
	maps.DeleteFunc(s.Invitations, func(_ uuid.UUID, i Invitation) bool { return !e.InvitedAt.Before(i.ExpiresAt) })
	s.Invitations[e.Invitation] = Invitation{By: e.By, Email: e.Email, EmailKey: e.EmailKey, Permissions: e.Permissions,
		ExpiresAt: e.ExpiresAt}
	return s.next()
}

// Evolve forgets the invitation.
func (e Withdrawn) Evolve(s State) State {
	s.Invitations = changed(s.Invitations)
	delete(s.Invitations, e.Invitation)
	return s.next()
}

// Evolve notes it.
func (e AddressMismatched) Evolve(s State) State {
	s.Invitations = changed(s.Invitations)
	if i, open := s.Invitations[e.Invitation]; open {
		i.Strayed = true
		s.Invitations[e.Invitation] = i
	}
	return s.next()
}

// Erases implements [event.ErasureTrigger].
func (e Invited) Erases(string) event.Erasure { return over(e.Invitation, e.ExpiresAt) }

// Erases implements [event.ErasureTrigger].
func (e Withdrawn) Erases(string) event.Erasure { return over(e.Invitation, time.Time{}) }

// Erases implements [event.ErasureTrigger].
func (e Joined) Erases(string) event.Erasure { return over(e.Invitation, time.Time{}) }

// over returns the end of an invitation, whose address is in the log alone.
func over(invitation uuid.UUID, at time.Time) event.Erasure {
	return event.Erasure{Subject: InvitationSubject(invitation), At: at, Unlisted: true}
}

// Evolve takes the member in.
func (e Joined) Evolve(s State) State {
	s.Members, s.Invitations = changed(s.Members), changed(s.Invitations)
	s.Members[e.User] = e.Permissions
	delete(s.Invitations, e.Invitation)
	return s.concerns(e.User)
}

// Evolve gives the member other permissions.
func (e Changed) Evolve(s State) State {
	s.Members = changed(s.Members)
	s.Members[e.User] = e.To
	return s.concerns(e.User)
}

// Evolve lets the member go.
func (e Removed) Evolve(s State) State {
	s.Members, s.Revisions = changed(s.Members), changed(s.Revisions)
	delete(s.Members, e.User)
	delete(s.Revisions, e.User)
	if e.User == s.Owner {
		s.Owner = uuid.Nil
	}
	return s.next()
}

// changed is a copy: the state before may be in use elsewhere.
func changed[V any](m map[uuid.UUID]V) map[uuid.UUID]V {
	if m == nil {
		return map[uuid.UUID]V{}
	}
	return maps.Clone(m)
}

// Create begins a workspace.
type Create struct {
	Owner uuid.UUID
}

// Decide makes it once.
func (c Create) Decide(s State) ([]event.Event[State], error) {
	if s.Made {
		return nil, nil
	}
	return []event.Event[State]{Created(c)}, nil
}

// Invite asks somebody to join, with no more permissions than who asks has.
type Invite struct {
	By          actor.Actor
	Invitation  uuid.UUID
	Email       event.Personal
	EmailKey    string
	Permissions actor.Permissions
	Now         time.Time
	ExpiresAt   time.Time
}

// Decide refuses to give what the caller does not have, and more than [MaxInvitations] at once.
func (c Invite) Decide(s State) ([]event.Event[State], error) {
	if !s.Made {
		return nil, ErrNotFound
	}
	rights, err := s.may(c.By)
	switch {
	case err != nil:
		return nil, err
	case c.Permissions.Empty() || c.Permissions.Operator:
		return nil, fault.Fields(fault.Field{Field: "permissions",
			Message: "at least one area is needed, and operator is not a workspace's to give"})
	case !c.Permissions.Within(rights):
		return nil, ErrTooMuch
	case s.open(c.Now) >= MaxInvitations:
		return nil, ErrInvitations
	}
	return []event.Event[State]{Invited{
		Invitation: c.Invitation, By: c.By.String(), Email: c.Email, EmailKey: c.EmailKey, Permissions: c.Permissions,
		InvitedAt: c.Now.UTC(), ExpiresAt: c.ExpiresAt.UTC(),
	}}, nil
}

// Withdraw takes an invitation back, also one that somebody else sent.
type Withdraw struct {
	By         actor.Actor
	Invitation uuid.UUID
}

// Decide refuses who may not invite, and an invitation that is not there any more.
func (c Withdraw) Decide(s State) ([]event.Event[State], error) {
	if _, err := s.may(c.By); err != nil {
		return nil, err
	}
	if _, open := s.Invitations[c.Invitation]; !open {
		return nil, ErrNotOpen
	}
	return []event.Event[State]{Withdrawn{Invitation: c.Invitation}}, nil
}

// Join accepts an invitation.
type Join struct {
	Invitation uuid.UUID
	Inviter    actor.Actor // who sent it, with what they may do now; what a member may do here need not be known
	User       uuid.UUID
	EmailKey   string // keyed hash of the user's verified address; empty: none is verified
	Now        time.Time
}

// Decide refuses an invitation that is over, one that its sender could not send now, a user with another address, and
// a member: what somebody gave does not outlive what they had.
func (c Join) Decide(s State) ([]event.Event[State], error) {
	i, open := s.Invitations[c.Invitation]
	_, member := s.Members[c.User]
	rights, gone := s.may(c.Inviter)
	switch {
	case !open || !c.Now.Before(i.ExpiresAt), gone != nil, !i.Permissions.Within(rights):
		return nil, ErrNoInvitation
	case member:
		return nil, ErrMember
	case c.EmailKey != i.EmailKey:
		return nil, ErrAnothers
	case len(s.Members) >= MaxMembers:
		return nil, ErrMembers
	}
	return []event.Event[State]{Joined{Invitation: c.Invitation, User: c.User, Permissions: i.Permissions}}, nil
}

// RecordMismatch notes that a user with another address tried to accept an invitation.
type RecordMismatch struct {
	Invitation uuid.UUID
}

// Decide notes it once.
func (c RecordMismatch) Decide(s State) ([]event.Event[State], error) {
	if i, open := s.Invitations[c.Invitation]; !open || i.Strayed {
		return nil, nil
	}
	return []event.Event[State]{AddressMismatched(c)}, nil
}

// Change gives a member other permissions, in the areas that it names.
type Change struct {
	By   actor.Actor
	User uuid.UUID
	To   actor.Permissions
}

// Decide keeps at least one member who may write, gives nothing that the caller does not have, and leaves
// those alone who have more. Only the owner and operators take anything from the owner.
func (c Change) Decide(s State) ([]event.Event[State], error) {
	rights, err := s.may(c.By)
	from, member := s.Members[c.User]
	to := from.With(c.To)
	switch {
	case err != nil:
		return nil, err
	case !member:
		return nil, ErrNoMember
	case c.To == (actor.Permissions{}) || to.Empty() || c.To.Operator:
		return nil, fault.Fields(fault.Field{Field: "permissions",
			Message: "at least one area is needed, and operator is not a workspace's to give"})
	case !c.To.Within(rights):
		return nil, ErrTooMuch
	case !from.Within(rights):
		return nil, ErrAbove
	case from.Within(to) && to.Within(from):
		return nil, nil
	case c.User == s.Owner && !from.Within(to) && !s.owns(c.By):
		return nil, ErrOwner
	case from.Marketplace.Allows(actor.Write) && !to.Marketplace.Allows(actor.Write) && s.writers() == 1:
		return nil, ErrLastMember
	}
	return []event.Event[State]{Changed{User: c.User, From: from, To: to}}, nil
}

// Remove lets a member go. A person who is erased goes also as the last: the books stay.
type Remove struct {
	By     actor.Actor // not asked for who is erased
	User   uuid.UUID
	Erased bool
}

// Decide keeps at least one member who may write, those who have more than the caller, and the owner, who is
// removed by themselves and by operators only.
func (c Remove) Decide(s State) ([]event.Event[State], error) {
	p, member := s.Members[c.User]
	if c.Erased {
		if !member {
			return nil, nil
		}
		return []event.Event[State]{Removed{User: c.User, Erased: true}}, nil
	}
	rights, err := s.may(c.By)
	switch {
	case err != nil:
		return nil, err
	case !member:
		return nil, ErrNoMember
	case !p.Within(rights):
		return nil, ErrAbove
	case c.User == s.Owner && !s.owns(c.By):
		return nil, ErrOwner
	case p.Marketplace.Allows(actor.Write) && s.writers() == 1:
		return nil, ErrLastMember
	}
	return []event.Event[State]{Removed{User: c.User}}, nil
}
