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
	// maxAsked is the maximum number of used words of a search.
	maxAsked = 8

	// firstLooked is the number of first records in which the best matches are searched before all matches are ranked.
	firstLooked = 1000
)

// Search finds records that have each of the searched words or a similar word. Two words are similar if at least two in five of their
// trigrams are common. A word with a digit has no similar words. The record with the most similar words ranks first. A word in the name
// counts twice. A search without words finds nothing.
type Search struct {
	Projection string // projection with the trigrams of words in the table trigram
	Table      string // named r in SQL; its array words has the words of a record, and name_words those that count twice
	Columns    string // columns of r, with those of Order
	Where      string
	Order      string // order of equally good records, by columns of r without the prefix
	Asked      string
	Args       pgx.NamedArgs // arguments of Where
}

// Find returns a page of the found records, the best first, and the number of all. as reads a row's first columns. The rank and the total
// follow them.
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
	err = read(0) // a page beyond the end has no row with the total
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
	// Records with all words in their names are the best matches. If they fill the page, the others need no rank.
	return strings.NewReplacer(
		"{projection}", s.Projection, "{table}", s.Projection+"."+s.Table, "{columns}", s.Columns, "{where}", s.Where, "{order}", s.Order,
		"{fits}", strings.Join(fits, " and "), "{rank}", strings.Join(ranks, " + "), "{exact}", exact, "{best}", fmt.Sprint(2*len(words)),
		"{looked}", fmt.Sprint(firstLooked),
	).Replace(`
		with near as materialized (
			select a.nth, g.word, count(*)::float8 / (a.size + g.size - count(*)) as likeness
			from unnest(@grams::text[], @nths::int[], @sizes::int[]) a (gram, nth, size) join {projection}.trigram g on g.gram = a.gram
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
