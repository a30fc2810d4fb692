package ledgerhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/shopspring/decimal"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/http/pdf"
	"bahi/http/sheet"
	"bahi/readmodels/ledgerview"
)

// daybookQuery selects days.
type daybookQuery struct {
	From   api.Optional[unit.Date] `query:"from"   doc:"First day; absent: today, or the last day if that is earlier"`
	To     api.Optional[unit.Date] `query:"to"     doc:"Last day; absent: the later of from and today"`
	Format string                  `query:"format" enum:"json,pdf,xlsx" default:"json" doc:"Format of the response"`
}

// days returns the selected days (CONTRACT.md L9).
func (q daybookQuery) days(today unit.Date) (from, to unit.Date, err error) {
	switch from, to := q.From.Get(), q.To.Get(); {
	case from == nil && to == nil:
		return today, today, nil
	case from == nil:
		return *to, *to, nil
	case to == nil:
		return *from, max(*from, today), nil
	case *from > *to:
		return 0, 0, fault.Wrong("from", "must not be after to")
	default:
		return *from, *to, nil
	}
}

// daybook has the rows of all ledgers by day at one position of the log, known as rojmel in India. Its cash is the money in the bank
// accounts. Cash in hand is one of these accounts.
type daybook struct {
	From        unit.Date      `json:"from" doc:"First day"`
	To          unit.Date      `json:"to" doc:"Last day"`
	Position    event.Position `json:"position" doc:"Position of the log up to which the response is complete"`
	OpeningCash unit.Sum       `json:"opening_cash" doc:"Opening cash of all bank accounts in rupees"`
	Days        []daybookDay   `json:"days" doc:"Days with rows"`
	ClosingCash unit.Sum       `json:"closing_cash" doc:"Cash at the end, in rupees"`
}

// daybookDay is one day.
type daybookDay struct {
	Date        unit.Date    `json:"date" doc:"The day"`
	OpeningCash unit.Sum     `json:"opening_cash" doc:"Cash at the beginning, in rupees"`
	Rows        []DaybookRow `json:"rows" doc:"Rows of the day"`
	Totals      []DayTotals  `json:"totals" doc:"Totals of each ledger with rows on this day"`
	ClosingCash unit.Sum     `json:"closing_cash" doc:"Cash at the end, in rupees"`
}

// DaybookRow is a row with its account.
type DaybookRow struct {
	Kind        string `json:"kind" doc:"Ledger"`
	AccountID   int64  `json:"account_id" doc:"ID of the account"`
	AccountName string `json:"account_name" doc:"Name of the account"`
	Row         any    `json:"row" doc:"Row in the form of its ledger, without balances"`
}

// drawingDaybook is a daybook during output.
type drawingDaybook struct {
	*Routes

	paper paper

	from, to unit.Date
	opening  unit.Sum
}

// daybook registers the daybook.
func (r *Routes) daybook() {
	op := ledgerOp(api.Op{
		ID: "get-daybook", Method: "GET", Path: "/books/daybook", Limit: limitPDF, Reads: []string{"books"},
		Summary: "Read the rows of all ledgers by day, with totals. Each day has the opening and closing cash of the bank accounts.",
	})
	api.Download(r.API, op, map[string]any{"application/json": daybook{}, pdfType: nil, sheet.XLSX: nil},
		func(ctx context.Context, in *daybookQuery) (c api.Content, err error) {
			d := drawingDaybook{Routes: r}
			if d.from, d.to, err = in.days(r.today()); err != nil {
				return c, err
			}
			if d.paper, err = r.paper(ctx, ledgerview.As{}); err != nil {
				return c, err
			}
			d.opening, err = r.Views.CashBefore(ctx, api.At(ctx), workspace(ctx), bank.Ledger, d.from, d.paper.as)
			return formats{d.writeJSON, d.writePDF, d.writeSheet}.content(in.Format, fmt.Sprintf("daybook-%s-%s", d.from, d.to)), err
		})
}

// closed is the end of a day in a daybook.
type closed struct {
	totals []DayTotals
	cash   unit.Sum
}

// each reads the daybook once. It calls begin and end around the rows of each day.
func (d drawingDaybook) each(ctx context.Context, begin func(day unit.Date, cash unit.Sum) error, row func(ledgerview.Entered) error,
	end func(unit.Date, closed) error) (cash unit.Sum, err error) {
	var (
		day     unit.Date
		sums    map[string]ledgerview.Turnover
		closing = func() error {
			if sums == nil {
				return nil
			}
			c := closed{cash: cash}
			for _, l := range ledger.All {
				if sum, moved := sums[l.Name]; moved {
					c.totals = append(c.totals, dayTotals(l, sum))
				}
			}
			return end(day, c)
		}
	)
	cash = d.opening
	days := ledgerview.Selection{As: d.paper.as, From: &d.from, To: &d.to}
	err = d.Views.EachEntered(ctx, api.At(ctx), workspace(ctx), days, func(e ledgerview.Entered) error {
		if sums == nil || e.Date != day {
			if err := closing(); err != nil {
				return err
			}
			day, sums = e.Date, map[string]ledgerview.Turnover{}
			if err := begin(day, cash); err != nil {
				return err
			}
		}
		sums[e.Ledger] = sums[e.Ledger].Plus(e.Turnover)
		if e.Ledger == bank.Ledger.Name {
			cash = unit.Sum{Decimal: cash.Add(e.CashIn.Decimal).Sub(e.CashOut.Decimal)}
		}
		return row(e)
	})
	if err == nil {
		err = closing()
	}
	return cash, err
}

// writeJSON writes a [daybook] while it reads the rows.
func (d drawingDaybook) writeJSON(ctx context.Context, w io.Writer) error {
	var failed error
	put := func(format string, values ...any) {
		texts := make([]any, len(values))
		for i, v := range values {
			text, err := json.Marshal(v)
			if err != nil && failed == nil {
				failed = err
			}
			texts[i] = text
		}
		if failed == nil {
			_, failed = fmt.Fprintf(w, format, texts...)
		}
	}
	put(`{"from":%s,"to":%s,"position":%s,"opening_cash":%s,"days":[`, d.from, d.to, d.paper.drawn.Position, d.opening)
	betweenDays, betweenRows := "", ""
	cash, err := d.each(ctx, func(day unit.Date, cash unit.Sum) error {
		put(betweenDays+`{"date":%s,"opening_cash":%s,"rows":[`, day, cash)
		betweenDays, betweenRows = ",\n", ""
		return failed
	}, func(e ledgerview.Entered) error {
		put(betweenRows+`%s`, daybookRow(e))
		betweenRows = ",\n"
		return failed
	}, func(_ unit.Date, c closed) error {
		put(`],"totals":%s,"closing_cash":%s}`, c.totals, c.cash)
		return failed
	})
	if err != nil {
		return err
	}
	put("],\"closing_cash\":%s}\n", cash)
	return failed
}

func daybookRow(e ledgerview.Entered) DaybookRow {
	return rowOf(e.Ledger, e.Name, e.ID, &e.Revision, e.Row.Row)
}

// rowOf returns a row of a ledger with its account. Only the schema of a row depends on the types of its entries.
func rowOf(kind, account string, id int64, revision *int64, r book.Row) DaybookRow {
	return DaybookRow{Kind: kind, AccountID: r.Account, AccountName: account, Row: shownRow[bank.Entry, bank.Entry](id, revision, r)}
}

// writeSheet writes a line for each entry, and lines for the opening and closing cash of each day. The last line has the
// position of the log and its day.
func (d drawingDaybook) writeSheet(ctx context.Context, w io.Writer) error {
	columns := []string{"line", "date", "kind", "account_id", "account_name", "id", "text", "cash_in", "cash_out", "crystal_in",
		"crystal_out", "cash"}
	return sheet.Write(sheet.XLSX)(w, sheet.Table{Name: "Daybook", Columns: columns, Rows: func(take func([]any) error) error {
		_, err := d.each(ctx, func(day unit.Date, cash unit.Sum) error {
			return take([]any{"opening", day, nil, nil, nil, nil, nil, nil, nil, nil, nil, cash.Decimal})
		}, func(e ledgerview.Entered) error {
			return eachLine(e, func(side pdf.Side, l pdf.Line) error {
				line := []any{names[side], e.Date, e.Ledger, e.Account, e.Name, e.ID, l.Text, nil, nil, nil, nil, nil}
				for i, amount := range l.Amounts {
					line[6+2*i+int(side)] = amount
				}
				return take(line)
			})
		}, func(day unit.Date, c closed) error {
			for _, t := range c.totals {
				in, out := t.amounts()
				line := []any{"total", day, t.Kind, nil, nil, nil, nil, in[0], out[0], nil, nil, nil}
				if len(in) > 1 {
					line[9], line[10] = in[1], out[1]
				}
				if err := take(line); err != nil {
					return err
				}
			}
			return take([]any{"closing", day, nil, nil, nil, nil, nil, nil, nil, nil, nil, c.cash.Decimal})
		})
		if err != nil {
			return err
		}
		drawn := d.paper.drawn
		return take([]any{"drawn_from", unit.DateOf(drawn.RecordedAt), nil, nil, nil, int64(drawn.Position), nil, nil, nil, nil, nil, nil})
	}})
}

// eachLine calls take for each printed line of a row.
func eachLine(e ledgerview.Entered, take func(pdf.Side, pdf.Line) error) error {
	row, err := drawn(ledger.Named(e.Ledger), e.Row, pdf.Both)
	if err != nil {
		return err
	}
	for _, side := range []struct {
		side  pdf.Side
		lines []pdf.Line
	}{{pdf.In, row.In}, {pdf.Out, row.Out}} {
		for _, l := range side.lines {
			if err := take(side.side, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// amounts returns the totals of each side: cash, and metal if the ledger has it.
func (t DayTotals) amounts() (in, out []decimal.Decimal) {
	in, out = []decimal.Decimal{t.CashIn.Decimal}, []decimal.Decimal{t.CashOut.Decimal}
	if t.CrystalIn != nil {
		in, out = append(in, t.CrystalIn.Decimal), append(out, t.CrystalOut.Decimal)
	}
	return in, out
}

// writePDF draws the daybook.
func (d drawingDaybook) writePDF(ctx context.Context, w io.Writer) error {
	paper := pdf.NewDaybook(w, d.paper.title, []string{"From " + day(d.from) + " to " + day(d.to)}, d.paper.drawn)
	cash, err := d.each(ctx, func(day unit.Date, cash unit.Sum) error { return paper.Day(day.Time(), cash.Decimal) },
		func(e ledgerview.Entered) error {
			l := ledger.Named(e.Ledger)
			row, err := drawn(l, e.Row, pdf.Both)
			if err != nil {
				return err
			}
			return paper.Row(l.Title+": "+e.Name, row)
		}, func(_ unit.Date, c closed) error {
			for _, t := range c.totals {
				in, out := t.amounts()
				if err := paper.Total(ledger.Named(t.Kind).Title, in, out); err != nil {
					return err
				}
			}
			return paper.Close(c.cash.Decimal)
		})
	if err != nil {
		return err
	}
	return paper.Finish(d.opening.Decimal, cash.Decimal)
}

func day(d unit.Date) string { return d.Time().Format("02 Jan 2006") }
