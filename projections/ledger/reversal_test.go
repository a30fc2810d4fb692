package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/projections/ledger"
	"bahi/projections/projectiontest"
)

type reversalRow = book.ReversalRow

func of(row int64, e event.Event[book.Row]) happened {
	return projectiontest.Happened(bank.Ledger.Rows, text(row), e, clerk)
}

func announced(row, bulk int64) happened {
	return of(row, book.ReversalAnnounced{Bulk: bulk})
}

func dropped(row, bulk int64) happened {
	return of(row, book.ReversalDropped{Bulk: bulk})
}

func voided(row int64) happened { return of(row, book.RowVoided{}) }

// reversed takes rows of account 1 back that have 100 paise on their IN side.
func reversed(first int64, rows ...int64) happened {
	e := book.RowsReversed{Account: 1, Date: day + 5}
	for _, row := range rows {
		e.Rows = append(e.Rows, reversalRow{Reverses: row, Out: entries(100)})
	}
	return projectiontest.Happened(bank.Ledger.Bulks, text(first), e, clerk)
}

func abandoned(first int64) happened {
	return projectiontest.Happened(bank.Ledger.Bulks, text(first), book.RowsAbandoned{}, clerk)
}

// told are the events that carry the reversal of a row out.
func told(row, by int64, decided event.Position) []happened {
	meta := clerk
	meta.Of = decided
	return []happened{
		projectiontest.Happened(bank.Ledger.Rows, text(by), book.RowAdded{Account: 1, Date: day + 5, Out: entries(100), Reverses: row}, meta),
		projectiontest.Happened(bank.Ledger.Rows, text(row), book.RowReversed{By: by}, meta),
	}
}

// links are what is read of rows here.
const links = `select row_id, from_position, case when to_position < 1e18 then to_position end as to_position, date, in_cash, out_cash, revision,
	void, reverses, reversed_by, reversal from row_version order by row_id, from_position`

func TestARowAndTheOneThatTakesItBackKnowOfEachOtherFromTheDecisionOn(t *testing.T) {
	t.Parallel()
	events := []happened{opened(1, "SBI"), added(7, day, 100), added(8, day, 100), announced(7, 20), announced(8, 20), reversed(20, 7, 8)}
	decided := []string{
		"(7,2,6,2024-10-04,1.00,0.00,1,f,,,20)", "(7,6,,2024-10-04,1.00,0.00,1,f,,20,20)",
		"(8,3,6,2024-10-04,1.00,0.00,1,f,,,20)", "(8,6,,2024-10-04,1.00,0.00,1,f,,21,20)",
		"(20,6,,2024-10-09,0.00,1.00,0,f,7,,)", "(21,6,,2024-10-09,0.00,1.00,0,f,8,,)",
	}
	tables := projectiontest.Run(t, ledger.Books, events...)
	require.Equal(t, decided, tables.Rows(links))
	require.Equal(t, []string{"(20,4,0)"}, tables.Rows(`select id, follow_ups, filled from bulk`))
	require.Equal(t, []string{"(1,0,0,4,0.00)", "(1,2,20000,2,2.00)", "(1,2,20005,2,-2.00)"}, tables.Rows(totals))
	require.Equal(t, []string{"(6)"}, tables.Rows(`select distinct position from posting where position > 3`))

	events = append(events, told(7, 20, 6)...)
	events = append(events, told(8, 21, 6)...)
	tables = projectiontest.Run(t, ledger.Books, events...)
	decided[1], decided[3] = "(7,6,,2024-10-04,1.00,0.00,2,f,,20,20)", "(8,6,,2024-10-04,1.00,0.00,2,f,,21,20)"
	require.Equal(t, decided, tables.Rows(links))
	require.Equal(t, []string{"(20,4,4)"}, tables.Rows(`select id, follow_ups, filled from bulk`))
}

func TestAReversalOfRowsThatDoNotStandSoIsVoid(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledger.Books,
		opened(1, "SBI"), opened(2, "HDFC"), added(7, day, 100), added(8, day, 100), added(9, day, 50),
		of(10, book.RowAdded{Account: 2, Date: day, In: entries(100)}),
		reversed(20, 7),     // not announced
		announced(7, 30),    // as another's
		reversed(21, 7),     //
		announced(8, 22),    //
		reversed(22, 8, 7),  // one of them
		announced(9, 23),    //
		reversed(23, 9),     // which counts less
		announced(10, 24),   //
		reversed(24, 10),    // of another account
		reversed(25, 99),    // never there
		reversed(22, 8, 8),  // twice
		locked(new(day+10)), //
		reversed(22, 8),     // in the locked time
	)
	require.Equal(t, []string{
		"(7,3,,2024-10-04,1.00,0.00,1,f,,,30)", "(8,4,,2024-10-04,1.00,0.00,1,f,,,22)",
		"(9,5,,2024-10-04,0.50,0.00,1,f,,,23)", "(10,6,,2024-10-04,1.00,0.00,1,f,,,24)",
	}, tables.Rows(links))
	require.Empty(t, tables.Rows(`select * from bulk`))
}

func TestWhatIsSettledIsNotChangedByLaterEvents(t *testing.T) {
	t.Parallel()
	edit := book.RowEdited{In: new(entries(7))}
	tables := projectiontest.Run(t, ledger.Books,
		opened(1, "SBI"), added(7, day, 100), announced(7, 20),
		edited(7, edit), ended(7), voided(7), announced(7, 21), dropped(7, 21),
		reversed(20, 7), dropped(7, 20), edited(7, edit), ended(7), voided(7),
		edited(20, edit), ended(20), voided(20),
	)
	require.Equal(t, []string{
		"(7,2,9,2024-10-04,1.00,0.00,6,f,,,20)", "(7,9,,2024-10-04,1.00,0.00,10,f,,20,20)", "(20,9,,2024-10-09,0.00,1.00,2,f,7,,)",
	}, tables.Rows(links))
	require.Empty(t, tables.Rows(`select from row_version where deleted`))

	free := projectiontest.Run(t, ledger.Books,
		opened(1, "SBI"), added(7, day, 100), announced(7, 20), abandoned(20), dropped(7, 20), edited(7, edit))
	require.Equal(t, []string{"(7,2,6,2024-10-04,1.00,0.00,2,f,,,)", "(7,6,,2024-10-04,0.07,0.00,3,f,,,)"}, free.Rows(links))
}

func TestAVoidRowStaysAndCountsNothing(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledger.Books,
		opened(1, "SBI"), added(7, day, 100), added(8, day, 1), voided(7), ended(7), announced(7, 20), locked(&day), voided(8))
	require.Equal(t, []string{
		"(7,2,4,2024-10-04,1.00,0.00,0,f,,,)", "(7,4,,2024-10-04,0.00,0.00,3,t,,,)", "(8,3,,2024-10-04,0.01,0.00,1,f,,,)",
	}, tables.Rows(links))
	require.Equal(t, []string{`(7,"[{""amount"":1}]")`}, tables.Rows(`select row_id, in_entries from row_version where void`))
	require.Equal(t, []string{"(1,0,0,2,0.01)", "(1,2,20000,2,0.01)"}, tables.Rows(totals))
}

// A row's revision is told as it was at any position, though its version began before and ended after.
func TestTheRevisionsThatAVersionOfARowHadAreKept(t *testing.T) {
	t.Parallel()
	events := []happened{opened(1, "SBI"), added(8, day, 100), announced(8, 20), dropped(8, 20), announced(8, 30), reversed(30, 8)}
	tables := projectiontest.Run(t, ledger.Books, append(events, told(8, 30, 6)...)...)
	require.Equal(t, []string{"(8,2,0,3)", "(8,6,3,4)", "(30,6,0,0)"}, tables.Rows(`select row_id, from_position, first_revision, revision from row_version order by 1, 2`))
	require.Equal(t, []string{"(8,3,1)", "(8,4,2)", "(8,5,3)", "(8,8,4)"}, tables.Rows(`select * from row_note order by position`))
}
