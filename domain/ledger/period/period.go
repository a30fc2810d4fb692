// Package period has the closed periods of a workspace's books. Each has a seal with the digest of all closing balances.
// The stream's id is the workspace's.
package period

import (
	"slices"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// Kind registers the events of streams period-<workspace>. Stored names are permanent.
var Kind = event.NewKind("period",
	event.Of[Closed]("PeriodClosed", 1),
	event.Of[Reopened]("PeriodReopened", 1),
)

// ErrNotFound reports a day on which no closed period ends.
var ErrNotFound = fault.New(fault.NotFound, "No closed period ends on this day")

// State is the closed periods, oldest first, without reopened ones.
type State struct{ Seals []Closed }

// Through returns the last day of the newest closed period, nil if none is closed.
func (s State) Through() *unit.Date {
	if len(s.Seals) == 0 {
		return nil
	}
	return &s.Seals[len(s.Seals)-1].Through
}

// Of returns the closed period that ends on a day, or [ErrNotFound].
func (s State) Of(through unit.Date) (Closed, error) {
	for _, seal := range s.Seals {
		if seal.Through == through {
			return seal, nil
		}
	}
	return Closed{}, ErrNotFound
}

// Seal has the digest of the closing balances and the state of the log at the closing of a period. It does not contain the number of
// accounts, because each party can read the seal in the proof of a statement.
type Seal struct {
	Digest   string         `json:"digest" doc:"Digest of all closing balances: SHA-256 in hex"`
	LogSize  uint64         `json:"log_size" doc:"Number of events in the log up to the position"`
	LogRoot  string         `json:"log_root" doc:"Root of the Merkle tree over these events, in base64"`
	Position event.Position `json:"position" doc:"Position of the log at which the balances were read"`
}

// Closed records a closed period.
type Closed struct {
	From    *unit.Date `json:"from" doc:"First day; null: all earlier rows belong to the period"`
	Through unit.Date  `json:"through" doc:"Last day"`
	Seal
}

// Reopened records that the newest closed period was reopened. Its seal stays in the log.
type Reopened struct {
	From    *unit.Date `json:"from"`
	Through unit.Date  `json:"through"`
	Digest  string     `json:"digest"`
	Reason  string     `json:"reason"`
}

// Evolve adds the seal.
func (e Closed) Evolve(s State) State { s.Seals = append(slices.Clip(s.Seals), e); return s }

// Evolve removes the newest seal.
func (Reopened) Evolve(s State) State { s.Seals = s.Seals[:max(len(s.Seals)-1, 0)]; return s }

// Close closes the period that follows the newest closed one.
type Close struct {
	Through unit.Date `json:"through" doc:"Last day of the period, before today"`
	Today   unit.Date `json:"-"`
	Seal    Seal      `json:"-"`
}

// Decide refuses a period that ends today or later, or that does not end after the newest closed period.
func (c Close) Decide(s State) ([]event.Event[State], error) {
	if _, err := s.Of(c.Through); err == nil {
		return nil, nil
	}
	newest := s.Through()
	switch {
	case c.Through >= c.Today:
		return nil, fault.Wrong("through", "must be before today")
	case newest != nil && c.Through < *newest:
		return nil, fault.Newf(fault.Conflict, "A period is already closed through %s", *newest)
	}
	closed := Closed{Through: c.Through, Seal: c.Seal}
	if newest != nil {
		closed.From = new(*newest + 1)
	}
	return []event.Event[State]{closed}, nil
}

// Reopen reopens the newest closed period.
type Reopen struct {
	Through unit.Date
	Reason  string
}

// Decide refuses an older period and a missing reason.
func (c Reopen) Decide(s State) ([]event.Event[State], error) {
	seal, err := s.Of(c.Through)
	switch newest := s.Through(); {
	case err != nil:
		return nil, err
	case c.Through != *newest:
		return nil, fault.Newf(fault.Conflict, "Only the newest closed period can be reopened: the one through %s", *newest)
	case strings.TrimSpace(c.Reason) == "":
		return nil, fault.New(fault.Invalid, "Reopening a period requires a reason (header Bahi-Reason)")
	}
	return []event.Event[State]{Reopened{From: seal.From, Through: seal.Through, Digest: seal.Digest, Reason: c.Reason}}, nil
}
