package knowledge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"bahi/domain/wording"
)

// Passage is a found chunk.
type Passage struct {
	Source   int64
	Ordinal  int32
	Text     string
	Score    float64 // result of the reciprocal rank fusion; higher is better
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
	text    string
	matches []match
	chunks  int64   // number of chunks with one of the matches
	weight  float64 // by rarity
}

// match is a bot's word that matches a word of a question.
type match struct {
	term   string
	chunks int64   // with the term
	fit    float64 // quality of the match
}

func (w *word) add(matches ...match) {
	w.matches = append(w.matches, matches...)
	for _, m := range matches {
		w.chunks += m.chunks
	}
}

// addSimilar adds those terms that are most similar to the word.
func (w *word) addSimilar(all []match) {
	for i, m := range all {
		if common, of := wording.Common([]string{w.text}, []string{m.term}); bare(w.text) == bare(m.term) {
			all[i].fit = inflectedFit
		} else if 100*common >= similar*of {
			all[i].fit = float64(common) / float64(of)
		}
	}
	all = slices.DeleteFunc(all, func(m match) bool { return m.fit == 0 })
	slices.SortFunc(all, func(a, b match) int { return cmp.Or(cmp.Compare(b.fit, a.fit), cmp.Compare(a.term, b.term)) })
	w.add(all[:min(len(all), maxSimilar)]...)
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
		key := [2]int64{p.Source, int64(p.Ordinal)}
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
			cmp.Compare(a.Ordinal, b.Ordinal))
	})
	all = all[:min(len(all), most)]
	return all, s.read(ctx, all)
}

// lookup has the ranges of terms that match the words of a question.
type lookup struct {
	words     []int // that the terms match, by index
	low, high []string
	fits      []float64 // 0: only similar terms match
}

func (l *lookup) add(word int, low, high string, fit float64) {
	l.words, l.low, l.high, l.fits = append(l.words, word), append(l.low, low), append(l.high, high), append(l.fits, fit)
}

// addStemmed adds a term and its stem.
func (l *lookup) addStemmed(word int, term string, fit float64) {
	l.add(word, term, term, fit)
	if stem := wording.Stem(term); stem != term {
		l.add(word, stem, stem, fit)
	}
}

// words returns the words of a question with their matches in the bot's chunks, and the number of chunks.
func (s *Store) words(ctx context.Context, bot int64, question string) (words []word, total int64, err error) {
	const last = string(utf8.MaxRune)
	var asked lookup
	var texts []string
	worded := false // the question has words, perhaps only stop words, so a model may find passages
	for text := range wording.Terms(question) {
		worded = worded || !empty[text]
		if !empty[text] && !wording.IsStop(text) && len(texts) < maxWords && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	for n, text := range hours(texts) {
		words = append(words, word{text: text})
		asked.addStemmed(n, text, 1)
		if !wording.IsASCII(text) { // in scripts without stemming, similar words with the same beginning match too
			asked.add(n, head(text), head(text)+last, 0)
		}
		for _, other := range meaning(text) {
			if wording.IsASCII(other) {
				asked.addStemmed(n, other, synonymFit)
			} else {
				asked.add(n, other, other+last, synonymFit)
			}
		}
	}
	if !worded {
		return nil, 0, nil
	}
	similarTo, known := make([][]match, len(words)), make([]bool, len(words)) // known: a term other than a synonym matches
	rows, _ := s.Pool.Query(ctx, `
		select a.nth - 1, t.word, t.chunks from unnest($2::text[], $3::text[]) with ordinality a (low, high, nth)
		join knowledge.term t on t.bot_id = $1 and t.word between a.low and a.high
		union all select -1, '', chunks from knowledge.term where bot_id = $1 and word = ''`, bot, asked.low, asked.high)
	var nth int
	var m match
	if _, err = pgx.ForEachRow(rows, []any{&nth, &m.term, &m.chunks}, func() error {
		if nth < 0 {
			total = m.chunks
			return nil
		}
		n, low := asked.words[nth], asked.low[nth]
		m.fit = asked.fits[nth]
		switch {
		case m.fit == 0 && m.term != words[n].text:
			similarTo[n] = append(similarTo[n], m)
		case m.fit == 1, m.fit > 0 && utf8.RuneCountInString(m.term) <= utf8.RuneCountInString(low)+maxEnding:
			words[n].add(m)
			known[n] = known[n] || m.fit == 1
		}
		return nil
	}); err != nil {
		return nil, 0, fmt.Errorf("look up the words of a question: %w", err)
	}
	// Without any match, all similar words match.
	var unknown []int
	var grams []string
	for n, all := range similarTo {
		before := len(words[n].matches)
		words[n].addSimilar(all)
		if !known[n] && len(words[n].matches) == before && !wording.IsNumbered(words[n].text) {
			for _, gram := range wording.RareGrams(words[n].text, similar) {
				unknown, grams = append(unknown, n), append(grams, fmt.Sprintf("%d/%s", bot, gram))
			}
		}
	}
	if total > 0 && len(unknown) > 0 {
		similarTo = make([][]match, len(words))
		rows, _ := s.Pool.Query(ctx, `
			select n, word, chunks from (select n, array_agg(gram) as grams from unnest($1::int[], $2::text[]) a (n, gram) group by n) a
			join knowledge.term on written and word !~ '[0-9]' and knowledge.trigrams(bot_id, word) && a.grams`, unknown, grams)
		m.fit = 0
		if _, err := pgx.ForEachRow(rows, []any{&nth, &m.term, &m.chunks}, func() error {
			similarTo[nth] = append(similarTo[nth], m)
			return nil
		}); err != nil {
			return nil, 0, fmt.Errorf("look up the words of a question: %w", err)
		}
		for n, all := range similarTo {
			words[n].addSimilar(all)
		}
	}
	for i := range words {
		has := float64(min(max(words[i].chunks, 1), total)) // an unknown word counts as rare as the rarest
		words[i].weight = math.Log(1 + (float64(total)-has+0.5)/(has+0.5))
	}
	return words, total, nil
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

// head returns the beginning of a word without its ending.
func head(word string) string {
	runes := []rune(word)
	return string(runes[:max(min(minKnown, len(runes)), len(runes)-maxEnding)])
}

// covering returns the chunks in which the words have the greatest weight, the best first. Of equal chunks, the chunk with more occurrences
// is first.
func (s *Store) covering(ctx context.Context, bot int64, words []word) ([]Passage, error) {
	byRarity := slices.DeleteFunc(slices.Clone(words), func(w word) bool { return len(w.matches) == 0 })
	slices.SortStableFunc(byRarity, func(a, b word) int { return cmp.Compare(a.chunks, b.chunks) })
	if len(byRarity) == 0 {
		return nil, nil
	}
	sum := 0.0
	for _, w := range words {
		sum += w.weight
	}
	var lexemes []string
	var nths []int
	var fits, weights []float64
	for n, w := range byRarity {
		for _, m := range w.matches {
			lexemes, nths = append(lexemes, fmt.Sprintf("%d/%s", bot, m.term)), append(nths, n)
			fits, weights = append(fits, m.fit), append(weights, w.weight)
		}
	}
	// Reading the index takes most of the time, so the steps end when there are enough chunks. With bot_id + 0, Postgres does not
	// use the index of bots. The best matching form of a word counts.
	rows, _ := s.Pool.Query(ctx, `
		select c.source_id, c.ordinal, '', 0::float8, sum(w.weight * w.fit order by w.n) / $3 as coverage from (
			select distinct source_id, ordinal from (
				select c.source_id, c.ordinal from unnest($2::text[]::tsquery[]) query cross join lateral (
					select source_id, ordinal from knowledge.chunk where bot_id + 0 = $1 and words @@ query limit $4
				) c limit $4
			) c
		) found join knowledge.chunk c using (source_id, ordinal) cross join lateral (
			select m.n, m.weight, max(m.fit) as fit, sum(cardinality(l.positions)) as times
			from unnest(c.words) l join unnest($5::text[], $6::int[], $7::float8[], $8::float8[]) m (lexeme, n, fit, weight) using (lexeme)
			group by m.n, m.weight
		) w
		group by c.source_id, c.ordinal order by coverage desc, sum(w.times) desc, c.source_id, c.ordinal`,
		bot, ladder(bot, byRarity), sum, maxCovered, lexemes, nths, fits, weights)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Passage])
	if err != nil {
		return nil, fmt.Errorf("search the chunks of bot %d: %w", bot, err)
	}
	return found, nil
}

// ladder returns the search conditions in steps. The first step requires a match of each of several words. Each next step drops the most
// frequent word, and the last steps require one single word. There is one step if few chunks have any of the words.
func ladder(bot int64, byRarity []word) (steps []string) {
	terms := make([][]string, len(byRarity))
	chunks := int64(0)
	for n, w := range byRarity {
		for _, m := range w.matches {
			terms[n] = append(terms[n], m.term)
		}
		chunks += w.chunks
	}
	if chunks <= maxCovered {
		return []string{wording.Query(bot, slices.Concat(terms...))}
	}
	for n := min(len(terms), maxTogether); n > 1; n-- {
		steps = append(steps, wording.Query(bot, terms[:n]...))
	}
	for _, of := range terms {
		steps = append(steps, wording.Query(bot, of))
	}
	return steps
}

// read loads the texts.
func (s *Store) read(ctx context.Context, passages []Passage) error {
	sources, nths := make([]int64, len(passages)), make([]int32, len(passages))
	for i, p := range passages {
		sources[i], nths[i] = p.Source, p.Ordinal
	}
	rows, err := s.Pool.Query(ctx, `
		select a.n, c.text from unnest($1::bigint[], $2::int[]) with ordinality a (source_id, ordinal, n) join knowledge.chunk c using (source_id,
			ordinal)`, sources, nths)
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
