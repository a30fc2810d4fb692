package projections

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
)

// A name that begins with a dash removes the last one; one that begins with a plus renames all.
func TestRowsAreCountedAsTheyChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tallied := Define("names", 1, `create table name (position bigint primary key, name text, long boolean not null, gone boolean not null);`+
		"\n-- after fill\n"+
		RowCountDDL("name", "not gone", "name?", "long"),
		On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
			switch name := e.Data.Name; name[0] {
			case '-':
				b.Exec(`delete from name where position = (select max(position) from name)`)
			case '+':
				b.Exec(`update name set name = nullif($1, ''), gone = position = 1`, name[1:])
			default:
				b.Exec(`insert into name select $1, $2, length($2) > 3, false`, int64(e.Position), name)
			}
		}))
	r.add(t, "Ant", "Bee", "Ant", "Wasp")
	p := r.serve(t, tallied)
	p.reached("names", 4)
	counts := func() (all []string) {
		rows, err := r.pool.Query(t.Context(), `select concat_ws(' ', name, long, rows) from names_g1.name_tally order by 1`)
		require.NoError(t, err)
		for rows.Next() {
			var one string
			require.NoError(t, rows.Scan(&one))
			all = append(all, one)
		}
		require.NoError(t, rows.Err())
		return all
	}
	for _, c := range []struct {
		name  string
		found []string
	}{
		{"Bee", []string{"Ant f 2", "Bee f 2", "Wasp t 1"}},
		{"-", []string{"Ant f 2", "Bee f 1", "Wasp t 1"}},
		{"-", []string{"Ant f 2", "Bee f 1"}},
		{"+Fly", []string{"Fly f 2"}},
		{"+", []string{" f 2"}},
		{"-", []string{" f 1"}},
		{"-", nil},
	} {
		r.add(t, c.name)
		p.reached("names", r.head(t))
		require.Equal(t, c.found, counts(), c.name)
	}
	p.stop()
	r.exact(t, tallied)
}
