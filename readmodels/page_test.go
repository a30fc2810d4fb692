package readmodels_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/readmodels"
)

func TestAPageKnowsHowManyRowsThereAre(t *testing.T) {
	t.Parallel()
	s := built(t, 5)
	type name struct {
		Position int64
		Name     string
	}
	page := func(number, size int, from int64) (found []string, total int64) {
		rows, total, err := readmodels.List[name]{
			As: pgx.RowToStructByName[name], SQL: `select name, position from names.name where position >= @from`, Order: `position desc`,
			Args: pgx.NamedArgs{"from": from},
		}.Page(t.Context(), s.reader.From(nil, "names"), readmodels.Page{Number: number, Size: size})
		require.NoError(t, err)
		for _, r := range rows {
			found = append(found, r.Name)
		}
		return found, total
	}
	for _, c := range []struct {
		number, size int
		from         int64
		found        []string
		total        int64
	}{
		{1, 2, 1, []string{"n4", "n3"}, 5},
		{3, 2, 1, []string{"n0"}, 5},
		{4, 2, 1, nil, 5},
		{1, 2, 5, []string{"n4"}, 1},
		{1, 2, 6, nil, 0},
		{2, 2, 6, nil, 0},
		{1, 0, 3, []string{"n4", "n3", "n2"}, 3},
	} {
		found, total := page(c.number, c.size, c.from)
		require.Equal(t, c.found, found)
		require.Equal(t, c.total, total)
	}
}
