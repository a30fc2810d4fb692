// Package knowledge makes searchable chunks of what bots know from, and finds the passages that belong to a question.
//
// Chunks and vectors are outside the projections: a rebuild neither fetches nor embeds. They are made by jobs from bytes in the blob store, and can be made
// once more. Full text is Postgres's; the words are cut in Go, so that the letters of India are letters in every locale (CONTRACT.md B1).
package knowledge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/wording"
)

// Embedder makes vectors of texts.
type Embedder interface {
	// Embeds returns the name of the model, "" where there is none.
	Embeds() string
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Store keeps the chunks of all bots.
type Store struct {
	Pool  *pgxpool.Pool
	Model Embedder

	pgvector string // the schema of the extension that compares vectors; "": they are compared here
}

const (
	embedAtOnce = 64 // texts of a call
	writeAtOnce = 64 // chunks of a statement
	mostWord    = 60 // bytes of a word that is searched
	mostPlaces  = 200
)

// Put replaces the chunks of a source. The title is searched with each of them.
func (s *Store) Put(ctx context.Context, bot, source int64, title string, chunks []string) error {
	model := s.Model.Embeds()
	vectors := make([][]float32, len(chunks))
	for at := 0; model != "" && at < len(chunks); at += embedAtOnce {
		some, err := s.Model.Embed(ctx, chunks[at:min(at+embedAtOnce, len(chunks))])
		if err != nil {
			return err
		}
		copy(vectors[at:], some)
	}
	return s.change(ctx, bot, func(tx pgx.Tx) error {
		if err := drop(ctx, tx, bot, `source_id = $1`, source); err != nil {
			return err
		}
		counted, err := s.counted(ctx, tx, title, chunks)
		if err != nil {
			return err
		}
		for at := 0; at < len(chunks); at += writeAtOnce {
			end := min(at+writeAtOnce, len(chunks))
			if err := s.write(ctx, tx, bot, source, at, chunks[at:end], counted.vectors[at:end], vectors[at:end]); err != nil {
				return fmt.Errorf("write chunks of source %d: %w", source, err)
			}
		}
		return counted.write(ctx, tx, bot, len(chunks))
	})
}

// counting has the words of chunks, as they are written and as English stems.
type counting struct {
	vectors []string         // a tsvector for each chunk
	chunks  map[string]int64 // that have a word
	grams   map[string]bool  // words that are also found by their trigrams
}

// counted cuts the words of chunks. Each word is stemmed once, however often it is there.
func (s *Store) counted(ctx context.Context, tx pgx.Tx, title string, chunks []string) (counting, error) {
	c := counting{chunks: map[string]int64{}, grams: map[string]bool{}}
	places := make([]map[string][]int, len(chunks))
	for i, text := range chunks {
		places[i] = placesIn(title + "\n" + text)
		for word := range places[i] {
			c.grams[word] = !strings.ContainsFunc(word, unicode.IsDigit)
		}
	}
	stems, err := stemsOf(ctx, tx, slices.Collect(maps.Keys(c.grams)))
	if err != nil {
		return c, err
	}
	for _, at := range places {
		for word, places := range maps.Clone(at) {
			for _, stem := range stems[word] {
				if stem != word {
					at[stem] = append(at[stem], places...)
				}
			}
		}
		c.vectors = append(c.vectors, vectorOf(at))
		for word := range at {
			c.chunks[word]++
		}
	}
	return c, nil
}

// placesIn returns the words of a text with their places, the first ones of each.
func placesIn(text string) map[string][]int {
	const last = 1<<14 - 1 // the greatest place of a tsvector
	places, at := map[string][]int{}, 0
	for word := range terms(text) {
		if at = min(at+1, last); len(places[word]) < mostPlaces {
			places[word] = append(places[word], at)
		}
	}
	return places
}

// vectorOf returns words with their places as Postgres reads a tsvector.
func vectorOf(places map[string][]int) string {
	var all []byte
	for word, at := range places {
		all = append(append(append(all, '\''), word...), '\'')
		for i, place := range at[:min(len(at), mostPlaces)] {
			all = append(all, ":,"[min(i, 1)])
			all = strconv.AppendInt(all, int64(place), 10)
		}
		all = append(all, ' ')
	}
	return string(all)
}

// stemsOf returns the English stems of words; one that means nothing has none.
func stemsOf(ctx context.Context, tx pgx.Tx, words []string) (map[string][]string, error) {
	words = slices.DeleteFunc(words, func(word string) bool { return !isLatin(word) || strings.ContainsFunc(word, unicode.IsDigit) })
	rows, _ := tx.Query(ctx, `select word, ts_lexize('english_stem', word) from unnest($1::text[]) word`, words)
	stems := make(map[string][]string, len(words))
	var word string
	var of []string
	_, err := pgx.ForEachRow(rows, []any{&word, &of}, func() error {
		stems[word] = of
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("stem words: %w", err)
	}
	return stems, nil
}

// write adds the words of so many chunks to the bot's. The empty word counts all chunks.
func (c counting) write(ctx context.Context, tx pgx.Tx, bot int64, chunks int) error {
	words, counts, grams := []string{""}, []int64{int64(chunks)}, []string{""}
	for _, word := range slices.Sorted(maps.Keys(c.chunks)) {
		words, counts = append(words, word), append(counts, c.chunks[word])
		if c.grams[word] {
			grams = append(grams, strings.Join(wording.Grams(word), "\n"))
		} else {
			grams = append(grams, "")
		}
	}
	// A word that was only a stem before is now written as such.
	_, err := tx.Exec(ctx, `
		insert into knowledge.term as t (bot_id, word, chunks, grams) select $1, word, chunks, string_to_array(grams, E'\n') from unnest($2::text[], $3::bigint[], $4::text[]) w (word, chunks, grams)
		on conflict (bot_id, word) do update set chunks = t.chunks + excluded.chunks, grams = case when t.grams = '{}' then excluded.grams else t.grams end`, bot, words, counts, grams)
	if err != nil {
		return fmt.Errorf("count the words of bot %d: %w", bot, err)
	}
	return nil
}

// write adds chunks of a source from a number on, with their words.
func (s *Store) write(ctx context.Context, tx pgx.Tx, bot, source int64, from int, chunks, words []string, vectors [][]float32) error {
	models, embeddings := make([]*string, len(chunks)), make([]*string, len(chunks))
	for i := range chunks {
		if vectors[i] != nil {
			models[i], embeddings[i] = new(s.Model.Embeds()), new(array(vectors[i]))
		}
	}
	_, err := tx.Exec(ctx, `
		insert into knowledge.chunk (source_id, nth, bot_id, text, words, model, embedding)
		select $1, $2 + n - 1, $3, text, words::tsvector, model, embedding::real[]
		from unnest($4::text[], $5::text[], $6::text[], $7::text[]) with ordinality c (text, words, model, embedding, n)`,
		source, from, bot, chunks, words, models, embeddings)
	return err
}

// array returns a vector as Postgres writes an array.
func array(vector []float32) string {
	text := make([]byte, 0, 12*len(vector))
	for _, x := range vector {
		text = strconv.AppendFloat(append(text, ','), float64(x), 'g', -1, 32)
	}
	return "{" + strings.TrimPrefix(string(text), ",") + "}"
}

// change runs do in a transaction. Changes of one bot's chunks wait for each other, since they count the same words. What waits to be indexed is indexed
// together at the end: otherwise each search would read it.
func (s *Store) change(ctx context.Context, bot int64, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('knowledge/' || $1::bigint, 0))`, bot); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `select gin_clean_pending_list('knowledge.chunk_of_bot_idx'), gin_clean_pending_list('knowledge.term_of_bot_idx')`)
		return err
	})
}

// terms returns the words of a text, with digits of all scripts as those of ASCII.
func terms(text string) func(yield func(string) bool) {
	digits := strings.Map(func(c rune) rune {
		switch {
		case c >= '०' && c <= '९':
			return '0' + c - '०'
		case c >= '૦' && c <= '૯':
			return '0' + c - '૦'
		default:
			return c
		}
	}, text)
	return func(yield func(string) bool) {
		for word := range wording.Each(digits) {
			if len(word) <= mostWord && !yield(word) {
				return
			}
		}
	}
}

func isLatin(word string) bool {
	return !strings.ContainsFunc(word, func(c rune) bool { return c > unicode.MaxASCII })
}

// drop removes chunks of a bot, and takes their words off the bot's.
func drop(ctx context.Context, tx pgx.Tx, bot int64, which string, id int64) error {
	_, err := tx.Exec(ctx, `
		with gone as (delete from knowledge.chunk where `+which+` returning words),
		less as (
			select lexeme as word, count(*) as chunks from gone, unnest(gone.words) group by lexeme
			union all select '', count(*) from gone
		)
		update knowledge.term set chunks = term.chunks - less.chunks from less where term.bot_id = $2 and term.word = less.word`, id, bot)
	if err == nil {
		_, err = tx.Exec(ctx, `delete from knowledge.term where bot_id = $1 and chunks <= 0`, bot)
	}
	if err != nil {
		return fmt.Errorf("remove chunks of bot %d: %w", bot, err)
	}
	return nil
}

// Forget removes the chunks of a source.
func (s *Store) Forget(ctx context.Context, bot, source int64) error {
	return s.change(ctx, bot, func(tx pgx.Tx) error { return drop(ctx, tx, bot, `source_id = $1`, source) })
}

// ForgetBot removes the chunks of a bot.
func (s *Store) ForgetBot(ctx context.Context, bot int64) error {
	return s.change(ctx, bot, func(tx pgx.Tx) error { return drop(ctx, tx, bot, `bot_id = $1`, bot) })
}

// Outdated lists the sources whose vectors are of another model than the one there is now, at most so many.
func (s *Store) Outdated(ctx context.Context, most int) ([]int64, error) {
	rows, err := s.Pool.Query(ctx, `select distinct source_id from knowledge.chunk where model is distinct from nullif($1, '') limit $2`, s.Model.Embeds(), most)
	if err != nil {
		return nil, fmt.Errorf("find chunks of another model: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
