package projections

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/internal/test/pgtest"
)

// A copied value equals the one that Postgres parses from text.
func TestCopyTakesAnyValue(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.exec(t, `create table public.copied (nth bigint, small smallint, whole integer, big bigint, yes boolean, none text, text text,
		day date, at timestamptz, cash numeric(38,2), fine numeric(38,3), any_scale numeric)`)
	type row struct {
		small int16
		whole int32
		big   int64
		text  string
		day   unit.Date
		at    time.Time
		cash  int64
		huge  *big.Int
	}
	numbers := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-20_000, 20_000), rapid.Map(rapid.IntRange(0, 18), func(n int) int64 {
		return int64(math.Pow10(n))
	}), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0, 1, -1, 99, 100, 9999, 10000, 999_999, 1_000_000}))
	rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) row {
		return row{
			small: rapid.Int16().Draw(t, "small"), whole: rapid.Int32().Draw(t, "whole"), big: rapid.Int64().Draw(t, "big"),
			text: strings.ToValidUTF8(strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", ""), "?"),
			day:  unit.Date(rapid.Int32Range(-100_000, 1_000_000).Draw(t, "day")),
			at:   time.UnixMicro(rapid.Int64Range(-1e15, 1e16).Draw(t, "at")).UTC(),
			cash: numbers.Draw(t, "cash"), huge: new(big.Int).Mul(big.NewInt(numbers.Draw(t, "huge")), big.NewInt(numbers.Draw(t, "times"))),
		}
	}), 1, 40)
	rapid.Check(t, func(rt *rapid.T) {
		all := rows.Draw(rt, "rows")
		require.NoError(t, pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
			return CopyInto(t.Context(), tx, `public.copied`, len(all), func(c *Copy, i int) {
				v := all[i]
				c.Bigint(int64(i))
				c.Smallint(v.small)
				c.Integer(v.whole)
				c.Bigint(v.big)
				c.Boolean(i%2 == 0)
				c.Null()
				c.Text(v.text)
				c.Date(v.day)
				c.Timestamptz(v.at)
				c.Numeric(v.cash, 2)
				c.Numeric(v.cash, 3)
				c.BigNumeric(v.huge, 3)
			})
		}))
		for i, v := range all {
			got := make([]string, 10)
			require.NoError(t, r.pool.QueryRow(t.Context(), `select small::text, whole::text, big::text, yes::text, text, day::text,
				(extract(epoch from at) * 1000000)::bigint::text, cash::text, fine::text, any_scale::text from public.copied where nth = $1
					and none is null`, i).
				Scan(&got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6], &got[7], &got[8], &got[9]))
			places := func(n *big.Int, places int32) string { return decimal.NewFromBigInt(n, -places).StringFixed(places) }
			require.Equal(t, []string{
				strconv.Itoa(int(v.small)), strconv.Itoa(int(v.whole)), strconv.FormatInt(v.big, 10), strconv.FormatBool(i%2 == 0), v.text,
				postgresDate(t, r, v.day),
				strconv.FormatInt(v.at.UnixMicro(), 10), places(big.NewInt(v.cash), 2), places(big.NewInt(v.cash), 3), places(v.huge, 3),
			}, got)
		}
		r.exec(t, `truncate public.copied`)
	})
}

// postgresDate formats a date as Postgres does, with five digits after the year 9999.
func postgresDate(t *testing.T, r *fixture, d unit.Date) string {
	t.Helper()
	return pgtest.Value[string](t, r.pool, `select (date '1970-01-01' + $1::int)::text`, int32(d))
}

func TestCopyEncodesRowsInChunks(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.exec(t, `create table public.copied (n bigint, text text)`)
	long := strings.Repeat("₹", copyChunk) // each takes more than a chunk
	for n, text := range map[int]string{0: "none", 1: "one", 5: long, 100_000: "short"} {
		require.NoError(t, pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
			return CopyInto(t.Context(), tx, `public.copied`, n, func(c *Copy, i int) {
				c.Bigint(int64(i))
				c.Text(text)
			})
		}))
		require.EqualValues(t, n, r.exec(t, `delete from public.copied where text = '`+text+`'`))
	}
	require.Zero(t, r.exec(t, `delete from public.copied`))
}

// A name that begins with a dash deletes the last row. A name that begins with a plus renames all rows.
func TestRowsAreCountedAsTheyChange(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
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
