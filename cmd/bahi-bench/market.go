package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
	"bahi/eventstore"
	"bahi/internal/bench"
	"bahi/internal/cli/screen"
	"bahi/projections"
	markettables "bahi/projections/marketplace"
)

const (
	companiesOf = 10  // rows of --rows for one company: 100,000 of a million products
	sellers     = 100 // companies that have products, beside the large one, which has one in largeOf
	largeOf     = 10
	batchChunk  = 8      // batches of one AppendEach
	vocabulary  = 30_000 // words
)

// market measures the marketplace: search, lists, the feed, the import and enquiries, with a million products of 100,000 companies.
func (b *benchmark) market(ctx context.Context) error {
	return b.inMarket(ctx, b.process, func(m *marketplace) (err error) {
		for _, of := range []struct {
			name string
			run  func(context.Context) error
		}{{"search", m.search}, {"catalog", m.catalog}, {"feed", m.feed}, {"import", m.imports}, {"enquiries", m.enquiries}} {
			if b.wanted(of.name) && err == nil {
				err = of.run(ctx)
			}
		}
		return err
	})
}

// unlimited are the settings without the limits that one address would reach.
var unlimited = []string{
	"BAHI_LIMIT_COMPANY_READ=off", "BAHI_LIMIT_CATALOG_LIST_SEARCH=off", "BAHI_LIMIT_CATALOG_GENERAL=off", "BAHI_LIMIT_CATALOG_BULK=off", "BAHI_LIMIT_ENQUIRY_CREATE=off",
}

// inMarket fills a marketplace and starts a server on it.
func (b *benchmark) inMarket(ctx context.Context, start func(database string, more ...string) func(context.Context, *server) (func() error, error), measure func(*marketplace) error) (err error) {
	url, err := b.database(ctx, "market")
	if err != nil {
		return err
	}
	m := &marketplace{benchmark: b, random: rand.New(rand.NewPCG(seed, 9))} //nolint:gosec // the same companies in each run
	if err := m.fill(ctx, url); err != nil {
		return err
	}
	b.sayf("starting a server")
	if m.server, err = b.serve(ctx, url, start(url, unlimited...)); err != nil {
		return err
	}
	defer func() {
		if stopErr := m.server.stop(); err == nil {
			err = stopErr
		}
	}()
	if m.conn, err = pgx.Connect(ctx, url); err != nil {
		return err
	}
	defer m.conn.Close(context.WithoutCancel(ctx))                //nolint:errcheck // it only read
	if _, err := m.conn.Exec(ctx, `vacuum analyze`); err != nil { // as autovacuum does within minutes
		return err
	}
	limits := *b.limits
	limits.URL = url
	m.plain = &limits
	return measure(m)
}

// marketplace is a marketplace that is measured.
type marketplace struct {
	*benchmark

	random *rand.Rand
	server *server
	conn   *pgx.Conn
	plain  *bench.Limits // pgbench on the server's database
	names  []string      // of companies
	words  []string      // see word
}

var (
	trades    = []string{"Textiles", "Jewellers", "Hardware", "Traders", "Exports", "Metals", "Industries", "Agencies", "Polymers", "Foods"}
	cities    = []string{"Surat", "Rajkot", "Mumbai", "Jaipur", "Coimbatore", "Ludhiana", "Kanpur", "Morbi"}
	syllables = []string{"ra", "me", "sh", "ka", "la", "vi", "no", "da", "su", "ni", "pa", "te", "jo", "ga", "mu", "re", "li", "tha", "bha", "cha"}
)

// word returns one of the words of which names are made: of three to five syllables, fewer than there are names.
func (m *marketplace) word() string {
	if m.words == nil {
		m.words = make([]string, vocabulary)
		for i := range m.words {
			var word strings.Builder
			for range 3 + m.random.IntN(3) {
				word.WriteString(syllables[m.random.IntN(len(syllables))])
			}
			m.words[i] = strings.ToUpper(word.String()[:1]) + word.String()[1:]
		}
	}
	return m.words[m.random.IntN(len(m.words))]
}

// companyAt returns the id of the nth company. The first one is the large one.
func companyAt(nth int) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "company %d", nth))
}

func (m *marketplace) companies() int { return max(2*sellers, m.Rows/companiesOf) }

func (m *marketplace) large() int { return m.Rows / largeOf }

// fill writes the events of companies and of the batches of their products, and folds them.
func (m *marketplace) fill(ctx context.Context, url string) error {
	sys, err := m.system(ctx, url)
	if err != nil {
		return err
	}
	defer sys.Close()
	log, err := newLogMaker(ctx, sys, m.Rows)
	if err != nil {
		return err
	}
	m.sayf("making %d companies and %d products", m.companies(), m.Rows)
	bar := screen.NewBar(os.Stderr, "making products", "products")
	for i := range m.companies() {
		name := m.word() + " " + trades[m.random.IntN(len(trades))]
		m.names = append(m.names, name)
		e, err := company.Kind.Encode(uuid.Must(uuid.NewV7()), company.Created{Name: name, Slug: fmt.Sprintf("company-%d", i), Profile: company.Profile{
			City: patch.Set(cities[m.random.IntN(len(cities))]), Category: patch.Set(trades[m.random.IntN(len(trades))]),
			Description: patch.Set("Makers and sellers of " + m.word() + " since 1974"),
		}}, log.now())
		if err == nil {
			err = log.queue(company.Kind.Stream(companyAt(i).String()), eventstore.NoStream, e)
		}
		if err != nil {
			return err
		}
	}
	if err := log.pause(); err != nil {
		return err
	}
	log.chunk = batchChunk
	for made := 0; made < m.Rows; {
		of, count := 0, min(product.MaxBatch, m.Rows-made)
		if made >= m.large() {
			of = 1 + made/product.MaxBatch%sellers
		}
		if err := m.offer(log, of, made, count); err != nil {
			return err
		}
		made += count
		bar.Show(int64(made), int64(m.Rows))
	}
	bar.End()
	if err := log.end(); err != nil {
		return err
	}
	for _, p := range []*projections.Projection{markettables.Companies, markettables.Products} {
		if _, err := m.foldOne(ctx, sys, p); err != nil {
			return err
		}
	}
	return nil
}

// offer writes a batch of products. Half of them are in the category Anklets.
func (m *marketplace) offer(log *logMaker, of, first, count int) error {
	batch := product.Imported{Company: companyAt(of)}
	for i := range count {
		nth := first + i
		item, err := product.Item{Name: fmt.Sprintf("%s anklet %d", m.word(), nth), Price: int64(100 + m.random.IntN(10_000_000)), Details: product.Details{
			Category: patch.Set([]string{"Anklets", trades[m.random.IntN(len(trades))]}[nth%2]), Description: patch.Set("Silver & brass, <b>polished</b> by hand"),
			Images: patch.Set([]string{fmt.Sprintf("https://cdn.example/%d.jpg", nth)}),
		}}.Tidied()
		if err != nil {
			return err
		}
		batch.Products = append(batch.Products, item)
	}
	id := product.NewBatchID(uuid.Must(uuid.NewV7())).String()
	e, err := product.Batches.Encode(uuid.Must(uuid.NewV7()), batch, log.now())
	if err != nil {
		return err
	}
	return log.queue(product.Batches.Stream(id), eventstore.NoStream, e)
}
