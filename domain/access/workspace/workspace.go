// Package workspace is the aggregate of a tenant with its own books, catalogue and messages (CONTRACT.md 0.2). It has members, each with
// permissions.
package workspace

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// Kind is the kind of the streams workspace-<uuid>. Names never change: old logs have them.
var Kind = event.NewKind("workspace",
	event.Of[Created]("WorkspaceCreated", 1),
	event.Of[Invited]("MemberInvited", 1),
	event.Of[Withdrawn]("InvitationWithdrawn", 1),
	event.Of[Joined]("MemberJoined", 1),
	event.Of[Changed]("MemberChanged", 1),
	event.Of[Removed]("MemberRemoved", 1),
	event.Of[AddressMismatched]("InvitationAddressMismatched", 1),
).Sealing(Invitations)

// Errors that commands return.
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
	ErrAbove        = fault.New(fault.Forbidden, "The caller cannot change or remove a member with more permissions")
	ErrOwner        = fault.New(fault.Forbidden, "The owner of a workspace cannot be removed, or given fewer permissions, by others")
)

// Maximum numbers of members and open invitations. They are limited because every event copies them, and a sign-in reads all events.
const (
	MaxInvitations = 100
	MaxMembers     = 500
)

// Owner has a user's permissions in the workspace that was created with them.
var Owner = actor.Permissions{Ledger: actor.Write, Messaging: actor.Write, Marketplace: actor.Write, Audit: actor.Write}

// Invitations are data subjects: each has a key for the invited address. The key is destroyed when the invitation ends, so the address of a
// person who never joined is erased.
const Invitations event.SubjectType = "invitation"

// InvitationSubject returns the name of the key that seals an invitation's address.
func InvitationSubject(id uuid.UUID) string { return Invitations.Of(id.String()) }

// invitation is an open invitation.
type invitation struct {
	By          string // its sender in the form of [actor.Actor.String]
	Email       event.Personal
	EmailKey    string // keyed hash of the address
	Mismatched  bool   // a user with another address tried to accept it
	Permissions actor.Permissions
	ExpiresAt   time.Time
}

// State has the members and invitations of a workspace, usually a few.
type State struct {
	Made        bool
	Owner       uuid.UUID // user with whom it was created; uuid.Nil: no longer a member
	Members     map[uuid.UUID]actor.Permissions
	Invitations map[uuid.UUID]invitation // some may have expired
	Revisions   map[uuid.UUID]int64      // revision of the newest event about each member in the workspace's stream
	Events      int64                    // number of events in the stream
}

// next is the state after one more event.
func (s State) next() State {
	s.Events++
	return s
}

// changedMember is next for an event about a member.
func (s State) changedMember(member uuid.UUID) State {
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

// may returns the caller's current permissions in the workspace, or an error if the caller may not manage members. It uses a member's
// permissions from this state, because the permissions of the sign-in may be outdated.
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

// owns reports whether the caller may change the owner's membership: the owner or an operator.
func (s State) owns(by actor.Actor) bool {
	return by.Permissions.Operator || by.Type == "user" && by.ID == s.Owner.String()
}

// writers counts the members who may manage members.
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
	EmailKey    string            `json:"email_key"` // keyed hash by which an erasure of the person finds the invitation
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
	Erased bool      `json:"erased,omitempty"` // the person was erased, and may have been the last member
}

// Evolve creates the workspace.
func (e Created) Evolve(State) State {
	return State{Made: true, Owner: e.Owner, Members: map[uuid.UUID]actor.Permissions{e.Owner: Owner}}.changedMember(e.Owner)
}

// Evolve adds the invitation, and drops those that have expired.
func (e Invited) Evolve(s State) State {
	s.Invitations = changed(s.Invitations)
	maps.DeleteFunc(s.Invitations, func(_ uuid.UUID, i invitation) bool { return !e.InvitedAt.Before(i.ExpiresAt) })
	s.Invitations[e.Invitation] = invitation{By: e.By, Email: e.Email, EmailKey: e.EmailKey, Permissions: e.Permissions,
		ExpiresAt: e.ExpiresAt}
	return s.next()
}

// Evolve drops the invitation.
func (e Withdrawn) Evolve(s State) State {
	s.Invitations = changed(s.Invitations)
	delete(s.Invitations, e.Invitation)
	return s.next()
}

// Evolve marks the invitation.
func (e AddressMismatched) Evolve(s State) State {
	s.Invitations = changed(s.Invitations)
	if i, open := s.Invitations[e.Invitation]; open {
		i.Mismatched = true
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

// over returns the erasure of an ended invitation's address. No table has the address.
func over(invitation uuid.UUID, at time.Time) event.Erasure {
	return event.Erasure{Subject: InvitationSubject(invitation), At: at, Unlisted: true}
}

// Evolve adds the member.
func (e Joined) Evolve(s State) State {
	s.Members, s.Invitations = changed(s.Members), changed(s.Invitations)
	s.Members[e.User] = e.Permissions
	delete(s.Invitations, e.Invitation)
	return s.changedMember(e.User)
}

// Evolve sets the member's permissions.
func (e Changed) Evolve(s State) State {
	s.Members = changed(s.Members)
	s.Members[e.User] = e.To
	return s.changedMember(e.User)
}

// Evolve removes the member.
func (e Removed) Evolve(s State) State {
	s.Members, s.Revisions = changed(s.Members), changed(s.Revisions)
	delete(s.Members, e.User)
	delete(s.Revisions, e.User)
	if e.User == s.Owner {
		s.Owner = uuid.Nil
	}
	return s.next()
}

// changed returns a copy of a map, because the previous state may be in use elsewhere.
func changed[V any](m map[uuid.UUID]V) map[uuid.UUID]V {
	if m == nil {
		return map[uuid.UUID]V{}
	}
	return maps.Clone(m)
}

// Create creates a workspace.
type Create struct {
	Owner uuid.UUID
}

// Decide creates a workspace once.
func (c Create) Decide(s State) ([]event.Event[State], error) {
	if s.Made {
		return nil, nil
	}
	return []event.Event[State]{Created(c)}, nil
}

// Invite invites a person, with at most the caller's permissions.
type Invite struct {
	By          actor.Actor
	Invitation  uuid.UUID
	Email       event.Personal
	EmailKey    string
	Permissions actor.Permissions
	Now         time.Time
	ExpiresAt   time.Time
}

// Decide withdraws the earlier invitations of the address. It refuses permissions that the caller does not have, and more than
// [MaxInvitations] open invitations.
func (c Invite) Decide(s State) ([]event.Event[State], error) {
	if !s.Made {
		return nil, ErrNotFound
	}
	rights, err := s.may(c.By)
	var events []event.Event[State]
	for _, id := range slices.SortedFunc(maps.Keys(s.Invitations), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) {
		if earlier := s.Invitations[id]; earlier.EmailKey == c.EmailKey && c.Now.Before(earlier.ExpiresAt) {
			events = append(events, Withdrawn{Invitation: id})
		}
	}
	switch {
	case err != nil:
		return nil, err
	case CheckGrant(c.Permissions) != nil:
		return nil, CheckGrant(c.Permissions)
	case !c.Permissions.Within(rights):
		return nil, ErrTooMuch
	case s.open(c.Now)-len(events) >= MaxInvitations:
		return nil, ErrInvitations
	}
	return append(events, Invited{
		Invitation: c.Invitation, By: c.By.String(), Email: c.Email, EmailKey: c.EmailKey, Permissions: c.Permissions,
		InvitedAt: c.Now.UTC(), ExpiresAt: c.ExpiresAt.UTC(),
	}), nil
}

var errGrant = fault.Wrong("permissions", "at least one area is required, and a workspace cannot grant operator")

// CheckGrant returns the fault of permissions that no invitation can have.
func CheckGrant(p actor.Permissions) error {
	if p.Empty() || p.Operator {
		return errGrant
	}
	return nil
}

// Withdraw withdraws any invitation, even another member's.
type Withdraw struct {
	By         actor.Actor
	Invitation uuid.UUID
}

// Decide refuses a caller who may not invite, and a missing invitation.
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
	Inviter    actor.Actor // sender of the invitation, with current permissions, but without those of a member of the workspace
	User       uuid.UUID
	EmailKey   string // keyed hash of the user's verified address; empty: none is verified
	Now        time.Time
}

// Decide refuses an ended invitation, an invitation that its sender could not send now, a user with another address, and a member. So the
// permissions of an invitation end with those of its sender.
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

// RecordMismatch records that a user with another address tried to accept an invitation.
type RecordMismatch struct {
	Invitation uuid.UUID
}

// Decide records a mismatch once.
func (c RecordMismatch) Decide(s State) ([]event.Event[State], error) {
	if i, open := s.Invitations[c.Invitation]; !open || i.Mismatched {
		return nil, nil
	}
	return []event.Event[State]{AddressMismatched(c)}, nil
}

// Change sets a member's permissions in the areas that it contains.
type Change struct {
	By   actor.Actor
	User uuid.UUID
	To   actor.Permissions
}

// Decide keeps at least one member with write access. It refuses permissions that the caller does not have, and changes of members with
// more permissions than the caller. Only the owner and operators may reduce the owner's permissions.
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
		return nil, errGrant
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

// Remove removes a member. It removes an erased person even if no member remains; the books are kept.
type Remove struct {
	By     actor.Actor // not checked for an erased person
	User   uuid.UUID
	Erased bool
}

// Decide keeps at least one member with write access. It refuses to remove members with more permissions than the caller. Only the owner
// and operators may remove the owner.
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
