// Package audit records changes of the log's own proofs as events: a new key that signs checkpoints, and an accepted restore that lost
// signed events.
package audit

import (
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
)

// Event is an event about the log's proofs.
type Event = event.Event[State]

// Kind is the kind of the stream audit-log.
var Kind = event.NewKind("audit",
	event.Of[KeyRotated]("AuditKeyRotated", 1),
	event.Of[RestoreAccepted]("CheckpointRestoreAccepted", 1),
)

// Log is the id of the kind's only stream.
const Log = "log"

// Errors that commands return.
var (
	ErrOtherKey  = fault.New(fault.Conflict, "Another key signs now")
	ErrOldKey    = fault.New(fault.Conflict, "This key has signed before: a replaced key cannot sign again")
	errNoReason  = fault.Wrong("reason", "is required")
	errNoFinding = fault.New(fault.Conflict, "The log has everything that was ever signed: there is nothing to accept")
)

// State is the state for decisions about the proofs.
type State struct {
	Key      string   // current signing key; empty: the first key, which no event contains
	Former   []string // keys that no longer sign
	Accepted int64    // number of the newest abandoned checkpoint
}

// KeyRotated records a new key for signing checkpoints. Keys are verifier keys in the signed-note format (C2SP signed-note): name, key id
// and public key in one text. Both keys sign the first checkpoint that covers this event.
type KeyRotated struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// Evolve implements [event.Event].
func (e KeyRotated) Evolve(s State) State {
	s.Key, s.Former = e.To, append(slices.Clip(s.Former), e.From)
	return s
}

// Tree is a state of the log in a checkpoint.
type Tree struct {
	Size uint64 `json:"size"` // number of events
	Root []byte `json:"root"` // RFC 6962's Merkle tree hash, in base64
}

// RestoreAccepted records that a restore lost events of some checkpoints, and that the log continues without the events. These checkpoints
// are abandoned: they stay listed, but the log is no longer compared with them. The event explains the loss to auditors.
type RestoreAccepted struct {
	Kept       Tree   `json:"kept"`        // tree of the newest checkpoint that the log contains; size 0: it contains none
	Newest     Tree   `json:"newest"`      // tree of the newest abandoned checkpoint
	Abandoned  int64  `json:"abandoned"`   // number of abandoned checkpoints
	LastNumber int64  `json:"last_number"` // number of the newest checkpoint of all
	Reason     string `json:"reason"`
}

// Evolve implements [event.Event].
func (e RestoreAccepted) Evolve(s State) State {
	s.Accepted = e.LastNumber
	return s
}

// RotateKey replaces the signing key.
type RotateKey KeyRotated

// Decide requires a reason, and a key that has not signed before.
func (c RotateKey) Decide(s State) ([]Event, error) {
	switch {
	case c.Reason == "":
		return nil, errNoReason
	case s.Key == c.To:
		return nil, nil
	case s.Key != "" && s.Key != c.From:
		return nil, ErrOtherKey
	case c.From == c.To || slices.Contains(s.Former, c.To):
		return nil, ErrOldKey
	}
	return []Event{KeyRotated(c)}, nil
}

// AcceptRestore lets the log continue without signed events.
type AcceptRestore RestoreAccepted

// Decide requires a reason, and lost events.
func (c AcceptRestore) Decide(s State) ([]Event, error) {
	switch {
	case c.Reason == "":
		return nil, errNoReason
	case c.Abandoned == 0:
		return nil, errNoFinding
	case c.LastNumber <= s.Accepted:
		return nil, nil
	}
	return []Event{RestoreAccepted(c)}, nil
}
