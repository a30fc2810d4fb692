package marketplacecmd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/marketplacecmd"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/product"
	"bahi/domain/patch"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	"bahi/internal/test/lawstest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

// companyFixture is a company that sells. Its log has nothing else.
type companyFixture struct {
	*testing.T
	log    *postgres.Store
	vault  *vault.Vault
	of     uuid.UUID
	listed map[string]product.Listed // result of tables, which a test may make outdated
}

var at = uuid.New()

func newCompany(t *testing.T) *companyFixture {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Template(t, "migrated", migrations.Up))
	log, err := postgres.Open(t.Context(), pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(log.Close)
	lawstest.Keep(t, log)
	keys, err := vault.Open(t.Context(), pool, make([]byte, 32), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	m := &companyFixture{T: t, log: log, vault: keys}
	made, err := marketplacecmd.CreateCompany(t.Context(), m.handler(log), asked(""), company.Create{Name: "Asha Mills"})
	require.NoError(t, err)
	m.of = uuid.MustParse(made.ID)
	return m
}

func (m *companyFixture) handler(log eventstore.Store) *commands.Handler {
	return commands.New(log, m.vault, time.Now)
}

func asked(key string) commands.Request {
	return commands.Request{Actor: actor.Actor{Type: "apikey", ID: "7"}, Workspace: at, Operation: "op", Key: key, Fingerprint: []byte(key)}
}

// ProductsBySKU implements the queries of products.
func (m *companyFixture) ProductsBySKU(_ context.Context, _ uuid.UUID, keys []string) (map[string]product.Listed, error) {
	found := map[string]product.Listed{}
	for _, key := range keys {
		if p, there := m.listed[key]; there {
			found[key] = p
		}
	}
	return found, nil
}

// send imports a file on a store, and returns the numbers of rows: created, updated, unchanged and failed.
func (m *companyFixture) send(store eventstore.Store, key, file string) (string, error) {
	found, err := marketplacecmd.ReadCatalog(m.Context(), io.NewSectionReader(strings.NewReader(file), 0, int64(len(file))), false)
	require.NoError(m, err)
	done, err := marketplacecmd.ImportProducts(m.Context(), m.handler(store), asked(key), m,
		marketplacecmd.Import{Company: m.of, Lines: found.Items})
	r := found.Result(done)
	return fmt.Sprintf("%d %d %d %d", r.Created, r.Updated, r.Unchanged, r.Failed), err
}

func (m *companyFixture) imports(file, want string) {
	m.Helper()
	said, err := m.send(m.log, "", file)
	require.NoError(m, err)
	require.Equal(m, want, said, file)
}

// look reads the whole log into listed, and checks that at no position two products have one SKU. It returns the products by SKU.
func (m *companyFixture) look() map[string]string {
	m.Helper()
	states, shown := map[string]product.State{}, map[string]string{}
	for stored, err := range m.log.ReadAll(m.Context(), 0, eventstore.Forwards) {
		require.NoError(m, err)
		switch category, id := event.SplitStream(stored.Stream); category {
		case product.Batches.Category():
			r, err := product.Batches.Decode(stored)
			require.NoError(m, err)
			if batch, ok := r.Data.(product.Imported); ok {
				for n, item := range batch.Products {
					of := product.InBatch(uuid.MustParse(id), n).String()
					require.NotContains(m, states, of)
					states[of] = product.State{Item: item, Company: m.of}
				}
			}
		case product.Kind.Category():
			r, err := product.Kind.Decode(stored)
			require.NoError(m, err)
			states[id] = product.Kind.Evolve(states[id], r)
		default:
			continue
		}
		had := map[string]bool{}
		for _, s := range states {
			require.False(m, s.SKUClaim() != "" && had[s.SKUClaim()], "position %d: two products have the SKU %s", stored.Position, s.SKU.Value)
			had[s.SKUClaim()] = true
		}
	}
	m.listed = map[string]product.Listed{}
	for id, s := range states {
		if s.Company == uuid.Nil {
			continue
		}
		key := product.SKUKey(s.SKU.Value)
		if key != "" {
			m.listed[key] = product.Listed{Item: s.Item, ID: uuid.MustParse(id)}
		}
		shown[key] += fmt.Sprintf("%s %d %s", s.Name, s.Price, s.Category.Value)
	}
	return shown
}

const list = "sku,name,price,category\nA-1,Hook,1,Brass\nA-2,Nail,2,Iron\nA-3,Ring,3,\n"

func TestARowWhoseSKUIsKnownChangesItsProduct(t *testing.T) {
	t.Parallel()
	m := newCompany(t)
	m.imports(list, "3 0 0 0")
	m.look()
	m.imports(list, "0 0 3 0")
	head, err := m.log.Head(t.Context())
	require.NoError(t, err)
	m.imports("Item Code,name,price\n a-1 ,Hook,1\n", "0 0 1 0")
	again, err := m.log.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, head, again, "an unchanged list writes nothing")
	m.imports("sku,name,price,category\na-1,Hook,1.50,\nA-4,Bolt,4,Iron\nA-2,Nail,2,Steel\n,Plain,5,\n", "2 2 0 0")
	require.Equal(t, map[string]string{
		"a-1": "Hook 150 Brass", "a-2": "Nail 200 Steel", "a-3": "Ring 300 ", "a-4": "Bolt 400 Iron", "": "Plain 500 ",
	}, m.look())
	m.imports("Style No;MRP\nA-3;3.5\nA-9;1\nA-1;1.5\n", "0 1 1 1")
	require.Equal(t, "Ring 350 ", m.look()["a-3"])
}

// The tables lag behind the log, or another request is faster. Claims decide.
func TestAnImportOnLateTablesDoublesNoProduct(t *testing.T) {
	t.Parallel()
	m := newCompany(t)
	m.imports(list, "3 0 0 0")
	m.imports("sku,name,price\nA-1,Hook,9\nA-5,Bolt,5\nA-2,Nail,2\n", "1 1 1 0") // the tables do not have it yet
	all := m.look()
	require.Len(t, all, 4)
	require.Equal(t, "Hook 900 Brass", all["a-1"])
	h := m.handler(m.log)
	for _, key := range []string{"a-2", "a-5"} {
		_, err := marketplacecmd.DeleteProduct(t.Context(), h, asked(""), m.listed[key].ID)
		require.NoError(t, err)
	}
	other := product.Edit{Details: product.Details{SKU: patch.Set("B-3")}}
	_, err := marketplacecmd.EditProduct(t.Context(), h, asked(""), m.listed["a-3"].ID, other)
	require.NoError(t, err)
	m.imports("sku,name,price\nA-2,Nail,7\nA-5,Bolt,7\nA-3,Ring,7\n", "3 0 0 0") // they are gone, or have another SKU
	m.imports("sku,price\nB-3,8\n", "0 0 0 1")                                   // tables do not have it yet
	all = m.look()
	require.Equal(t, map[string]string{
		"a-1": "Hook 900 Brass", "a-2": "Nail 700 ", "a-3": "Ring 700 ", "a-5": "Bolt 700 ", "b-3": "Ring 300 ",
	}, all)
}

func TestASKUIsOneProducts(t *testing.T) {
	t.Parallel()
	m := newCompany(t)
	m.imports(list, "3 0 0 0")
	m.look()
	h := m.handler(m.log)
	first, second := m.listed["a-1"].ID, m.listed["a-2"].ID
	add := func(sku string) error {
		c := product.Add{Company: m.of, Name: "x", Price: 1, Details: product.Details{SKU: patch.Set(sku)}}
		_, err := marketplacecmd.AddProduct(t.Context(), h, asked(""), c)
		return err
	}
	edit := func(id uuid.UUID, sku string) error {
		c := product.Edit{Details: product.Details{SKU: patch.Set(sku)}}
		_, err := marketplacecmd.EditProduct(t.Context(), h, asked(""), id, c)
		return err
	}
	require.Equal(t, fault.Taken("sku", product.SKUTaken, first.String()), add(" a-1 "), "an imported product has it")
	require.Equal(t, fault.Taken("sku", product.SKUTaken, first.String()), edit(second, "A-1"))
	require.NoError(t, edit(second, "D"), "also of an imported one")
	require.NoError(t, add("A-2"), "it is free now")
	_, err := marketplacecmd.DeleteProduct(t.Context(), h, asked(""), first)
	require.NoError(t, err)
	require.NoError(t, add("A-1"), "a deleted product's is free")
	m.look()

	// One of many concurrent requests gets the SKU.
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _ = add("E") })
		all.Go(func() {
			if _, err := m.send(m.log, "", "sku,name,price\nE,Bolt,1\nF,Screw,1\n"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Contains(t, m.look(), "f")
	require.Contains(t, m.listed, "e")
}

var errGone = errors.New("the process is gone")

// crashingLog is the log of a process that crashes at an append: before it, or after it took place.
type crashingLog struct {
	*postgres.Store

	appends, at int64
	after       bool
}

func (f *crashingLog) crashes(now bool) bool { return f.appends == f.at && f.after == now }

// Append implements [eventstore.Store].
func (f *crashingLog) Append(ctx context.Context, t eventstore.Transaction) (eventstore.Appended, error) {
	if f.appends++; f.crashes(false) {
		return eventstore.Appended{}, errGone
	}
	done, err := f.Store.Append(ctx, t)
	if f.crashes(true) {
		return eventstore.Appended{}, errGone
	}
	return done, err
}

// AppendEach implements [eventstore.Store].
func (f *crashingLog) AppendEach(ctx context.Context, appends []eventstore.Transaction) []eventstore.Result {
	f.appends++
	done := make([]eventstore.Result, len(appends))
	if !f.crashes(false) {
		done = f.Store.AppendEach(ctx, appends)
	}
	if f.appends == f.at {
		for n := range done {
			done[n].Err = errGone
		}
	}
	return done
}

func TestAnImportThatCrashedIsContinued(t *testing.T) {
	t.Parallel()
	m := newCompany(t)
	crashed := 0
	for n := int64(1); ; n++ {
		alive := false
		for _, after := range []bool{false, true} {
			mark := fmt.Sprintf("%d%t", n, after)
			one := strings.ReplaceAll("sku,name,price\n#1,Hook,1\n#2,Nail,2\n", "#", mark)
			m.imports(one, "2 0 0 0")
			m.look()
			two := strings.ReplaceAll("sku,name,price\n#1,Hook,9\n#3,Ring,3\n,#plain,4\n", "#", mark)
			_, err := m.send(&crashingLog{Store: m.log, at: n, after: after}, mark, two)
			if alive = err == nil; !alive {
				require.ErrorIs(t, err, errGone)
				crashed++
				if n%2 == 0 { // another caller sends a list meanwhile
					_, err = m.send(m.log, "", strings.ReplaceAll("sku,name,price\n#3,Ring,5\n", "#", mark))
					require.NoError(t, err)
				}
				m.look()
			}
			first, err := m.send(m.log, mark, two)
			require.NoError(t, err)
			again, err := m.send(m.log, mark, two)
			require.NoError(t, err)
			require.Equal(t, first, again, "the same key, the same result")
			all := m.look()
			fold := strings.ToLower(mark)
			require.Equal(t, "Hook 900 ", all[fold+"1"])
			require.Contains(t, all[fold+"3"], "Ring ")
			require.Equal(t, 1, strings.Count(all[""], mark+"plain 400"), "attempt %s", mark)
		}
		if alive {
			break
		}
	}
	require.GreaterOrEqual(t, crashed, 4)
}
