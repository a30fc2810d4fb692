// Package apikey is a key with which a program acts in a workspace. The key itself is shown once;
// the log has a hash of its secret, which is long and random, so that a plain hash gives nothing away.
package apikey

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/person"
)

// Kind names what a stream apikey-<uuid> holds. A name is for ever: old logs have it.
var Kind = event.NewKind("apikey",
	event.Of[Created]("APIKeyCreated", 1),
	event.Of[Revoked]("APIKeyRevoked", 1),
)

// ErrNotFound also answers those who may not know that the key exists.
var ErrNotFound = fault.New(fault.NotFound, "API key not found")

// State is what a sign-in and a decision need.
type State struct {
	Name        string
	Workspace   uuid.UUID
	SecretHash  []byte // SHA-256; nil before Created
	Permissions actor.Permissions
	By          string    // who made it, as [actor.Actor] names them
	ParentKey   uuid.UUID // the key that made it; uuid.Nil: no key did
	User        uuid.UUID // whose rights it has a part of; uuid.Nil: nobody's, the deployment gave them
	ExpiresAt   *time.Time
	Revoked     bool
}

// Opens says whether the key itself is in force. It opens nothing all the same once a key that made it, or
// made that one, is not.
func (s State) Opens(now time.Time) bool {
	return s.SecretHash != nil && !s.Revoked && (s.ExpiresAt == nil || now.Before(*s.ExpiresAt))
}

// Within returns what the key allows as long as nobody who made it has more than limit.
func (s State) Within(limit actor.Permissions) actor.Permissions {
	lesser := func(a actor.Area) actor.Level {
		if l := s.Permissions.Level(a); !limit.Level(a).Allows(l) {
			return limit.Level(a)
		}
		return s.Permissions.Level(a)
	}
	if s.Permissions.Within(limit) {
		return s.Permissions
	}
	return actor.Permissions{
		Ledger: lesser(actor.Ledger), Messaging: lesser(actor.Messaging), Marketplace: lesser(actor.Marketplace), Audit: lesser(actor.Audit),
		Operator: s.Permissions.Operator && limit.Operator,
	}
}

// Created records a new key.
type Created struct {
	By          string            `json:"by"`               // as [actor.Actor] names them
	User        uuid.UUID         `json:"user_id,omitzero"` // by whose rights: by itself, or who made the key that made it
	Name        string            `json:"name"`
	Workspace   uuid.UUID         `json:"workspace_id"`
	SecretHash  []byte            `json:"secret_sha256"`
	Permissions actor.Permissions `json:"permissions"`
	ExpiresAt   *time.Time        `json:"expires_at,omitempty"`
}

// ParentKey is the key that made this one, [uuid.Nil] when no key did: a person, the shell, or the operator's
// own key, which is in the configuration and not in the log.
func (e Created) ParentKey() uuid.UUID {
	id, _ := strings.CutPrefix(e.By, "api_key:")
	maker, err := uuid.Parse(id)
	if err != nil || id == e.By {
		return uuid.Nil
	}
	return maker
}

// Revoked records that the key, and all keys created with it, open nothing any more.
type Revoked struct{}

// Evolve begins the key.
func (e Created) Evolve(State) State {
	return State{
		Name: e.Name, Workspace: e.Workspace, SecretHash: e.SecretHash, Permissions: e.Permissions, ExpiresAt: e.ExpiresAt,
		By: e.By, ParentKey: e.ParentKey(), User: e.User,
	}
}

// Evolve ends it.
func (Revoked) Evolve(s State) State { s.Revoked = true; return s }

// MaxMakers is how many keys there can be above one, each of which made the next: every request looks at all.
const MaxMakers = 8

// Create makes a key for a workspace, with no more permissions than its maker has, and for no longer than the key
// lasts that makes it.
type Create struct {
	By          actor.Actor       `json:"-"`
	User        uuid.UUID         `json:"-"` // by whose rights; uuid.Nil: the deployment's
	Makers      int               `json:"-"` // how many keys are above it
	Ends        *time.Time        `json:"-"` // when the key does that makes it; nil: it does not, or there is none
	Workspace   uuid.UUID         `json:"-"`
	SecretHash  []byte            `json:"-"`
	Now         time.Time         `json:"-"`
	Name        string            `json:"name" minLength:"1" maxLength:"100" doc:"What the key is for"`
	Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
	ExpiresAt   *time.Time        `json:"expires_at,omitempty" doc:"From when on it is refused. A key that a key makes ends with that one, if not before"`
}

// Decide refuses to give what the maker does not have.
func (c Create) Decide(s State) ([]event.Event[State], error) {
	name, unfit := person.Name("name", c.Name)
	switch {
	case s.SecretHash != nil:
		return nil, fault.New(fault.Conflict, "API key exists already")
	case unfit != nil:
		return nil, unfit
	case c.Permissions.Empty():
		return nil, fault.Fields(fault.Field{Field: "permissions", Message: "at least one is needed"})
	case !c.Permissions.Within(c.By.Permissions):
		return nil, fault.New(fault.Forbidden, "A key cannot have more permissions than its maker")
	case c.ExpiresAt != nil && !c.ExpiresAt.After(c.Now):
		return nil, fault.Fields(fault.Field{Field: "expires_at", Message: "must be in the future"})
	case c.ExpiresAt != nil && c.Ends != nil && c.ExpiresAt.After(*c.Ends):
		return nil, fault.Fields(fault.Field{Field: "expires_at", Message: "must not be after the end of the key that makes it"})
	case c.Makers > MaxMakers:
		return nil, fault.New(fault.Conflict, "Too many keys, each made with the one before")
	}
	if c.ExpiresAt == nil {
		c.ExpiresAt = c.Ends
	}
	return []event.Event[State]{Created{
		By: c.By.String(), User: c.User,
		Name: name, Workspace: c.Workspace, SecretHash: c.SecretHash, Permissions: c.Permissions, ExpiresAt: c.ExpiresAt,
	}}, nil
}

// Revoke ends a key.
type Revoke struct{}

// Decide refuses a key that is not there, or is revoked already.
func (Revoke) Decide(s State) ([]event.Event[State], error) {
	if s.SecretHash == nil || s.Revoked {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Revoked{}}, nil
}
