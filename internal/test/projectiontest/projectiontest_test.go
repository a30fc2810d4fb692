package projectiontest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/internal/test/projectiontest"
	"bahi/projections"
)

func opened(id, name string) projectiontest.Event {
	return projectiontest.Happened(bank.Ledger.Accounts, id, book.AccountOpened{Name: name}, event.Meta{})
}

func TestRunReturnsTheTables(t *testing.T) {
	t.Parallel()
	p := projections.Define("names", 1, `create table name (id text, name text, at bigint);`,
		projections.On(func(b *projections.Batch, e event.Recorded[book.AccountOpened]) {
			b.Exec(`insert into name values ($1, $2, $3)`, e.StreamID(), e.Data.Name, int64(e.Position))
		}))
	tables := projectiontest.Run(t, p, opened("7", "SBI"), opened("8", "₹"))
	require.Equal(t, []string{"(7,SBI,1)", "(8,₹,2)"}, tables.Rows(`select * from name order by id`))
	require.Empty(t, tables.Examine())
}

func TestDuplicateRowIsFound(t *testing.T) {
	t.Parallel()
	p := projections.Define("sizes", 1, `create table size (n bigint);`,
		projections.Apply(bank.Ledger.Accounts.Names(), func(_ context.Context, b *projections.Batch, events []event.Recorded[any]) error {
			b.Exec(`insert into size values ($1)`, len(events)) // depends on the batch, as no projection may
			return nil
		}))
	tables := projectiontest.Run(t, p, opened("7", "SBI"))
	require.Equal(t, []string{"(1)"}, tables.Rows(`select n from size`))
	tables.Exec(`insert into size values (1)`)
	differences := tables.Examine()
	require.Len(t, differences, 1)
	require.Equal(t, projections.Difference{
		Table: "size", Count: 1, Rows: []projections.DifferentRow{{Where: "live tables", Row: []byte(`{"n":1}`)}},
	}, differences[0])
	require.Equal(t, `table size: 1 rows differ; the first is only in the live tables: {"n":1}`, differences[0].String())
}
