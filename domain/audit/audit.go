// Package audit is what happens to the log's own proofs: its checkpoints get another key, or a restore is
// accepted that lost events for which there are checkpoints. Both are events, so that nobody can do either
// without leaving a trace in the log that the proofs are about.
package audit

import (
	"slices"

	"bahi/domain/event"
	"bahi/domain/fault"
)

type (
	// Event is one of the log's proofs.
	Event = event.Event[State]
	// Command is what an operator asks of them.
	Command = event.Command[State]
)

// Kind names what the stream audit-log holds.
var Kind = event.NewKind("audit",
	event.Of[KeyRotated]("AuditKeyRotated", 1),
	event.Of[RestoreAccepted]("CheckpointRestoreAccepted", 1),
)

// Log is the id of the only stream of the kind.
const Log = "log"

// What is refused.
var (
	ErrOtherKey  = fault.New(fault.Conflict, "Another key signs by now")
	ErrOldKey    = fault.New(fault.Conflict, "This key has signed before: a key that was replaced does not come back")
	errNoReason  = fault.Fields(fault.Field{Field: "reason", Message: "is required"})
	errNoFinding = fault.New(fault.Conflict, "The log has everything that was ever signed: there is nothing to accept")
)

// State is what a decision about the proofs needs.
type State struct {
	Key      string   // that signs; empty: the first one, which no event names
	Former   []string // keys that do not sign any more
	Accepted int64    // number of the newest checkpoint that was abandoned
}

// KeyRotated tells that checkpoints are signed with another key from now on. Keys are verifier keys of the
// signed-note format (C2SP signed-note): name, key id and public key in one text. The first checkpoint that
// covers this event is signed with both.
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

// Tree is a state of the log as a checkpoint has it.
type Tree struct {
	Size uint64 `json:"size"` // events
	Root []byte `json:"root"` // RFC 6962's Merkle tree hash; in base64
}

// RestoreAccepted tells that the log does not have what some checkpoints were signed for, and goes on without
// it: a restore that lost the log's tail. Those checkpoints are abandoned: they stay on show, and the log is
// not held against them any more. Whoever keeps one elsewhere finds this event to ask about.
type RestoreAccepted struct {
	Kept       Tree   `json:"kept"`        // of the newest checkpoint that the log still has; size 0: of none
	Newest     Tree   `json:"newest"`      // of the newest that was abandoned
	Abandoned  int64  `json:"abandoned"`   // how many were
	LastNumber int64  `json:"last_number"` // of the newest checkpoint that there was
	Reason     string `json:"reason"`
}

// Evolve implements [event.Event].
func (e RestoreAccepted) Evolve(s State) State {
	s.Accepted = e.LastNumber
	return s
}

// RotateKey lets another key sign.
type RotateKey KeyRotated

// Decide wants a reason, and a key that has not signed before.
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

// AcceptRestore lets the log go on without events that there are checkpoints for.
type AcceptRestore RestoreAccepted

// Decide wants a reason, and something to accept.
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
