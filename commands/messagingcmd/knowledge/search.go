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

// Passage is a found chunk.
type Passage struct {
	Source   int64
	Nth      int32
	Text     string
	Score    float64 // of the fusion, higher is better
	Coverage float64 // share of the question's words in it, weighted by rarity, 0 to 1
}

const (
	fusion       = 60 // k of reciprocal rank fusion (CONTRACT.md 8.11)
	maxWords     = 40 // of a question
	maxCovered   = 24 // chunks with compared words
	maxNear      = 50 // chunks with near vectors
	similar      = 45 // minimum percentage of common trigrams of two similar words
	maxSimilar   = 8  // similar words of a word
	maxTogether  = 6  // words that are sought together in one chunk
	inflectedFit = 0.95
)

// word is a word of a question, with its matches in a bot's chunks.
type word struct {
	text   string
	terms  []string  // matching terms
	fits   []float64 // quality of each match
	chunks int64     // number of chunks with one of them
	weight float64   // by rarity
}

// Search returns the passages of a bot's files and pages that match a question best.
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
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Coverage, a.Coverage), cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Nth, b.Nth))
	})
	all = all[:min(len(all), most)]
	return all, s.read(ctx, all)
}

// words returns the words of a question with their matches in the bot's chunks, and the number of chunks.
func (s *Store) words(ctx context.Context, bot int64, question string) (words []word, total int64, err error) {
	var texts, heads, meant []string
	var of []int32 // the words that have the meanings
	for text := range terms(question) {
		if empty[text] || slices.Contains(texts, text) || len(texts) == maxWords {
			continue
		}
		texts, heads, words = append(texts, text), append(heads, head(text)), append(words, word{text: text})
		for _, other := range meaning(text) {
			of, meant = append(of, int32(len(texts)-1)), append(meant, other)
		}
	}
	if len(texts) == 0 {
		return nil, 0, nil
	}
	// A word without a stem is an English stop word. In scripts without stemming, similar words with the same beginning
	// match too.
	rows, _ := s.Pool.Query(ctx, `
		with asked as (
			select n - 1 as n, word, head, case when word ~ '^[ -~]+$' then ts_lexize('english_stem', word) end as stem from unnest($2::text[],
				$3::text[]) with ordinality a (word, head, n)
		)
		select -1::bigint, '', chunks, 1::float8 from knowledge.term where bot_id = $1 and word = ''
		union all select n, '', 0, 1 from asked where stem = '{}'
		union all select a.n, t.word, t.chunks, 1 from asked a join knowledge.term t on t.bot_id = $1 and (t.word = a.word
			or t.word = any(a.stem))
		union all
		select a.n, t.word, t.chunks, 0 from asked a join knowledge.term t on t.bot_id = $1 and t.word between a.head and a.head || $4
			and t.word <> a.word where a.stem is null
		union all
		select m.n, t.word, t.chunks, $5 from unnest($6::int[], $7::text[]) m (n, word) join knowledge.term t on t.bot_id = $1
			and t.word = any(ts_lexize('english_stem', m.word) || m.word)
		where m.word ~ '^[ -~]+$'
		union all
		select m.n, t.word, t.chunks, $5 from unnest($6::int[], $7::text[]) m (n, word) join knowledge.term t on t.bot_id = $1
			and t.word between m.word and m.word || $4
		where m.word !~ '^[ -~]+$' and length(t.word) <= length(m.word) + $8`, bot, texts, heads, string(utf8.MaxRune), synonymFit,
		of, meant, maxEnding)
	known, err := collected(rows, words, &total)
	if err != nil {
		return nil, 0, err
	}
	// Without any match, all similar words match.
	var unknown []int32
	var seeks []string
	grams := trigrams{bot, map[string]int64{}}
	for i, w := range words {
		if !known[i] && w.text != "" && !numbered(w.text) {
			for _, key := range grams.seekers(w.text) {
				unknown, seeks = append(unknown, int32(i)), append(seeks, strconv.FormatInt(key, 10))
			}
		}
	}
	if total > 0 && len(unknown) > 0 {
		rows, _ := s.Pool.Query(ctx, `
			select n, word, chunks, 0::float8 from (select n, array_agg(seek::bigint) as seeks from unnest($2::int[], $3::text[]) a (n, seek)
				group by n) a
			join knowledge.term t on t.bot_id + 0 = $1 and t.seeks && a.seeks`, bot, unknown, seeks)
		if _, err := collected(rows, words, &total); err != nil {
			return nil, 0, err
		}
	}
	words = slices.DeleteFunc(words, func(w word) bool { return w.text == "" })
	for i := range words {
		has := float64(min(max(words[i].chunks, 1), total)) // an unknown word counts as rare as the rarest
		words[i].weight = math.Log(1 + (float64(total)-has+0.5)/(has+0.5))
	}
	return words, total, nil
}

// collected adds the terms in rows to the words that they match. It reports which words match a term other than a synonym. It compares
// terms with fit 0, and the most similar ones match.
func collected(rows pgx.Rows, words []word, total *int64) (known []bool, err error) {
	type like struct {
		term   string
		chunks int64
		fit    float64
	}
	alike := make([][]like, len(words))
	known = make([]bool, len(words))
	add := func(n int64, l like) {
		w := &words[n]
		w.terms, w.fits, w.chunks = append(w.terms, l.term), append(w.fits, l.fit), w.chunks+l.chunks
	}
	var n int64
	var l like
	if _, err = pgx.ForEachRow(rows, []any{&n, &l.term, &l.chunks, &l.fit}, func() error {
		switch {
		case n < 0:
			*total = l.chunks
		case l.term == "":
			words[n].text = ""
		case l.fit > 0:
			add(n, l)
			known[n] = known[n] || l.fit == 1
		default:
			if common, of := alikeness(words[n].text, l.term); bare(words[n].text) == bare(l.term) {
				l.fit = inflectedFit
				alike[n] = append(alike[n], l)
			} else if 100*common >= similar*of {
				l.fit = float64(common) / float64(of)
				alike[n] = append(alike[n], l)
			}
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("look up the words of a question: %w", err)
	}
	for n, all := range alike {
		slices.SortFunc(all, func(a, b like) int { return cmp.Or(cmp.Compare(b.fit, a.fit), cmp.Compare(a.term, b.term)) })
		for _, l := range all[:min(len(all), maxSimilar)] {
			add(int64(n), l)
			known[n] = true
		}
	}
	return known, nil
}

// bare returns a Devanagari or Gujarati word without the final vowels of number and case, and a Gujarati one without its postposition.
func bare(word string) string {
	for _, ending := range []string{"ની", "નો", "નું", "ના", "ને", "માં", "થી"} {
		if rest, is := strings.CutSuffix(word, ending); is && utf8.RuneCountInString(rest) > minKnown {
			word = rest
			break
		}
	}
	return strings.TrimRight(word, "\u093e\u0947\u094b\u0902\u0901\u0abe\u0ac7\u0acb\u0ac1\u0a82\u0a81")
}

// alikeness returns the number of trigrams that two words have in common, and the number of all trigrams of both.
func alikeness(one, other string) (common, of int) {
	a, b := wording.Grams(one), wording.Grams(other)
	for _, gram := range a {
		if slices.Contains(b, gram) {
			common++
		}
	}
	return common, len(a) + len(b) - common
}

// head returns the beginning of a word without its ending.
func head(word string) string {
	runes := []rune(word)
	return string(runes[:max(min(minKnown, len(runes)), len(runes)-maxEnding)])
}

// covering returns the chunks in which the words have the greatest weight, the best first. Of equal chunks, the chunk with more occurrences
// is first.
func (s *Store) covering(ctx context.Context, bot int64, words []word) ([]Passage, error) {
	byRarity := slices.DeleteFunc(slices.Clone(words), func(w word) bool { return len(w.terms) == 0 })
	slices.SortStableFunc(byRarity, func(a, b word) int { return cmp.Compare(a.chunks, b.chunks) })
	if len(byRarity) == 0 {
		return nil, nil
	}
	sum := 0.0
	for _, w := range words {
		sum += w.weight
	}
	keys := make([][]int64, len(byRarity)) // of the terms of each word
	for i, w := range byRarity {
		for _, term := range w.terms {
			keys[i] = append(keys[i], key(bot, term))
		}
	}
	// Reading the index takes most of the time, so the steps end when there are enough chunks. If words of two bots have
	// the same key, the join still excludes the other bot's chunks. The sum keeps the planner from using the index of
	// bots.
	rows, err := s.Pool.Query(ctx, `
		select c.source_id, c.nth, c.marks from (
			select distinct source_id, nth from (
				select c.source_id, c.nth from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) l (a, b, c, d, e, f)
				cross join lateral (
					select source_id, nth from knowledge.chunk where bot_id + 0 = $1
					and keys && l.a::bigint[] and keys && l.b::bigint[] and keys && l.c::bigint[] and keys && l.d::bigint[] and keys && l.e::bigint[]
						and keys && l.f::bigint[] limit $8
				) c limit $8
			) c
		) found join knowledge.chunk c using (source_id, nth)`, append(append([]any{bot}, ladder(keys, byRarity)...), maxCovered)...)
	if err != nil {
		return nil, fmt.Errorf("search the chunks of bot %d: %w", bot, err)
	}
	type candidate struct {
		Passage
		times int64
	}
	var all []candidate
	var c candidate
	var marks []byte
	if _, err := pgx.ForEachRow(rows, []any{&c.Source, &c.Nth, &marks}, func() error {
		c.Coverage, c.times = 0, 0
		for i, w := range byRarity {
			best := 0.0 // the best matching form of a word counts
			for j, key := range keys[i] {
				if times := timesOf(marks, key); times > 0 {
					best = max(best, w.fits[j])
					c.times += times
				}
			}
			c.Coverage += w.weight * best
		}
		c.Coverage /= sum
		all = append(all, c)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("search the chunks of bot %d: %w", bot, err)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Coverage, a.Coverage), cmp.Compare(b.times, a.times), cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Nth, b.Nth))
	})
	found := make([]Passage, len(all))
	for i, c := range all {
		found[i] = c.Passage
	}
	return found, nil
}

// ladder returns the search conditions in steps. The first step requires one key of each of several words. Each next step drops the most
// frequent word, and the last steps require one single word. There is one step if few chunks have any of the words. A step is one element
// of each list.
func ladder(keys [][]int64, byRarity []word) []any {
	var steps [maxTogether][]string
	step := func(all ...[]int64) {
		for i := range steps {
			steps[i] = append(steps[i], literal(all[min(i, len(all)-1)]))
		}
	}
	chunks := int64(0)
	for _, w := range byRarity {
		chunks += w.chunks
	}
	if chunks <= maxCovered {
		step(slices.Concat(keys...))
	} else {
		for n := min(len(keys), maxTogether); n > 1; n-- {
			step(keys[:n]...)
		}
		for _, of := range keys {
			step(of)
		}
	}
	lists := make([]any, len(steps))
	for i, list := range steps {
		lists[i] = list
	}
	return lists
}

// literal returns keys in the text format of Postgres arrays.
func literal(keys []int64) string {
	text := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, key, 10)
	}
	return string(append(text, '}'))
}

// read loads the texts.
func (s *Store) read(ctx context.Context, passages []Passage) error {
	sources, nths := make([]int64, len(passages)), make([]int32, len(passages))
	for i, p := range passages {
		sources[i], nths[i] = p.Source, p.Nth
	}
	rows, err := s.Pool.Query(ctx, `
		select a.n, c.text from unnest($1::bigint[], $2::int[]) with ordinality a (source_id, nth, n) join knowledge.chunk c using (source_id,
			nth)`, sources, nths)
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
