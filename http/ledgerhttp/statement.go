package ledgerhttp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/http/pdf"
	"bahi/http/sheet"
	"bahi/readmodels/ledgerview"
)

const pdfType = "application/pdf"

// statement registers the statement of an account under each of its paths.
func (o operations[In, Out]) statement() {
	o.both("statement", o.Ledger+"/statement.pdf")
	if o.Whole != "" {
		o.both("document", o.Whole)
	}
}

func (o operations[In, Out]) both(name, path string) {
	op := o.op(api.Op{
		ID: "get-" + o.l.Name + "-" + name, Method: "GET", Path: path, Summary: "Read a statement of " + o.a() + " as a PDF",
		Limit: limitPDF,
	})
	api.Download(o.API, op, map[string]any{pdfType: nil}, func(ctx context.Context, in *struct {
		ByAccount
		Days
	}) (api.Content, error) {
		sel, err := o.days(ctx, in.Days)
		if err != nil {
			return api.Content{}, err
		}
		return o.Routes.statement(ctx, accountOf(ctx, o.l, in.Account), sel, pdf.Both, forWorkshop)
	})
}

// side registers the PDF of one side of an account.
func (o operations[In, Out]) side() {
	if o.Side == "" {
		return
	}
	op := o.op(api.Op{
		ID: "get-" + o.l.Name + "-side", Method: "GET", Path: o.Side,
		Summary: "Read the IN or the OUT side of " + o.a() + " as a PDF without running balances", Limit: limitPDF,
	})
	api.Download(o.API, op, map[string]any{pdfType: nil}, func(ctx context.Context, in *struct {
		ByAccount
		Days

		Side string `path:"side" enum:"in,out" doc:"Side: in or out"`
	}) (api.Content, error) {
		sel, err := o.days(ctx, in.Days)
		if err != nil {
			return api.Content{}, err
		}
		return o.Routes.statement(ctx, accountOf(ctx, o.l, in.Account), sel, map[string]pdf.Side{"in": pdf.In, "out": pdf.Out}[in.Side],
			forWorkshop)
	})
}

// stated is a statement without its rows.
type stated struct {
	of              ledgerview.AccountKey
	account         ledgerview.Account
	sel             ledgerview.Selection // as known at one position
	side            pdf.Side
	opening, before ledgerview.Balance // before is the sum of the shown side
	recorded        time.Time          // when the event at the position was recorded
}

// stated reads all parts as known at one position. So the statement adds up during concurrent posts, and can be drawn
// again.
func (r *Routes) stated(ctx context.Context, of ledgerview.AccountKey, sel ledgerview.Selection, side pdf.Side) (s stated, err error) {
	sel.Page, sel.PageSize = 1, 0
	s = stated{of: of, side: side}
	if s.account, err = r.Views.Account(ctx, api.At(ctx), of, sel.As); err != nil {
		return s, err
	}
	if s.recorded, err = r.fixed(ctx, &sel.As); err != nil {
		return s, err
	}
	if s.sel = sel; sel.From == nil {
		return s, nil
	}
	if s.opening, err = r.Views.BalanceBefore(ctx, api.At(ctx), of, *sel.From, sel.As); err != nil || side == pdf.Both {
		return s, err
	}
	day := *sel.From
	if sel.Of != nil {
		day = min(day, *sel.Of+1)
	}
	sides, err := r.Views.SidesBefore(ctx, api.At(ctx), of, day, *sel.KnownAt)
	if s.before = sides.In; side == pdf.Out {
		s.before = sides.Out
	}
	return s, err
}

// paper has the state of the books in a document.
type paper struct {
	as    ledgerview.As // as known at one position
	title string
	drawn pdf.Drawn
}

// paper fixes a view of the caller's books at one position.
func (r *Routes) paper(ctx context.Context, as ledgerview.As) (p paper, err error) {
	if _, _, err = r.Views.Lock(ctx, api.At(ctx), workspace(ctx)); err != nil { // gives the position up to which the books are complete
		return p, err
	}
	recorded, err := r.fixed(ctx, &as)
	if p.as = as; err == nil {
		p.title, err = r.title(ctx, workspace(ctx), *as.KnownAt)
	}
	if err == nil {
		p.drawn, err = r.drawnFrom(ctx, *as.KnownAt, recorded)
	}
	return p, err
}

// formats writes a document in each format of the parameter format.
type formats struct {
	json, pdf, xlsx func(context.Context, io.Writer) error
}

// content returns a document in a format.
func (f formats) content(format, name string) api.Content {
	switch format {
	case "pdf":
		return api.Content{Type: pdfType, Name: name + ".pdf", Inline: true, Drawn: true, Write: f.pdf}
	case "xlsx":
		return api.Content{Type: sheet.XLSX, Name: name + ".xlsx", Drawn: true, Write: f.xlsx}
	default:
		return api.Content{Type: "application/json", Drawn: true, Write: f.json}
	}
}

// fixed sets the position of a view to that of the previous reads unless it has one. It returns when the event at the
// position was recorded.
func (r *Routes) fixed(ctx context.Context, as *ledgerview.As) (time.Time, error) {
	if as.KnownAt == nil {
		position, _ := api.At(ctx).Position()
		as.KnownAt = &position
	}
	at, err := r.Log.RecordedAt(ctx, *as.KnownAt)
	return at.In(r.Zone), err
}

// drawnFrom returns the description of the log's state for a document.
func (r *Routes) drawnFrom(ctx context.Context, position event.Position, recorded time.Time) (d pdf.Drawn, err error) {
	d = pdf.Drawn{StoreID: r.Store.String(), Position: uint64(position), RecordedAt: recorded}
	if r.Proofs != nil {
		d.Checkpoint, err = r.Proofs.Upto(ctx, position)
	}
	return d, err
}

// forWorkshop and forParty have the words of balances for the reader of a statement.
var (
	forWorkshop = pdf.Owed{Above: "you owe", Below: "owes you", Zero: "settled"}
	forParty    = pdf.Owed{Above: forWorkshop.Below, Below: forWorkshop.Above, Zero: forWorkshop.Zero}
)

// statement draws a statement for a reader.
func (r *Routes) statement(ctx context.Context, of ledgerview.AccountKey, sel ledgerview.Selection, side pdf.Side, reader pdf.Owed,
	notes ...string) (c api.Content, err error) {
	from, err := r.stated(ctx, of, sel, side)
	if err != nil {
		return c, err
	}
	l := of.Ledger
	sel = from.sel
	title, err := r.title(ctx, of.Workspace, *sel.KnownAt)
	if err != nil {
		return c, err
	}
	s := pdf.Statement{Title: title, Account: from.account.Name, Ledger: l.Title + " ledger", Side: side, Units: units(l),
		Opening: amounts(l, from.opening)}
	if l.Metal && side == pdf.Both {
		you := title
		if reader == forParty {
			you = s.Account
		}
		s.Owed, s.Notes = reader, append(s.Notes, "In the balances, you are "+you+".")
	}
	if s.Drawn, err = r.drawnFrom(ctx, *sel.KnownAt, from.recorded); err != nil {
		return c, err
	}
	if sel.From != nil {
		s.From = sel.From.Time()
	}
	if sel.To != nil {
		s.To = sel.To.Time()
	}
	if sel.Of != nil {
		s.Notes = append(s.Notes, "Rows dated up to "+sel.Of.Time().Format("2 Jan 2006"))
	}
	if side == pdf.Both && s.Drawn.Checkpoint != "" && r.Verifier != "" {
		if s.Code, err = r.code(ctx, from, s.Drawn.Checkpoint); err != nil {
			return c, err
		}
	}
	s.Notes = append(s.Notes, notes...)
	if side != pdf.Both {
		s.Before = amounts(l, from.before)
	}
	return api.Content{
		Type: pdfType, Name: from.name("pdf"), Inline: true, Drawn: true,
		Write: func(ctx context.Context, w io.Writer) error {
			widest, err := r.Views.Extent(ctx, api.At(ctx), of, sel)
			if err != nil {
				return err
			}
			s.Extent = pdf.Extent{
				ID: widest.Last, In: amounts(l, ledgerview.Balance{Cash: widest.CashIn, Fine: widest.FineIn}),
				Out:    amounts(l, ledgerview.Balance{Cash: widest.CashOut, Fine: widest.FineOut}),
				Lowest: amounts(l, widest.Lowest.Above(from.opening)), Highest: amounts(l, widest.Highest.Above(from.opening)),
			}
			s.Rows = func(take func(pdf.Row) error) error {
				_, err := r.Views.EachRow(ctx, api.At(ctx), of, sel, func(row ledgerview.Row) error {
					drawn, err := drawn(l, row, side)
					if err != nil {
						return err
					}
					return take(drawn)
				})
				return err
			}
			if err := pdf.Write(w, s); err != nil {
				return fmt.Errorf("draw the statement of %s %d: %w", l.Name, of.ID, err)
			}
			return nil
		},
	}, nil
}

// name returns the file name.
func (s stated) name(ending string) string {
	return fmt.Sprintf("%s-%d-%s.%s", s.of.Ledger.Name, s.of.ID, names[s.side], ending)
}

// names are the file names of the documents by side.
var names = [...]string{pdf.Both: "statement", pdf.In: "in", pdf.Out: "out"}

// units returns the units of the columns in a ledger's statement.
func units(l *book.Ledger) []pdf.Unit {
	switch {
	case l.Gross:
		return []pdf.Unit{pdf.Rupees, pdf.GrossGrams}
	case l.Metal:
		return []pdf.Unit{pdf.Rupees, pdf.FineGrams}
	default:
		return []pdf.Unit{pdf.Rupees}
	}
}

// amounts returns an amount for each unit.
func amounts(l *book.Ledger, b ledgerview.Balance) []decimal.Decimal {
	return []decimal.Decimal{b.Cash.Decimal, b.Fine.Decimal}[:len(units(l))]
}

func drawn(l *book.Ledger, row ledgerview.Row, side pdf.Side) (pdf.Row, error) {
	in, out, err := l.Lines(row.Row)
	drawn := pdf.Row{
		Date: row.Date.Time(), ID: row.ID, Balance: amounts(l, row.Balance),
		In: lines(l, in, row.Void, "IN"), Out: lines(l, out, row.Void, "OUT"),
	}
	under := &drawn.Out
	if side == pdf.In {
		under = &drawn.In
	}
	note := func(format string, other int64) {
		if other != 0 && (side == pdf.Both || len(*under) > 0) { // a side without entries of the row does not show it
			*under = append(*under, pdf.Line{Text: fmt.Sprintf(format, other), Amounts: amounts(l, ledgerview.Balance{})})
		}
	}
	note("Reverses row %d", row.Reverses)
	note("Reversed by row %d", row.ReversedBy)
	return drawn, err
}

// lines returns the printed entries of a side. Entries of a void row are crossed out: their amounts are in the text and
// not in the columns.
func lines(l *book.Ledger, entries []book.Line, void bool, side string) []pdf.Line {
	drawn := make([]pdf.Line, len(entries))
	for i, e := range entries {
		counts := ledgerview.Balance{}.Plus(e.Effect)
		drawn[i] = pdf.Line{Text: ledgerview.Words(e.JSON), Amounts: amounts(l, counts)}
		if void {
			was := unit.Indian(counts.Cash.StringFixed(unit.MoneyPlaces))
			if l.Metal {
				was += " and " + unit.Indian(counts.Fine.StringFixed(unit.GramsPlaces)) + " g"
			}
			drawn[i] = pdf.Line{Text: strings.TrimSuffix(fmt.Sprintf("VOID, was %s %s: %s", side, was, drawn[i].Text), ": "),
				Amounts: amounts(l, ledgerview.Balance{})}
		}
	}
	return drawn
}
