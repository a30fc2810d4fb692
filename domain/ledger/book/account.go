package book

import (
	"fmt"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/person"
	"bahi/domain/unit"
)

// maxName is the maximum length of a name in characters (CONTRACT.md D19).
const maxName = 120

// Account is the state of an account that decisions require.
type Account struct {
	Name    string
	Type    *int           // nil if the accounts of the ledger have no types
	Metal   string         // metal of entries that name none; "": the metal of the workspace
	Opened  event.Position // 0: the account does not exist
	Deleted event.Position // 0: the account is not deleted
}

// Open reports whether the account was opened and not deleted.
func (a Account) Open() bool { return a.Opened != 0 && a.Deleted == 0 }

// AccountOpened records a new account.
type AccountOpened struct {
	Name string `json:"name"`
	Type *int   `json:"type,omitempty"`
}

// AccountRenamed records a new name.
type AccountRenamed struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// AccountTypeChanged records a new type.
type AccountTypeChanged struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// AccountMetalChanged records a new metal.
type AccountMetalChanged struct {
	From string `json:"from"` // "": the metal of the workspace
	To   string `json:"to"`
}

// AccountDeleted records the deletion of the account and all its rows.
type AccountDeleted struct {
	EarliestRow *unit.Date `json:"earliest_row,omitempty"` // date of its oldest row, absent if it had none
}

// EvolveAt sets the position at which the account was opened.
func (e AccountOpened) EvolveAt(a Account, at event.Position) Account {
	a.Name, a.Type, a.Opened = e.Name, e.Type, at
	return a
}

// Evolve is EvolveAt for folds without positions.
func (e AccountOpened) Evolve(a Account) Account { return e.EvolveAt(a, 1) }

// Evolve sets the name.
func (e AccountRenamed) Evolve(a Account) Account { a.Name = e.To; return a }

// Evolve sets the type.
func (e AccountTypeChanged) Evolve(a Account) Account { a.Type = &e.To; return a }

// Evolve sets the metal.
func (e AccountMetalChanged) Evolve(a Account) Account { a.Metal = e.To; return a }

// EvolveAt sets the position at which the account was deleted.
func (e AccountDeleted) EvolveAt(a Account, at event.Position) Account {
	a.Deleted = at
	return a
}

// Evolve is EvolveAt for folds without positions.
func (e AccountDeleted) Evolve(a Account) Account { return e.EvolveAt(a, a.Opened+1) }

// OpenAccount opens an account with a new id.
type OpenAccount struct {
	Ledger *Ledger `json:"-"`
	Name   string  `json:"name" doc:"Name of the account"`
	Type   *int    `json:"type,omitempty" doc:"Type of the account, where the ledger has types"`
	Metal  Metal   `json:"metal,omitempty" maxLength:"40" doc:"Metal of the entries that name none, such as gold"`
}

// Decide refuses an empty or too long name, a type that the ledger does not have, and an existing id.
func (c OpenAccount) Decide(a Account) ([]event.Event[Account], error) {
	name, wrong := cleanName(c.Name)
	wrong = append(append(wrong, c.Ledger.checkType(c.Type, true)...), c.Ledger.checkMetal(c.Metal)...)
	switch {
	case len(wrong) > 0:
		return nil, fault.Fields(wrong...)
	case a.Opened != 0:
		return nil, fault.New(fault.Conflict, "Account exists already")
	}
	events := []event.Event[Account]{AccountOpened{Name: name, Type: c.Type}}
	if c.Metal != "" {
		events = append(events, AccountMetalChanged{To: string(c.Metal)})
	}
	return events, nil
}

// ChangeAccount changes the name, type or metal of an account. Absent fields are unchanged.
type ChangeAccount struct {
	Ledger *Ledger `json:"-"`
	Name   *string `json:"name,omitempty" doc:"Name of the account"`
	Type   *int    `json:"type,omitempty" doc:"Type of the account, where the ledger has types"`
	Metal  *Metal  `json:"metal,omitempty" maxLength:"40" doc:"Metal of the entries that name none; empty: the metal of the workspace"`
}

// Decide returns the ledger's NoAccount if the account is not open.
func (c ChangeAccount) Decide(a Account) (events []event.Event[Account], err error) {
	if !a.Open() {
		return nil, c.Ledger.NoAccount
	}
	wrong := c.Ledger.checkType(c.Type, false)
	if c.Name != nil {
		name, faults := cleanName(*c.Name)
		if wrong = append(faults, wrong...); name != a.Name {
			events = append(events, AccountRenamed{From: a.Name, To: name})
		}
	} else if c.Type == nil && c.Metal == nil {
		wrong = []fault.Field{{Field: "name", Message: "is required"}}
	}
	if c.Metal != nil {
		wrong = append(wrong, c.Ledger.checkMetal(*c.Metal)...)
	}
	if len(wrong) > 0 {
		return nil, fault.Fields(wrong...)
	}
	if c.Metal != nil && string(*c.Metal) != a.Metal {
		events = append(events, AccountMetalChanged{From: a.Metal, To: string(*c.Metal)})
	}
	if c.Type != nil && *c.Type != *a.Type {
		events = append(events, AccountTypeChanged{From: *a.Type, To: *c.Type})
	}
	return events, nil
}

// checkType returns the faults of an account's type.
func (l *Ledger) checkType(given *int, wanted bool) []fault.Field {
	switch {
	case given == nil && (l.Types == 0 || !wanted):
		return nil
	case given != nil && *given >= 0 && *given < l.Types:
		return nil
	case l.Types == 0:
		return []fault.Field{{Field: "type", Message: "accounts of this ledger have none"}}
	default:
		return []fault.Field{{Field: "type", Message: fmt.Sprintf("expected a number from 0 to %d", l.Types-1)}}
	}
}

// checkMetal returns the faults of an account's metal.
func (l *Ledger) checkMetal(name Metal) []fault.Field {
	if name != "" && !l.Metal {
		return []fault.Field{{Field: "metal", Message: "accounts of this ledger have none"}}
	}
	return CheckText("metal", Text(name), maxMetal)
}

// DeleteAccount deletes the account and all its rows.
type DeleteAccount struct {
	Ledger      *Ledger
	EarliestRow *unit.Date // date of its oldest row; nil: it has none
	Standing    PostingContext
}

// Decide returns the ledger's NoAccount if the account is not open, and a conflict if the account has a row in a locked
// period.
func (c DeleteAccount) Decide(a Account) ([]event.Event[Account], error) {
	if !a.Open() {
		return nil, c.Ledger.NoAccount
	}
	if c.EarliestRow != nil {
		if err := c.Standing.CheckDates(*c.EarliestRow); err != nil {
			return nil, err
		}
	}
	return []event.Event[Account]{AccountDeleted{EarliestRow: c.EarliestRow}}, nil
}

func cleanName(name string) (string, []fault.Field) {
	name = person.Unmarked(name)
	wrong := CheckText("name", Text(name), maxName)
	if !strings.ContainsFunc(name, person.Visible) {
		wrong = []fault.Field{{Field: "name", Message: "must not be empty"}}
	}
	return name, wrong
}
