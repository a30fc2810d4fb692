package book

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/unit"
)

// maxName is in characters (CONTRACT.md D19).
const maxName = 120

// Account is what decisions about an account of ledger L need. L only keeps the stored names of the
// five ledgers apart.
type Account[L any] struct {
	Name    string
	Opened  event.Position // 0: there is no such account
	Deleted event.Position // 0: it stands
}

// Open says whether rows may be posted to the account at this position of the log.
func (a Account[L]) Open(at event.Position) bool {
	return a.Opened != 0 && a.Opened < at && (a.Deleted == 0 || at < a.Deleted)
}

// AccountOpened begins an account.
type AccountOpened[L any] struct {
	Name string `json:"name"`
}

// AccountRenamed gives it another name.
type AccountRenamed[L any] struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// AccountDeleted ends the account and all its rows.
type AccountDeleted[L any] struct {
	// EarliestRow is the date of its oldest row when it was decided, absent when there was none.
	// The event is void where that date is locked.
	EarliestRow *unit.Date `json:"earliest_row,omitempty"`
	// RowsAsOf is the position up to which that is known. The event is void where the lock moved after
	// it, too: an older row may have been posted and locked since.
	RowsAsOf event.Position `json:"rows_as_of,omitempty"`
}

// AccountDeletionRefused tells that the deletion at a position lost a race and never held.
type AccountDeletionRefused[L any] struct {
	Position event.Position `json:"position"`
	Why      string         `json:"why"`
}

// EvolveAt records where the account began.
func (e AccountOpened[L]) EvolveAt(a Account[L], at event.Position) Account[L] {
	a.Name, a.Opened = e.Name, at
	return a
}

// Evolve serves those who do not ask for positions.
func (e AccountOpened[L]) Evolve(a Account[L]) Account[L] { return e.EvolveAt(a, 1) }

// Evolve takes the new name.
func (e AccountRenamed[L]) Evolve(a Account[L]) Account[L] { a.Name = e.To; return a }

// EvolveAt records where the account ended.
func (e AccountDeleted[L]) EvolveAt(a Account[L], at event.Position) Account[L] {
	a.Deleted = at
	return a
}

// Evolve serves those who do not ask for positions.
func (e AccountDeleted[L]) Evolve(a Account[L]) Account[L] { return e.EvolveAt(a, a.Opened+1) }

// Evolve changes nothing: what was refused was void already.
func (AccountDeletionRefused[L]) Evolve(a Account[L]) Account[L] { return a }

// AccountChange is an account's event of whatever ledger, for those who fold all of them.
type AccountChange interface {
	AccountChange() AccountChanged
}

// AccountChanged is what an event does to its account; one of the first three is set.
type AccountChanged struct {
	Opened, Renamed string
	Deleted         bool
	EarliestRow     *unit.Date
	RowsAsOf        event.Position
}

// AccountChange implements [AccountChange].
func (e AccountOpened[L]) AccountChange() AccountChanged { return AccountChanged{Opened: e.Name} }

// AccountChange implements [AccountChange].
func (e AccountRenamed[L]) AccountChange() AccountChanged { return AccountChanged{Renamed: e.To} }

// AccountChange implements [AccountChange].
func (e AccountDeleted[L]) AccountChange() AccountChanged {
	return AccountChanged{Deleted: true, EarliestRow: e.EarliestRow, RowsAsOf: e.RowsAsOf}
}

// AccountChange implements [AccountChange].
func (AccountDeletionRefused[L]) AccountChange() AccountChanged { return AccountChanged{} }

// OpenAccount opens an account under a new id.
type OpenAccount[L any] struct {
	Name string `json:"name"`
}

// Decide refuses an empty or overlong name, and an id that is taken.
func (c OpenAccount[L]) Decide(a Account[L]) ([]event.Event[Account[L]], error) {
	name, err := cleanName(c.Name)
	if err != nil {
		return nil, err
	}
	if a.Opened != 0 {
		return nil, fault.New(fault.Conflict, "Account exists already")
	}
	return []event.Event[Account[L]]{AccountOpened[L]{Name: name}}, nil
}

// RenameAccount gives the account another name. Missing is what to answer when there is no such account.
type RenameAccount[L any] struct {
	Name    string `json:"name"`
	Missing error  `json:"-"`
}

// Decide answers Missing for an account that does not stand.
func (c RenameAccount[L]) Decide(a Account[L]) ([]event.Event[Account[L]], error) {
	name, err := cleanName(c.Name)
	switch {
	case a.Opened == 0 || a.Deleted != 0:
		return nil, c.Missing
	case err != nil:
		return nil, err
	case name == a.Name:
		return nil, nil
	}
	return []event.Event[Account[L]]{AccountRenamed[L]{From: a.Name, To: name}}, nil
}

// DeleteAccount ends the account and all its rows.
type DeleteAccount[L any] struct {
	EarliestRow *unit.Date     // its oldest row, from the books
	RowsAsOf    event.Position // as of which they say so
	Missing     error
}

// Decide answers Missing for an account that does not stand. Whether the oldest row is locked is for
// the rules between streams.
func (c DeleteAccount[L]) Decide(a Account[L]) ([]event.Event[Account[L]], error) {
	if a.Opened == 0 || a.Deleted != 0 {
		return nil, c.Missing
	}
	return []event.Event[Account[L]]{AccountDeleted[L]{EarliestRow: c.EarliestRow, RowsAsOf: c.RowsAsOf}}, nil
}

func cleanName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", fault.Fields(fault.Field{Field: "name", Message: "must not be empty"})
	case utf8.RuneCountInString(name) > maxName:
		return "", fault.Fields(fault.Field{Field: "name", Message: "at most 120 characters"})
	case !clean(name):
		return "", fault.Fields(fault.Field{Field: "name", Message: "control characters are not allowed"})
	}
	return name, nil
}

// clean says whether text can be stored and printed: Postgres takes no NUL, other control characters
// only hide something, and those that turn the direction of writing can disguise a statement.
func clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	})
}
