// Package apikey is the aggregate of an API key. Programs act with it in a workspace. The secret is shown once. The log has a plain hash of
// the secret, which reveals nothing, because the secret is long and random.
package apikey

import (
	"cmp"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/person"
)

// Kind is the kind of the streams apikey-<uuid>. Names never change: old logs have them.
var Kind = event.NewKind("apikey",
	event.Of[Created]("APIKeyCreated", 1),
	event.Of[Revoked]("APIKeyRevoked", 1),
)

// ErrNotFound reports an unknown key. Callers without access to the key receive it too.
var ErrNotFound = fault.New(fault.NotFound, "API key not found")

// State is the state for authentication and decisions.
type State struct {
	Name        string
	Workspace   uuid.UUID
	SecretHash  []byte // SHA-256; nil before Created
	Permissions actor.Permissions
	By          string    // its creator in the form of [actor.Actor.String]
	ParentKey   uuid.UUID // the key that created it; uuid.Nil: none
	User        uuid.UUID // user whose rights limit it; uuid.Nil: none, the deployment granted them
	ExpiresAt   *time.Time
	Revoked     bool
}

// Opens reports whether the key itself is valid. The keys above it must be valid too.
func (s State) Opens(now time.Time) bool {
	return s.SecretHash != nil && !s.Revoked && (s.ExpiresAt == nil || now.Before(*s.ExpiresAt))
}

// Within returns the key's permissions without those that exceed limit.
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
	By          string            `json:"by"`               // in the form of [actor.Actor.String]
	User        uuid.UUID         `json:"user_id,omitzero"` // user whose rights limit it: the creator, or the creator of the key above
	Name        string            `json:"name"`
	Workspace   uuid.UUID         `json:"workspace_id"`
	SecretHash  []byte            `json:"secret_sha256"`
	Permissions actor.Permissions `json:"permissions"`
	ExpiresAt   *time.Time        `json:"expires_at,omitempty"`
}

// ParentKey returns the key that created this one. It returns [uuid.Nil] if the creator was a user, the shell, or the operator's own key,
// which is in the configuration and not in the log.
func (e Created) ParentKey() uuid.UUID {
	id, _ := strings.CutPrefix(e.By, "api_key:")
	maker, err := uuid.Parse(id)
	if err != nil || id == e.By {
		return uuid.Nil
	}
	return maker
}

// Revoked records that the key, and all keys created with it, are invalid.
type Revoked struct{}

// Evolve creates the key.
func (e Created) Evolve(State) State {
	return State{
		Name: e.Name, Workspace: e.Workspace, SecretHash: e.SecretHash, Permissions: e.Permissions, ExpiresAt: e.ExpiresAt,
		By: e.By, ParentKey: e.ParentKey(), User: e.User,
	}
}

// Evolve revokes the key.
func (Revoked) Evolve(s State) State { s.Revoked = true; return s }

// MaxMakers is the maximum number of keys above a key, each of which created the next one. Every request checks all of them.
const MaxMakers = 8

// Create creates a key for a workspace. The key has at most its creator's permissions, and expires at the latest with the key that creates
// it.
type Create struct {
	By          actor.Actor       `json:"-"`
	User        uuid.UUID         `json:"-"` // user whose rights limit it; uuid.Nil: the deployment
	Makers      int               `json:"-"` // number of keys above it
	Ends        *time.Time        `json:"-"` // expiry of the creating key; nil: none, or no such key
	Workspace   uuid.UUID         `json:"-"`
	SecretHash  []byte            `json:"-"`
	Now         time.Time         `json:"-"`
	Name        string            `json:"name" minLength:"1" maxLength:"100" doc:"Purpose of the key"`
	Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
	ExpiresAt   *time.Time        `json:"expires_at,omitempty" doc:"Time of expiry. A key created with another key expires with that key at the latest"`
}

// Decide refuses permissions that the creator does not have. It lists all faults of fields.
func (c Create) Decide(s State) ([]event.Event[State], error) {
	name, wrongName := person.Name("name", c.Name)
	var wrongPermissions, wrongExpiry error
	if c.Permissions.Empty() {
		wrongPermissions = fault.Wrong("permissions", "at least one is needed")
	}
	switch {
	case c.ExpiresAt != nil && !c.ExpiresAt.After(c.Now):
		wrongExpiry = fault.Wrong("expires_at", "must be in the future")
	case c.ExpiresAt != nil && c.Ends != nil && c.ExpiresAt.After(*c.Ends):
		wrongExpiry = fault.Wrong("expires_at", "must not be after the expiry of the creating key")
	}
	wrong := fault.Join(wrongName, wrongPermissions, wrongExpiry)
	switch {
	case s.SecretHash != nil:
		return nil, fault.New(fault.Conflict, "API key exists already")
	case wrong != nil:
		return nil, wrong
	case !c.Permissions.Within(c.By.Permissions):
		return nil, fault.New(fault.Forbidden, "A key cannot have more permissions than its creator")
	case c.Makers > MaxMakers:
		return nil, fault.New(fault.Conflict, "Too many keys, each created with the previous one")
	}
	c.ExpiresAt = cmp.Or(c.ExpiresAt, c.Ends)
	return []event.Event[State]{Created{
		By: c.By.String(), User: c.User,
		Name: name, Workspace: c.Workspace, SecretHash: c.SecretHash, Permissions: c.Permissions, ExpiresAt: c.ExpiresAt,
	}}, nil
}

// Revoke revokes a key.
type Revoke struct{}

// Decide refuses a missing or revoked key.
func (Revoke) Decide(s State) ([]event.Event[State], error) {
	if s.SecretHash == nil || s.Revoked {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Revoked{}}, nil
}
