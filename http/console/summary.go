package console

import (
	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"bahi/domain/fault"
	ledgers "bahi/domain/ledger"
	"bahi/domain/unit"
	"bahi/http/api"
	books "bahi/readmodels/ledger"
)

// allBooks is what the books of a workspace amount to.
type allBooks struct {
	past

	Workspace uuid.UUID
	Today     unit.Date
	Kinds     []kindOfBooks
}

// kindOfBooks is what the accounts of one ledger amount to.
type kindOfBooks struct {
	books.Summed

	Title string
	Metal bool
}

// CashNet returns what we owe in cash, less what is owed to us.
func (k kindOfBooks) CashNet() decimal.Decimal { return k.CashAbove.Sub(k.CashBelow.Decimal) }

// FineNet is CashNet in metal.
func (k kindOfBooks) FineNet() decimal.Decimal { return k.FineAbove.Sub(k.FineBelow.Decimal) }

func (v *visit) summary() (p page, err error) {
	p = page{template: "summary", title: "All books"}
	var a allBooks
	if a.Workspace, err = uuid.Parse(v.r.PathValue("workspace")); err != nil {
		return p, errNoPage
	}
	if a.past, err = v.past(); err != nil {
		return p, err
	}
	if len(a.Wrong) > 0 {
		p.status, p.body = api.StatusOf(fault.Invalid), a
		return p, nil
	}
	if a.Today = unit.DateOf(v.Now().In(v.Zone)); a.as.Of != nil {
		a.Today = *a.as.Of
	}
	found, err := v.Books.Summary(v.r.Context(), a.Workspace, a.Today, a.as)
	of := map[string]books.Summed{}
	for _, one := range found {
		of[one.Ledger] = one
	}
	for _, l := range ledgers.All {
		a.Kinds = append(a.Kinds, kindOfBooks{of[l.Name], l.Title, l.Metal})
	}
	p.body = a
	return p, err
}
