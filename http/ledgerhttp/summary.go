package ledgerhttp

import (
	"context"

	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels/ledgerview"
)

// summary has the balances of all ledgers at one position of the log.
type summary struct {
	AsOf     *unit.Date     `json:"as_of" doc:"null: all rows"`
	Position event.Position `json:"position" doc:"Position of the log up to which the response is complete"`
	Kinds    []KindSummary  `json:"kinds" doc:"Totals by ledger"`
	Day      daySummary     `json:"day" doc:"Turnover of the day"`
}

// KindSummary has the balances of the accounts of one ledger.
type KindSummary struct {
	Kind     string `json:"kind" doc:"Ledger"`
	Accounts int64  `json:"accounts" doc:"Number of accounts"`
	Cash     Owed   `json:"cash" doc:"Cash in rupees"`
	Crystal  *Owed  `json:"crystal,omitempty" doc:"Metal of all its accounts in grams of fine weight, for all metals together; for polishers in grams of gross weight"`
}

// Owed has the amounts owed by the workshop and to the workshop, in one unit.
type Owed struct {
	WeOwe   *unit.Sum `json:"we_owe,omitempty" doc:"Sum of the balances above 0, in rupees or grams; absent for bank accounts"`
	TheyOwe *unit.Sum `json:"they_owe,omitempty" doc:"Sum of the balances below 0, in rupees or grams, as a positive number"`
	Net     unit.Sum  `json:"net" doc:"we_owe minus they_owe, in rupees or grams"`
}

// daySummary has the turnover of one day.
type daySummary struct {
	Date  unit.Date   `json:"date" doc:"The day"`
	Kinds []DayTotals `json:"kinds" doc:"Totals by ledger"`

	Newest []DaybookRow `json:"newest,omitempty" doc:"Newest rows of the day, newest first; the parameter newest sets their number"`
}

// DayTotals has the turnover of one ledger on one day.
type DayTotals struct {
	Kind       string    `json:"kind" doc:"Ledger"`
	Rows       *int64    `json:"rows,omitempty" doc:"Number of rows"`
	CashIn     unit.Sum  `json:"cash_in" doc:"IN of the day, in rupees"`
	CashOut    unit.Sum  `json:"cash_out" doc:"OUT of the day, in rupees"`
	CrystalIn  *unit.Sum `json:"crystal_in,omitempty" doc:"IN of the day, in fine grams"`
	CrystalOut *unit.Sum `json:"crystal_out,omitempty" doc:"OUT of the day, in fine grams"`
}

// summary registers the summary of the books.
func (r *Routes) summary() {
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "get-books-summary", Method: "GET", Path: "/books/summary",
		Summary: "Read the balances of all books and the turnover of a day", Reads: []string{"books"},
	}), func(ctx context.Context, in *struct {
		AsOf
		Newest int `query:"newest" minimum:"1" maximum:"100" doc:"Number of newest rows of the day to return; absent: none"`
	}) (*api.Body[summary], error) {
		as, err := r.as(ctx, in.AsOf)
		if err != nil {
			return nil, err
		}
		s := summary{AsOf: as.Of, Day: daySummary{Date: r.today()}}
		if as.Of != nil {
			s.Day.Date = *as.Of
		}
		found, err := r.Views.Summary(ctx, api.At(ctx), workspace(ctx), s.Day.Date, in.Newest, as)
		if err != nil {
			return nil, err
		}
		if s.Position, _ = api.At(ctx).Position(); as.KnownAt != nil {
			s.Position = *as.KnownAt
		}
		of := map[string]ledgerview.Summed{}
		for _, one := range found.Ledgers {
			of[one.Ledger] = one
		}
		for _, e := range found.Newest {
			s.Day.Newest = append(s.Day.Newest, daybookRow(e))
		}
		for _, l := range ledger.All {
			one := of[l.Name]
			s.Kinds = append(s.Kinds, kindSummary(l, one))
			day := dayTotals(l, one.Turnover)
			day.Rows = &one.Rows
			s.Day.Kinds = append(s.Day.Kinds, day)
		}
		return &api.Body[summary]{Body: s}, nil
	})
}

// today returns the current day in the workshop's time zone.
func (r *Routes) today() unit.Date { return unit.DateOf(r.Now().In(r.Zone)) }

func kindSummary(l *book.Ledger, s ledgerview.Summed) KindSummary {
	k := KindSummary{Kind: l.Name, Accounts: s.Accounts, Cash: owed(s.CashAbove, s.CashBelow)}
	if !l.Metal {
		k.Cash = Owed{Net: k.Cash.Net} // cash in a bank is held, not owed
		return k
	}
	k.Crystal = new(owed(s.FineAbove, s.FineBelow))
	return k
}

func owed(above, below unit.Sum) Owed {
	return Owed{WeOwe: &above, TheyOwe: &below, Net: unit.Sum{Decimal: above.Sub(below.Decimal)}}
}

func dayTotals(l *book.Ledger, m ledgerview.Turnover) DayTotals {
	t := DayTotals{Kind: l.Name, CashIn: m.CashIn, CashOut: m.CashOut}
	if l.Metal {
		t.CrystalIn, t.CrystalOut = &m.FineIn, &m.FineOut
	}
	return t
}
