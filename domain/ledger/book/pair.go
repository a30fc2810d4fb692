package book

// What moves from one account to another is two rows, which name each other. A pairing changes no balance, so it is allowed on locked days.

// RowPaired records the row of another account that takes what this row gives, or gives what it takes.
type RowPaired struct {
	With    int64 `json:"with"`
	Account int64 `json:"account"` // of the other row
}

// RowUnpaired ends the pairing.
type RowUnpaired struct{}

// Evolve notes the other row.
func (e RowPaired) Evolve(r Row) Row { r.PairedWith = e.With; return r }

// Evolve drops the other row.
func (RowUnpaired) Evolve(r Row) Row { r.PairedWith = 0; return r }
