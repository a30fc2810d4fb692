package readmodels

import (
	"fmt"
	"strings"

	"bahi/domain/wording"
)

// mostAsked is how many words of a search count.
const mostAsked = 8

// Search returns the SQL of a search for records that have each of the words that were asked for, or a word that is like it: of all trigrams
// of the two, at least two in five are common. A word with a digit is only itself. It selects the columns of table, called r, and how well a record fits as rank. The projection has the
// words of records in the array words, those that count twice in name_words, and their trigrams in the table gram. The SQL has parameters from $first on,
// which are args. Without a word nothing is found.
func Search(projection, table, columns, where, asked string, first int) (sql string, args []any) {
	words := wording.Words(asked)
	words = words[:min(len(words), mostAsked)]
	var (
		grams       []string
		nths, sizes []int32
		each        = []string{where}
	)
	for i, word := range words {
		of := wording.Grams(word)
		for _, gram := range of {
			grams, nths, sizes = append(grams, gram), append(nths, int32(i)), append(sizes, int32(len(of)))
		}
		each = append(each, fmt.Sprintf(`r.words && (select array_agg(word) from near where nth = %d)`, i))
	}
	if len(words) == 0 {
		each = append(each, "false")
	}
	return fmt.Sprintf(`
		with near as materialized (
			select a.nth, g.word, count(*)::float8 / (a.size + g.size - count(*)) as likeness
			from unnest($%[5]d::text[], $%[6]d::int[], $%[7]d::int[]) a (gram, nth, size) join %[1]s.gram g on g.gram = a.gram
			group by a.nth, a.size, g.word, g.size
			having 5 * count(*) >= 2 * (a.size + g.size - count(*))
			union all
			select a.nth - 1, a.word, 1 from unnest($%[8]d::text[]) with ordinality a (word, nth)
		)
		select %[3]s, rank
		from %[1]s.%[2]s r cross join lateral (
			select coalesce(sum(best), 0) as rank
			from (
				select max(case when near.word = any(r.name_words) then 2 * likeness else likeness end) as best
				from near where near.word = any(r.words) group by near.nth
			) fits
		) fit
		where %[4]s`, projection, table, columns, strings.Join(each, " and "), first, first+1, first+2, first+3), []any{grams, nths, sizes, words}
}
