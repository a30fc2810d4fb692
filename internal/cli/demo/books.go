package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"bahi/domain/event"
	"bahi/domain/unit"
	"bahi/projections/ledgerproj"
)

// party is an account of a ledger, with its balances so far.
type party struct {
	ledger string // as in paths
	id     int64
	random *rand.Rand
	rows   int   // to be written
	cash   int64 // paise that we owe; in a bank account, that we have
	fine   int64 // milligrams that we owe
	bills  int
	wrong  int64 // id of the row that is corrected
}

// path returns the path of its rows.
func (p *party) path() string { return fmt.Sprintf("/%s-ledger/%d", p.ledger, p.id) }

func rupees(paise int64) string { return fmt.Sprintf("%d.%02d", paise/100, paise%100) }

func grams(mg int64) string { return fmt.Sprintf("%d.%03d", mg/1000, mg%1000) }

// between returns a random number from least to most, in steps from least.
func between(random *rand.Rand, least, most, step int64) int64 {
	return least + random.Int64N((most-least)/step+1)*step
}

// rowsOf has a function for each ledger that returns the next row of a party in JSON.
var rowsOf = map[string]func(*party) string{
	"bank": (*party).bank, "bullion": (*party).bullion, "client": (*party).client, "karigar": (*party).karigar, "polisher": (*party).polisher,
}

func in(entry string, values ...any) string {
	return `"in_entries":[` + fmt.Sprintf(entry, values...) + `]`
}
func out(entry string, values ...any) string {
	return `"out_entries":[` + fmt.Sprintf(entry, values...) + `]`
}

// Parties settle debts above these amounts, or multiples or fractions of them, in paise and milligrams.
const (
	worthCash = 50_000_00
	worthFine = 500_000
)

func (p *party) bank() string {
	p.bills++
	amount := between(p.random, 5_000_00, 180_000_00, 50_00)
	switch {
	case p.bills == 1:
		p.cash = 1_500_000_00
		return in(`{"description":"Opening balance","amount":%s}`, rupees(p.cash))
	case p.cash < 300_000_00 || p.random.IntN(2) == 0:
		p.cash += amount
		return in(`{"description":"%s %s, bill %d","amount":%s}`, pick(p.random, []string{"UPI", "NEFT", "RTGS", "Cheque of"}),
			house(p.random.IntN(90)), 1000+p.bills, rupees(amount))
	default:
		p.cash -= amount
		return out(`{"description":"%s","amount":%s}`,
			pick(p.random, []string{"Rent of the showroom", "Salaries", "Electricity", "RTGS to the bullion dealer", "Hallmarking fees",
				"Packing and boxes", "GST"}), rupees(amount))
	}
}

func (p *party) bullion() string {
	const perGram = 96_50 // paise
	switch {
	case p.fine > 4*worthFine:
		cut := p.fine / 1000 * 1000
		p.fine -= cut
		p.cash += cut / 1000 * perGram
		return out(`{"kind":"rate_cut","fine_weight":%s,"rate":%s}`, grams(cut), rupees(perGram))
	case p.cash > worthCash:
		paid := p.cash
		p.cash = 0
		return out(`{"kind":"cash","amount":%s,"description":"RTGS"}`, rupees(paid))
	default:
		weight := between(p.random, 500_000, 3_000_000, 500_000)
		p.fine += weight * 999 / 1000
		return in(`{"kind":"metal","item_name":"fine silver","weight":%s,"touch":99.9}`, grams(weight))
	}
}

func (p *party) client() string {
	if p.cash < -2*worthCash {
		paid := between(p.random, -p.cash/2, -p.cash, 100)
		p.cash += paid
		return in(`{"amount":%s,"description":"%s"}`, rupees(paid), pick(p.random, []string{"UPI", "Cheque", "Cash", "NEFT"}))
	}
	if p.fine < -worthFine {
		weight := -p.fine * 100 / 925 * 10
		p.fine = 0
		return in(`{"item_name":"old silver","weight":%s,"touch":92.5}`, grams(weight))
	}
	p.bills++
	weight, making := between(p.random, 20_000, 400_000, 250), between(p.random, 200_00, 6_000_00, 50_00)
	if p.random.IntN(4) == 0 { // to be returned in metal
		p.fine -= weight * 945 / 1000
		p.cash -= making
		return out(`{"item_name":"%s","slip_number":"%d","weight":%s,"touch":92.5,"wastage_percent":2,"making_charge":%s}`, piece(p.random),
			p.bills, grams(weight), rupees(making))
	}
	rate := between(p.random, 94_00, 108_00, 25)
	p.cash -= weight*945/1_000_000*rate + making
	return out(`{"item_name":"%s","slip_number":"%d","weight":%s,"touch":92.5,"wastage_percent":2,"rate":%s,"making_charge":%s}`,
		piece(p.random), p.bills, grams(weight), rupees(rate), rupees(making))
}

func (p *party) karigar() string {
	switch {
	case p.cash > worthCash/4:
		paid := p.cash
		p.cash = 0
		return out(`{"amount":%s}`, rupees(paid))
	case p.fine > -200_000:
		weight := between(p.random, 300_000, 1_000_000, 50_000)
		p.fine -= weight * 995 / 1000
		return out(`{"item_name":"fine silver","weight":%s,"touch":99.5}`, grams(weight))
	default:
		weight, labour := between(p.random, 60_000, 420_000, 500), between(p.random, 300_00, 3_000_00, 25_00)
		p.fine += weight * 94 / 100
		p.cash += labour
		return in(`{"item_name":"%s","pure_weight":%s,"fine_percent":92,"wastage_percent":2,"other":%s}`, piece(p.random), grams(weight),
			rupees(labour))
	}
}

func (p *party) polisher() string {
	switch {
	case p.cash > worthCash/10:
		paid := p.cash
		p.cash = 0
		return out(`{"amount":%s,"description":"Cash"}`, rupees(paid))
	case p.fine > -20_000:
		weight := between(p.random, 50_000, 300_000, 500)
		p.fine -= weight
		return out(`{"item_name":"%s","weight":%s,"pieces":%d}`, piece(p.random), grams(weight), 2+weight/9_000)
	default:
		loss := -p.fine * 3 / 1000
		weight, labour := -p.fine-loss, -p.fine/1000*60
		p.fine = 0
		p.cash += labour
		return in(`{"item_name":"polished pieces","weight":%s,"loss_weight":%s,"amount":%s}`, grams(weight), grams(loss), rupees(labour))
	}
}

// bulk is the maximum number of rows of a request. bulks is the number of accounts that are written at the same time.
const (
	bulk  = 500
	bulks = 16
)

// openBooks opens the accounts of all ledgers.
func (f *filler) openBooks(ctx context.Context) error {
	counts, each := f.plan.parties()
	number := 0
	for _, of := range counts {
		for i := range of.count {
			random := f.random("party", number)
			number++
			body := map[string]any{"name": house(number)}
			switch of.ledger {
			case "bank":
				body["name"] = bankAccount(i)
			case "bullion":
				body["name"] = house(number) + ", bullion"
			case "karigar", "polisher":
				first, last := person(random)
				body["name"] = fmt.Sprintf("%s %s, %s", first, last, pick(random, cities))
			}
			if of.ledger == "polisher" {
				body["type"] = i % 3
			}
			p := &party{ledger: of.ledger, random: random, rows: each}
			f.parties = append(f.parties, p)
			f.later(1, func(ctx context.Context) (err error) {
				p.id, err = f.create(ctx, "/"+p.ledger, body)
				return err
			})
		}
	}
	return f.do(ctx)
}

// writeBooks writes a year of rows into every account, and corrects some. After each round of requests it waits for the tables, which may
// lag by one round.
func (f *filler) writeBooks(ctx context.Context) error {
	var before, written event.Position
	for some := range slices.Chunk(f.parties, bulks) {
		for first := 0; first < some[0].rows; first += bulk {
			for _, p := range some {
				count := min(bulk, p.rows-first)
				f.later(count, func(ctx context.Context) error { return f.writeRows(ctx, p, first, count) })
			}
			if err := f.do(ctx); err != nil {
				return err
			}
			head, err := f.sys.Store.Head(ctx)
			if err != nil {
				return err
			}
			before, written = written, head
			if err := f.follow(ctx, before); err != nil {
				return err
			}
		}
		for _, p := range some {
			f.later(0, func(ctx context.Context) error { return f.correct(ctx, p) })
		}
	}
	return f.do(ctx)
}

// closeYear closes the last complete fiscal year. It does nothing if the tables are behind the log, because they have the balances.
func (f *filler) closeYear(ctx context.Context) error {
	head, err := f.sys.Store.Head(ctx)
	if err != nil {
		return err
	}
	if err := f.follow(ctx, head); err != nil {
		return err
	}
	if f.sys.Runner.Statuses()[ledgerproj.Books.Name].Position < head {
		return nil
	}
	last := f.plan.Until.Time()
	end := unit.DateOf(time.Date(last.Year(), time.March, 31, 0, 0, 0, 0, time.UTC))
	if end >= f.plan.Until {
		end = unit.DateOf(time.Date(last.Year()-1, time.March, 31, 0, 0, 0, 0, time.UTC))
	}
	return f.send(ctx, "POST", "/books/periods", map[string]any{"through": end}, nil)
}

// follow waits until the books' tables have the events up to a position: the server refuses writes while they lag too far. It returns at
// once if their projection is paused or failing.
func (f *filler) follow(ctx context.Context, upTo event.Position) error {
	for {
		moved := f.sys.Runner.Advanced()
		if books := f.sys.Runner.Statuses()[ledgerproj.Books.Name]; books.Position >= upTo || books.Paused || books.Error != "" {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *filler) writeRows(ctx context.Context, p *party, first, count int) error {
	texts := make([]string, count)
	for i := range texts {
		texts[i] = fmt.Sprintf(`{"date":"%s",%s}`, f.day(first+i, p.rows), rowsOf[p.ledger](p))
	}
	var done struct{ Rows []struct{ ID int64 } }
	if err := f.client.call(ctx, "POST", p.path()+"/rows", `{"rows":[`+strings.Join(texts, ",")+`]}`, &done); err != nil || first > 0 {
		return err
	}
	p.wrong = done.Rows[count/2].ID
	return nil
}

// correct edits or voids a row with a reason, because real books have corrections.
func (f *filler) correct(ctx context.Context, p *party) error {
	if p.ledger == "bank" {
		body := fmt.Sprintf(`{"id":%d,"in_entries":[{"description":"Interest","amount":%s}],"out_entries":[]}`, p.wrong,
			rupees(between(p.random, 900_00, 2_000_00, 1)))
		return f.client.call(ctx, "PUT", p.path(), body, nil, "Bahi-Reason", "the slip was read wrongly")
	}
	return f.client.call(ctx, "POST", fmt.Sprintf("%s/row/%d/void", p.path(), p.wrong), `{"reason":"written twice"}`, nil)
}

// day returns the date of the nth of a number of records, spread over the year.
func (f *filler) day(n, of int) unit.Date {
	return f.first + unit.Date(n*(daysOfYear-1)/max(1, of-1))
}
