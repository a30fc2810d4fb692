package knowledge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"bahi/domain/wording"
)

// Passage is a chunk that was found.
type Passage struct {
	Source   int64
	Nth      int32
	Text     string
	Score    float64 // of the fusion; a greater one is better
	Coverage float64 // the part of the question's words that it has, by their rarity, 0 to 1
}

const (
	fusion      = 60   // k of reciprocal rank fusion (CONTRACT.md 8.11)
	mostWords   = 40   // of a question
	mostCovered = 24   // chunks that are compared by their words
	mostNear    = 50   // chunks that are near by their vectors
	similar     = 0.45 // a mistyped or inflected word counts from this part of common trigrams
)

// word is a word of a question, and what it is in a bot's chunks.
type word struct {
	text   string
	terms  []string  // that may be there in its place
	fits   []float64 // how well each of them does
	chunks int64     // that have one of them
	weight float64   // by rarity
}

// Search returns the passages of a bot's files and pages that belong best to a question.
func (s *Store) Search(ctx context.Context, bot int64, question string, most int) ([]Passage, error) {
	words, total, err := s.words(ctx, bot, question)
	if err != nil || total == 0 {
		return nil, err
	}
	found, err := s.covering(ctx, bot, words)
	if err != nil {
		return nil, err
	}
	score := map[[2]int64]*Passage{}
	add := func(p Passage, rank int) {
		key := [2]int64{p.Source, int64(p.Nth)}
		if score[key] == nil {
			score[key] = &p
		}
		score[key].Score += 1 / float64(fusion+rank+1)
	}
	for rank, p := range found {
		add(p, rank)
	}
	if s.Model.Embeds() != "" {
		near, err := s.near(ctx, bot, question)
		if err != nil {
			return nil, err
		}
		for rank, p := range near {
			add(p, rank)
		}
	}
	all := make([]Passage, 0, len(score))
	for _, p := range score {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Passage) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Coverage, a.Coverage), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Nth, b.Nth))
	})
	all = all[:min(len(all), most)]
	return all, s.read(ctx, all)
}

// What part of the trigrams of a term t and a word a of the question are in both.
const (
	shared   = ` cross join lateral (select count(*) as shared from unnest(t.grams) g where g = any(a.grams)) s`
	likeness = `s.shared::float8 / greatest(cardinality(t.grams) + cardinality(a.grams) - s.shared, 1)`
)

// words returns the words of a question with what they are in the bot's chunks, and how many chunks there are.
func (s *Store) words(ctx context.Context, bot int64, question string) (words []word, total int64, err error) {
	var texts, heads, grams, seeks, meant []string
	var of []int32 // the words that have the meanings
	for text := range terms(question) {
		if empty[text] || slices.Contains(texts, text) || len(texts) == mostWords {
			continue
		}
		all := wording.Grams(text)
		// Who has so many of a word's trigrams in common has one of these; the first ones of a word are those of many others.
		seek := slices.Clone(all[len(all)-min(len(all), int((1-similar)*float64(len(all)))+1):])
		for i, gram := range seek {
			seek[i] = ofBot(bot, gram)
		}
		texts, heads, grams, seeks = append(texts, text), append(heads, head(text)), append(grams, strings.Join(all, "\n")), append(seeks, strings.Join(seek, "\n"))
		for _, other := range meaning(text) {
			of, meant = append(of, int32(len(texts))), append(meant, other)
		}
	}
	if len(texts) == 0 {
		return nil, 0, nil
	}
	// Without a stem, a word is one of English that means nothing. In the scripts whose words have no stems here, words that begin alike and are similar
	// count too; and where there is none of all these, any that are similar.
	rows, err := s.Pool.Query(ctx, `
		with asked as (
			select n, word, head, string_to_array(grams, E'\n') as grams, string_to_array(seek, E'\n') as seek,
				case when word ~ '^[ -~]+$' then ts_lexize('english_stem', word) end as stem
			from unnest($2::text[], $3::text[], $4::text[], $5::text[]) with ordinality a (word, head, grams, seek, n)
		), known as (
			select a.n, t.word, t.chunks, 1::float8 as fit from asked a join knowledge.term t on t.bot_id = $1 and (t.word = a.word or t.word = any(a.stem))
			union all
			select a.n, t.* from asked a cross join lateral (
				select t.word, t.chunks, `+likeness+` as fit from knowledge.term t`+shared+`
				where t.bot_id = $1 and t.word between a.head and a.head || $6 and t.word <> a.word order by fit desc limit 8
			) t where a.stem is null and t.fit >= $7
		)
		select 0::bigint, '', chunks, 1::float8 from knowledge.term where bot_id = $1 and word = ''
		union all select -n, '', 0, 0 from asked where stem = '{}'
		union all select n, word, chunks, fit from known
		union all
		select m.n, t.word, t.chunks, $8 from unnest($9::int[], $10::text[]) m (n, word) join knowledge.term t on t.bot_id = $1 and t.word = any(ts_lexize('english_stem', m.word) || m.word)
		where m.word ~ '^[ -~]+$'
		union all
		select m.n, t.word, t.chunks, $8 from unnest($9::int[], $10::text[]) m (n, word) join knowledge.term t on t.bot_id = $1 and t.word between m.word and m.word || $6
		where m.word !~ '^[ -~]+$' and length(t.word) <= length(m.word) + $11
		union all
		select a.n, t.* from asked a cross join lateral (
			select t.word, t.chunks, `+likeness+` as fit from knowledge.term t`+shared+` where t.bot_id = $1 and knowledge.of_bot(t.bot_id, t.grams) && a.seek order by fit desc limit 8
		) t where t.fit >= $7 and a.word !~ '[0-9]' and not exists (select from known k where k.n = a.n)`,
		bot, texts, heads, grams, seeks, string(utf8.MaxRune), similar, synonymFit, of, meant, mostEnding)
	if err != nil {
		return nil, 0, fmt.Errorf("look up the words of a question: %w", err)
	}
	words = make([]word, len(texts))
	for i, text := range texts {
		words[i].text = text
	}
	var (
		n, chunks int64
		term      string
		fit       float64
	)
	if _, err = pgx.ForEachRow(rows, []any{&n, &term, &chunks, &fit}, func() error {
		switch {
		case n == 0:
			total = chunks
		case n < 0:
			words[-n-1].text = ""
		default:
			w := &words[n-1]
			w.terms, w.fits, w.chunks = append(w.terms, term), append(w.fits, fit), w.chunks+chunks
		}
		return nil
	}); err != nil {
		return nil, 0, fmt.Errorf("look up the words of a question: %w", err)
	}
	words = slices.DeleteFunc(words, func(w word) bool { return w.text == "" })
	for i := range words {
		has := float64(min(max(words[i].chunks, 1), total)) // a word that nobody wrote is as rare as the rarest
		words[i].weight = math.Log(1 + (float64(total)-has+0.5)/(has+0.5))
	}
	return words, total, nil
}

// head returns how a word begins whatever its ending is.
func head(word string) string {
	runes := []rune(word)
	return string(runes[:max(min(leastKnown, len(runes)), len(runes)-mostEnding)])
}

// covering returns the chunks that have most of the words by weight, the best first.
func (s *Store) covering(ctx context.Context, bot int64, words []word) ([]Passage, error) {
	byRarity := slices.DeleteFunc(slices.Clone(words), func(w word) bool { return len(w.terms) == 0 })
	slices.SortStableFunc(byRarity, func(a, b word) int { return cmp.Compare(a.chunks, b.chunks) })
	var every []string
	var of []int32                                                                            // the word of each term
	var fits []float64                                                                        // and how well the term fits
	anyOf, weights, sum := make([]string, len(byRarity)), make([]float64, len(byRarity)), 0.0 // the terms of each word, as the index has them
	for _, w := range words {
		sum += w.weight
	}
	for i, w := range byRarity {
		weights[i] = w.weight
		indexed := make([]string, len(w.terms))
		for j, term := range w.terms {
			indexed[j] = quote(ofBot(bot, term))
			every, of, fits = append(every, quote(term)), append(of, int32(i)), append(fits, w.fits[j])
		}
		anyOf[i] = "(" + strings.Join(indexed, " | ") + ")"
	}
	if len(every) == 0 {
		return nil, nil
	}
	// Of a word that may be there in several forms, the form that fits best counts. To read the index and to unpack the words of a chunk is most of the work,
	// so that the queries end when there are enough chunks, and the words are copied.
	rows, err := s.Pool.Query(ctx, `
		with found as materialized (
			select distinct source_id, nth from (
				select c.source_id, c.nth from unnest($1::text[]) l (step)
				cross join lateral (select source_id, nth from knowledge.chunk where knowledge.of_bot(bot_id, words) @@ l.step::tsquery limit $7) c limit $7
			) c
		), near as materialized (
			select source_id, nth, words || '' as words from found join knowledge.chunk using (source_id, nth)
		), term as materialized (select term::tsquery as term, n, fit from unnest($3::text[], $4::int[], $5::float8[]) t (term, n, fit))
		select source_id, nth, covered
		from near cross join lateral (
			select sum(w.weight * best) as covered from (select n, max(fit) as best from term where near.words @@ term.term group by n) hit
			join unnest($6::float8[]) with ordinality w (weight, n) on w.n = hit.n + 1
		) c
		order by covered desc, ts_rank_cd(words, $2::text::tsquery) desc, source_id, nth`,
		ladder(anyOf, byRarity), strings.Join(every, " | "), every, of, fits, weights, mostCovered)
	if err != nil {
		return nil, fmt.Errorf("search the chunks of bot %d: %w", bot, err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Passage, err error) {
		err = row.Scan(&p.Source, &p.Nth, &p.Coverage)
		p.Coverage /= sum
		return p, err
	})
}

// ladder returns queries for chunks, the best ones first: those that have all words, then those without the most frequent one, and so on to each word alone.
// Where few chunks have any of the words, it is one query.
func ladder(anyOf []string, byRarity []word) (steps []string) {
	chunks := int64(0)
	for _, w := range byRarity {
		chunks += w.chunks
	}
	if chunks <= mostCovered {
		return []string{strings.Join(anyOf, " | ")}
	}
	for n := len(anyOf); n > 1; n-- {
		steps = append(steps, strings.Join(anyOf[:n], " & "))
	}
	return append(steps, anyOf...)
}

// ofBot returns a word of a bot as the indexes have it.
func ofBot(bot int64, word string) string { return strconv.FormatInt(bot, 10) + " " + word }

// quote returns a term as a tsquery has it.
func quote(term string) string {
	return "'" + strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(term) + "'"
}

// read adds the texts.
func (s *Store) read(ctx context.Context, passages []Passage) error {
	sources, nths := make([]int64, len(passages)), make([]int32, len(passages))
	for i, p := range passages {
		sources[i], nths[i] = p.Source, p.Nth
	}
	rows, err := s.Pool.Query(ctx, `
		select a.n, c.text from unnest($1::bigint[], $2::int[]) with ordinality a (source_id, nth, n) join knowledge.chunk c using (source_id, nth)`, sources, nths)
	if err != nil {
		return fmt.Errorf("read passages: %w", err)
	}
	var n int
	var text string
	_, err = pgx.ForEachRow(rows, []any{&n, &text}, func() error {
		passages[n-1].Text = text
		return nil
	})
	return err
}
