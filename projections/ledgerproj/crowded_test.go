package ledgerproj_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/projectiontest"
	"bahi/projections/ledgerproj"
)

// unlikeTheRows finds parts whose totals are not those of their rows.
const unlikeTheRows = `
	select * from (
		select account_id, level, node, row_count, cash, lead(node, 1, (node >> 40) + 1 << 40) over (partition by account_id, level, node >> 40
			order by node) as next
		from total where level > 2
	) t where (row_count, cash) <> (
		select count(*), coalesce(sum(in_cash - out_cash), 0) from row_version v
		where v.account_id = t.account_id and to_position = 9223372036854775807 and not deleted
			and (v.date - date '1970-01-01')::bigint << 40 | row_id >= t.node and (v.date - date '1970-01-01')::bigint << 40 | row_id < t.next)`

func TestADayOfVeryManyRowsHasPartsOfBothSizes(t *testing.T) {
	t.Parallel()
	const bulk, bulks = 700, 6
	events := []happened{opened(1, "SBI")}
	for n := range int64(bulks) {
		for i := range int64(bulk) {
			events = append(events, added(1+(bulks-n)*bulk*2+i, day, 100))
		}
	}
	first := int64(1)
	for ; !ledgerproj.Begins(first, 1<<12) || (first-1)%(2*bulk) < bulk; first++ { // between the bulks' ids
	}
	events = append(events, added(first, day, 100))
	for row := range int64(100) {
		events = append(events, added(100_000_000+row, day, 3))
	}
	tables := projectiontest.Run(t, ledgerproj.Books, events...)
	require.Equal(t, []string{"(3,4301)", "(4,4301)"},
		tables.Rows(`select level, sum(row_count) from total where level > 2 group by level order by level`))
	require.Equal(t, []string{"(t)"}, tables.Rows(`select count(*) > 1 from total where level = 3`))
	require.Equal(t, []string{"(t)"}, tables.Rows(`select count(*) > 100 from total where level = 4`))
	require.Empty(t, tables.Rows(unlikeTheRows))

	for _, size := range []int64{1 << 5, 1 << 12} {
		mine := []string{}
		for id := int64(1); id <= 300_000; id++ {
			if ledgerproj.Begins(id, size) {
				mine = append(mine, fmt.Sprintf("(%d)", id))
			}
		}
		require.InDelta(t, 300_000/size, len(mine), 300)
		require.Equal(t, mine, tables.Rows(fmt.Sprintf(`select id from generate_series(1, 300000) id where begins(id, %d) order by id`, size)))
	}
}
