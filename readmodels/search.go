package readmodels

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"bahi/domain/wording"
)

const (
	// maxAsked is how many words of a search count.
	maxAsked = 8

	// firstLooked is how many of the first records are looked at for those that fit best, before all that fit are ranked.
	firstLooked = 1000
)

// Search is a search for records that have each of the words that were asked for, or a word that is like it: of all trigrams of the two, at
// least two in five are common. A word with a digit is only itself. The best record is the one with the most likely words, where one in the
// name counts twice. Without a word nothing is found.
type Search struct {
	Projection string // which has the trigrams of words in the table gram
	Table      string // called r, with the words of a record in the array words, and those that count twice in name_words
	Columns    string // of r, with those of Order
	Where      string
	Order      string // of records that fit equally well, by columns of r without its name
	Asked      string
	Args       pgx.NamedArgs // of Where
}

// Find returns a page of what a search finds, the best first, and how much it finds. as reads a row's first columns: its rank and the total
// are behind them.
func Find[T any](ctx context.Context, t Tables, page Page, as pgx.RowToFunc[T], s Search) (rows []T, total int64, err error) {
	sql, args := s.sql()
	read := func(skip int64) (err error) {
		args["limit"], args["skip"] = int64(page.Size), skip
		rows, err = Rows(ctx, t, func(row pgx.CollectableRow) (T, error) {
			into := make([]any, len(row.FieldDescriptions()))
			into[len(into)-1] = &total
			if err := row.Scan(into...); err != nil {
				var none T
				return none, err
			}
			return as(row)
		}, sql, args)
		return err
	}
	if err := read(page.Offset()); err != nil || len(rows) > 0 || page.Offset() == 0 {
		return rows, total, err
	}
	err = read(0) // a page beyond the end has no row that could count the others
	return nil, total, err
}

// sql returns the SQL of a page, and its parameters without limit and skip.
func (s Search) sql() (string, pgx.NamedArgs) {
	words := wording.Words(s.Asked)
	words = words[:min(len(words), maxAsked)]
	var (
		grams       []string
		nths, sizes []int32
		fits        = []string{s.Where}
		ranks       = []string{"0"}
		exact       = "r.name_words @> @words"
	)
	for i, word := range words {
		of := wording.Grams(word)
		for _, gram := range of {
			grams, nths, sizes = append(grams, gram), append(nths, int32(i)), append(sizes, int32(len(of)))
		}
		fits = append(fits, fmt.Sprintf(`r.words && (select array_agg(word) from near where nth = %d)`, i))
		ranks = append(ranks, fmt.Sprintf(`case when r.name_words @> array[(@words::text[])[%d]] then 2 else (
			select max(case when near.word = any(r.name_words) then 2 * likeness else likeness end) from near where nth = %d and near.word = `+
			`any(r.words)) end`, i+1, i))
	}
	if len(words) == 0 {
		fits, exact = append(fits, "false"), "false"
	}
	args := pgx.NamedArgs{"grams": grams, "nths": nths, "sizes": sizes, "words": words}
	maps.Copy(args, s.Args)
	// Nothing fits better than records whose names have all words: where the first ones fill the page, the others need not be ranked.
	return strings.NewReplacer(
		"{projection}", s.Projection, "{table}", s.Projection+"."+s.Table, "{columns}", s.Columns, "{where}", s.Where, "{order}", s.Order,
		"{fits}", strings.Join(fits, " and "), "{rank}", strings.Join(ranks, " + "), "{exact}", exact, "{best}", fmt.Sprint(2*len(words)),
		"{looked}", fmt.Sprint(firstLooked),
	).Replace(`
		with near as materialized (
			select a.nth, g.word, count(*)::float8 / (a.size + g.size - count(*)) as likeness
			from unnest(@grams::text[], @nths::int[], @sizes::int[]) a (gram, nth, size) join {projection}.gram g on g.gram = a.gram
			group by a.nth, a.size, g.word, g.size
			having 5 * count(*) >= 2 * (a.size + g.size - count(*))
			union all
			select a.nth - 1, a.word, 1 from unnest(@words::text[]) with ordinality a (word, nth)
		), best as materialized (
			select {columns}, {best}::float8 as rank from (select r.* from {table} r where {where} order by {order} limit {looked}) r where {exact}
				limit @limit::bigint + @skip::bigint
		)
		select page.*, (select count(*) from {table} r where {fits}) from (
			select * from best where (select count(*) from best) = @limit::bigint + @skip::bigint
			union all
			select {columns}, ({rank})::float8 as rank from {table} r where {fits} and (select count(*) from best) < @limit::bigint + @skip::bigint
		) page order by rank desc, {order} limit @limit::bigint offset @skip::bigint`), args
}
