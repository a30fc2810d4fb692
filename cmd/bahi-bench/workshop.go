package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	books "bahi/domain/ledger"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/polisher"
	"bahi/domain/unit"
	"bahi/internal/app"
	"bahi/internal/bench"
)

const (
	manyKarigars = 10_000
	otherParties = 100 // accounts of each other ledger beside them
	flatWith     = 100 // a summary is as fast with so many times the rows
	longRebuild  = 10  // times the rows of --rows

	longMemory = 512  // MB
	firstByte  = 1000 // ms
)

// lines makes the entries of one side of a row, as commands store them.
var lines = map[*book.Ledger]func(random *rand.Rand) (in, out book.Side){
	bank.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, bankEntry, bankEntry)
	},
	bullion.Ledger: func(random *rand.Rand) (in, out book.Side) {
		entry := func(random *rand.Rand) bullion.Entry {
			return bullion.Entry{ItemName: party(random), Weight: grams(random), Touch: touch(random)}.Complete(&book.Computer{})
		}
		return either(random, entry, entry)
	},
	client.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, func(random *rand.Rand) client.In {
			return client.In{Description: party(random), Amount: money(random)}
		}, func(random *rand.Rand) client.Out {
			return client.Out{ItemName: "payal", Weight: grams(random), Touch: touch(random), WastagePercent: new(unit.Percent(3000)), MakingCharge: money(random)}.Complete(&book.Computer{})
		})
	},
	karigar.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, func(random *rand.Rand) karigar.In {
			return karigar.In{ItemName: "payal", PureWeight: grams(random), FinePercent: touch(random), WastagePercent: new(unit.Percent(2000)), Other: money(random)}.Complete(&book.Computer{})
		}, func(random *rand.Rand) karigar.Out {
			return karigar.Out{ItemName: "fine silver", Weight: grams(random), Touch: touch(random)}.Complete(&book.Computer{})
		})
	},
	polisher.Ledger: func(random *rand.Rand) (in, out book.Side) {
		return either(random, func(random *rand.Rand) polisher.In {
			return polisher.In{ItemName: "payal", Weight: grams(random), LossWeight: new(unit.Grams(500)), Amount: money(random)}
		}, func(random *rand.Rand) polisher.Out {
			return polisher.Out{ItemName: "payal", Weight: grams(random), Pieces: new(1 + random.Int64N(50))}
		})
	},
}

// sides returns the sides of a row with one entry.
func sides(l *book.Ledger, random *rand.Rand) (in, out book.Side) { return lines[l](random) }

// either makes an entry of one of the sides, more often of IN.
func either[In, Out book.Entry](random *rand.Rand, in func(*rand.Rand) In, out func(*rand.Rand) Out) (inSide, outSide book.Side) {
	if random.IntN(3) == 0 {
		return book.Side{}, book.SideOf([]Out{out(random)})
	}
	return book.SideOf([]In{in(random)}), book.Side{}
}

func bankEntry(random *rand.Rand) bank.Entry {
	return bank.Entry{Description: book.Text(fmt.Sprintf("%s %s, invoice %d", ways[random.IntN(len(ways))], party(random), 1000+random.IntN(9000))), Amount: *money(random)}
}

func party(random *rand.Rand) book.Text { return book.Text(parties[random.IntN(len(parties))]) }

func money(random *rand.Rand) *unit.Money { return new(unit.Money(10_000 + random.IntN(50_000_000))) }

func grams(random *rand.Rand) *unit.Grams { return new(unit.Grams(1 + random.IntN(1_000_000))) }

func touch(random *rand.Rand) *unit.Percent { return new(unit.Percent(90_000 + random.IntN(9_900))) }

// karigarBody returns a row of two entries: a piece that came back, and what was paid.
func karigarBody(random *rand.Rand) string {
	return fmt.Sprintf(`{"date":%q,"in_entries":[{"item_name":"payal","pure_weight":%d.%03d,"fine_percent":92,"wastage_percent":2,"other":%d}],"out_entries":[{"amount":%d}]}`,
		dayOf(random), random.IntN(900), 1+random.IntN(999), 100+random.IntN(5000), 1+random.IntN(5000))
}

// party measures a party ledger: posts, then pages and edits of a long one against those of a short one.
func (b *benchmark) party(ctx context.Context) error {
	if err := b.partyPosts(ctx); err != nil {
		return err
	}
	l := ledgers{of: karigar.Ledger, named: "party_", line: `{"item_name":"labour","other":%d.%02d}`, long: 1, short: 2, rows: b.Rows}
	return b.served(ctx, "party", b.Rows, func(m *logMaker) error { return b.makeLedgers(ctx, m, &l) }, func(s *server) error {
		return errors.Join(b.pages(ctx, s, l), b.editing(ctx, s, l))
	})
}

func (b *benchmark) partyPosts(ctx context.Context) error {
	return b.onServer(ctx, "party_posts", func(ctx context.Context, s *server, _ []int64) error {
		accounts, err := s.openOf(ctx, karigar.Ledger.Name)
		if err != nil {
			return err
		}
		w, err := s.watch(ctx)
		if err != nil {
			return err
		}
		defer w.close(ctx)
		load := bench.Load{Address: s.address, Clients: postClients, For: b.Round, Requests: s.postingsOf(karigar.Ledger.Name, accounts, karigarBody)}
		post := func() (bench.Sample, error) { return measureLag(ctx, w, load) }
		if _, err := post(); err != nil { // warm up: a server that has just started is slower
			return err
		}
		limit, found, err := b.interleave(ctx, "POST of a karigar's rows", func() (bench.Sample, error) { return b.limits.Inserts(ctx, postClients) }, post)
		if err == nil {
			b.posted("party_post", "POST of a karigar's row with two entries, 64 clients", bench.AtLeast(0.5), found[0], limit)
		}
		return err
	})
}

// made makes a log on a new database, folds it and returns the database.
func (b *benchmark) made(ctx context.Context, name string, rows int, fill func(*logMaker) error) (url string, err error) {
	if url, err = b.database(ctx, name); err != nil {
		return "", err
	}
	sys, err := b.system(ctx, url)
	if err != nil {
		return "", err
	}
	defer sys.Close()
	m, err := newLogMaker(ctx, sys, rows)
	if err != nil {
		return "", err
	}
	if err := fill(m); err != nil {
		return "", err
	}
	_, err = b.fold(ctx, sys)
	return url, err
}

// served measures a server on a log that is made for it.
func (b *benchmark) served(ctx context.Context, name string, rows int, fill func(*logMaker) error, measure func(*server) error) error {
	url, err := b.made(ctx, name, rows, fill)
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, url, b.process(url))
	if err != nil {
		return err
	}
	return errors.Join(measure(s), s.stop())
}

// accounts makes many karigars and some accounts of the other ledgers, with rows of many years in turn.
func (b *benchmark) accounts(ctx context.Context, rows int) func(*logMaker) error {
	return func(m *logMaker) error {
		next, of := int64(1), []*book.Ledger{nil} // by account
		for _, l := range books.All {
			count := otherParties
			if l == karigar.Ledger {
				count = manyKarigars
			}
			if err := m.open(l, next, count); err != nil {
				return err
			}
			for next += int64(count); int64(len(of)) < next; {
				of = append(of, l)
			}
		}
		show, end := b.making(fmt.Sprintf("%d rows in %d accounts", rows, next-1))
		defer end()
		for i := range rows {
			if i%1000 == 0 {
				show(int64(i), int64(rows))
			}
			account := 1 + i%(len(of)-1)
			if err := errors.Join(m.add(of[account], int64(account), ago(i, rows)), ctx.Err()); err != nil {
				return err
			}
		}
		return m.end()
	}
}

// manyAccounts measures the list of the karigars and the summary of the books, the latter also against that of a workshop with few rows.
func (b *benchmark) manyAccounts(ctx context.Context) error {
	few := max(1, b.Rows/flatWith)
	fewURL, err := b.made(ctx, "accounts_few_rows", few, b.accounts(ctx, few))
	if err != nil {
		return err
	}
	return b.served(ctx, "accounts", b.Rows, b.accounts(ctx, b.Rows), func(s *server) error {
		if b.wanted("karigars") {
			if err := b.karigars(ctx, s); err != nil {
				return err
			}
		}
		if !b.wanted("summary") {
			return nil
		}
		other, err := b.serveBeside(ctx, fewURL, b.data())
		if err != nil {
			return err
		}
		return errors.Join(b.summary(ctx, s, other, few), other.stop())
	})
}

func (b *benchmark) karigars(ctx context.Context, s *server) error {
	conn, schema, err := s.tables(ctx, "books")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is discarded
	return b.list(ctx, conn, s, bench.Figure{Name: "karigars", Title: fmt.Sprintf("GET /karigars with %d accounts, asked for again: p50", manyKarigars), Goal: bench.AtMost(3)}, "/karigars", s.key,
		`select a.id, a.name, t.cash, t.fine, a.revision from `+schema+`.account a left join `+schema+`.total t on t.account_id = a.id and t.level = 0
		where a.ledger = 'karigar' and a.deleted_position = 9223372036854775807 order by a.id`)
}

// summary measures the summary of many rows beside a SELECT of one row, both with all processors busy, and beside the summary of few rows in
// as many accounts.
func (b *benchmark) summary(ctx context.Context, s, few *server, fewRows int) error {
	ask := func(s *server) [][]byte { return [][]byte{bench.Request("GET", "/books/summary", s.key, "")} }
	load := bench.Load{Address: s.address, Clients: readClients, For: b.Round, Requests: ask(s)}
	limit, found, err := b.interleave(ctx, "GET /books/summary",
		func() (bench.Sample, error) { return b.limits.Selects(ctx, readClients) }, func() (bench.Sample, error) { return load.Run(ctx) })
	if err != nil {
		return err
	}
	title := fmt.Sprintf("GET /books/summary, %d rows in %d accounts, 16 clients", b.Rows, manyKarigars+otherParties*(len(books.All)-1))
	b.conclude(bench.Figure{Name: "summary", Title: title, Unit: "/s", Goal: bench.AtLeast(0.2)}, found[0].By(bench.Rate), "pgbench SELECT, 16 clients", limit.By(bench.Rate)) // five times as long
	other, err := bench.Dial(ctx, few.address)
	if err != nil {
		return err
	}
	defer other.Close() //nolint:errcheck // the connection is discarded
	small, large, err := s.ask(ctx, b.pairs(pairOfReads), func(*bench.Conn) (time.Duration, error) { return asked(ask(few)[0])(other) }, asked(ask(s)[0]))
	if err == nil {
		b.conclude(bench.Figure{Name: "summary_flat", Title: "GET /books/summary, many rows against few", Unit: "ms", Goal: bench.AtMost(1.2)}, bench.Series{large}.By(bench.P50),
			fmt.Sprintf("of %d rows", fewRows), bench.Series{small}.By(bench.P50))
	}
	return err
}

// workshop measures the rebuild of the books from a log that mixes all ledgers.
func (b *benchmark) workshop(ctx context.Context) error {
	sys, err := b.onDatabase(ctx, "workshop")
	if err != nil {
		return err
	}
	defer sys.Close()
	m, err := newLogMaker(ctx, sys, b.Rows)
	if err != nil {
		return err
	}
	if err := errors.Join(b.mixAll(ctx, m, 1, b.Rows), m.end()); err != nil {
		return err
	}
	return b.rebuild(ctx, sys, bench.Figure{Name: "workshop_rebuild", Title: "offline rebuild of the books of all five ledgers", Goal: bench.AtLeast(0.45)})
}

func (b *benchmark) mixAll(ctx context.Context, m *logMaker, first int64, events int) error {
	show, end := b.making(fmt.Sprintf("a log of %d events of five ledgers", events))
	defer end()
	return m.mixed(ctx, first, events, show, books.All...)
}

// long measures rebuilds beside the live tables, of a log and of one that is ten times as long.
func (b *benchmark) long(ctx context.Context) error {
	url, err := b.database(ctx, "long")
	if err != nil {
		return err
	}
	sys, err := b.system(ctx, url)
	if err != nil {
		return err
	}
	defer sys.Close()
	m, err := newLogMaker(ctx, sys, longRebuild*b.Rows)
	if err != nil {
		return err
	}
	if err := b.mixAll(ctx, m, 1, b.Rows); err != nil {
		return err
	}
	short, _, err := b.beside(ctx, url, sys, m)
	if err != nil {
		return err
	}
	next := 1 + int64(bankAccounts*len(books.All))
	if err := b.mixAll(ctx, m, next, (longRebuild-1)*b.Rows); err != nil {
		return err
	}
	rate, memory, err := b.beside(ctx, url, sys, m)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("rebuild of the books of %d events beside the live ones", longRebuild*b.Rows)
	b.conclude(bench.Figure{Name: "long_rebuild", Title: title, Unit: "events/s", Goal: bench.AtLeast(0.8)}, []float64{rate}, fmt.Sprintf("of %d events", b.Rows), []float64{short})
	b.conclude(bench.Figure{Name: "long_rebuild_memory", Title: "the same: memory of the process", Unit: "MB", Goal: bench.AtMost(longMemory)}, []float64{memory}, "", nil)
	return m.end()
}

// beside returns the rate of a rebuild in a process of its own, beside the live tables and their server, and the most memory that it had.
func (b *benchmark) beside(ctx context.Context, url string, sys *app.System, m *logMaker) (rate, memory float64, err error) {
	if err := m.pause(); err != nil {
		return 0, 0, err
	}
	if _, err := b.fold(ctx, sys); err != nil {
		return 0, 0, err
	}
	s, err := b.serve(ctx, url, b.process(url))
	if err != nil {
		return 0, 0, err
	}
	head, err := sys.Store.Head(ctx)
	if err == nil {
		b.sayf("rebuilding the books of %d events in a separate process", head)
		began := time.Now()
		memory, err = b.rebuildProcess(ctx, s)
		rate = float64(head) / time.Since(began).Seconds()
	}
	return rate, memory, errors.Join(err, s.stop())
}

// sheets measures a long statement as a document and for spreadsheets: the server's memory, and how long the first byte takes.
func (b *benchmark) sheets(ctx context.Context) error {
	rows := min(statementRows, b.Rows)
	url, err := b.made(ctx, "sheets", rows, func(m *logMaker) error {
		l := ledgers{of: karigar.Ledger, long: 1, rows: rows}
		return b.makeLedgers(ctx, m, &l)
	})
	if err != nil {
		return err
	}
	for _, kind := range []string{"pdf", "csv", "xlsx"} {
		b.sayf("statement.%s of %d rows", kind, rows)
		var firsts []float64
		most, err := b.onFreshServer(ctx, url, func(ctx context.Context, s *server) error {
			for range b.Rounds {
				first, err := s.download(ctx, "/karigar-ledger/1/statement."+kind)
				if err != nil {
					return err
				}
				firsts = append(firsts, float64(first)/float64(time.Millisecond))
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.conclude(bench.Figure{Name: "sheet_" + kind, Title: fmt.Sprintf("statement.%s of %d rows: first byte", kind, rows), Unit: "ms", Goal: bench.AtMost(firstByte)}, firsts, "", nil)
		b.conclude(bench.Figure{Name: "sheet_" + kind + "_memory", Title: fmt.Sprintf("statement.%s of %d rows: memory", kind, rows), Unit: "MB", Goal: bench.AtMost(memoryBound)}, []float64{most}, "", nil)
	}
	return nil
}
