// Package actor has the caller of a request and its permissions.
package actor

import (
	"cmp"
	"fmt"

	"github.com/google/uuid"
)

// Area is a part of the system with its own permissions.
type Area string

// The areas.
const (
	Ledger      Area = "ledger"
	Messaging   Area = "messaging"
	Marketplace Area = "marketplace"
	Audit       Area = "audit"
)

// Level is the level of access to an area.
type Level string

// The levels. Each includes the previous ones. [None] is no access.
const (
	None  Level = "none"
	Read  Level = "read"
	Write Level = "write"
)

// Allows reports whether level l includes the wanted one.
func (l Level) Allows(wanted Level) bool { return l.rank() >= wanted.rank() }

func (l Level) rank() int {
	switch l {
	case Read:
		return 1
	case Write:
		return 2
	default:
		return 0
	}
}

// Permissions are the permissions in a workspace. Operator is for the whole deployment, and allows everything.
type Permissions struct {
	Ledger      Level `json:"ledger,omitempty"      enum:"none,read,write" doc:"Access to the ledgers"`
	Messaging   Level `json:"messaging,omitempty"   enum:"none,read,write" doc:"Access to messages"`
	Marketplace Level `json:"marketplace,omitempty" enum:"none,read,write" doc:"Access to the marketplace"`
	Audit       Level `json:"audit,omitempty"       enum:"none,read,write" doc:"Access to the trail and the log"`
	Operator    bool  `json:"operator,omitempty" doc:"All permissions in all workspaces"`
}

// Level returns the level for the area.
func (p Permissions) Level(a Area) Level {
	switch {
	case p.Operator:
		return Write
	case a == Ledger:
		return p.Ledger
	case a == Messaging:
		return p.Messaging
	case a == Marketplace:
		return p.Marketplace
	case a == Audit:
		return p.Audit
	default:
		return None
	}
}

// Empty reports whether p allows nothing.
func (p Permissions) Empty() bool {
	for _, a := range []Area{Ledger, Messaging, Marketplace, Audit} {
		if p.Level(a).Allows(Read) {
			return false
		}
	}
	return true
}

// With returns the permissions after a change. It uses the change's levels of the areas that the change contains, and p's levels of the
// others.
func (p Permissions) With(change Permissions) Permissions {
	level := func(own, named Level) Level {
		if named = cmp.Or(named, own); named == None {
			return ""
		}
		return named
	}
	p.Ledger, p.Messaging = level(p.Ledger, change.Ledger), level(p.Messaging, change.Messaging)
	p.Marketplace, p.Audit = level(p.Marketplace, change.Marketplace), level(p.Audit, change.Audit)
	return p
}

// Within reports whether p grants nothing that other does not grant.
func (p Permissions) Within(other Permissions) bool {
	return (!p.Operator || other.Operator) &&
		other.Level(Ledger).Allows(p.Ledger) && other.Level(Messaging).Allows(p.Messaging) &&
		other.Level(Marketplace).Allows(p.Marketplace) && other.Level(Audit).Allows(p.Audit)
}

// Actor is the caller. The zero Actor is the public.
type Actor struct {
	Type        string // user, api_key, provider or system; empty: the public
	ID          string
	Session     uuid.UUID // session of a user who signed in
	Workspace   uuid.UUID // workspace of the request
	Permissions Permissions
}

// String returns the actor's name in events.
func (a Actor) String() string {
	if a.Type == "" {
		return "public"
	}
	return fmt.Sprintf("%s:%s", a.Type, a.ID)
}

// May reports whether the actor has at least this level in the area.
func (a Actor) May(area Area, level Level) bool { return a.Permissions.Level(area).Allows(level) }
