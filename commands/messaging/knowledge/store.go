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
		known := map[string]bool{}
		for at := 0; at < len(chunks); at += writeAtOnce {
			end := min(at+writeAtOnce, len(chunks))
			if err := s.write(ctx, tx, bot, source, at, title, chunks[at:end], vectors[at:end], known); err != nil {
				return fmt.Errorf("write chunks of source %d: %w", source, err)
			}
		}
		return count(ctx, tx, bot, source, known)
	})
}

// write adds chunks of a source from a number on. It adds their words to known.
func (s *Store) write(ctx context.Context, tx pgx.Tx, bot, source int64, from int, title string, chunks []string, vectors [][]float32, known map[string]bool) error {
	words, latin, models, embeddings := make([]string, len(chunks)), make([]string, len(chunks)), make([]*string, len(chunks)), make([]*string, len(chunks))
	for i, text := range chunks {
		words[i], latin[i] = lexemes(title+"\n"+text, known)
		if vectors[i] != nil {
			models[i], embeddings[i] = new(s.Model.Embeds()), new(array(vectors[i]))
		}
	}
	_, err := tx.Exec(ctx, `
		insert into knowledge.chunk (source_id, nth, bot_id, text, words, model, embedding)
		select $1, $2 + n - 1, $3, text, words::tsvector || to_tsvector('english', latin), model, embedding::real[]
		from unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) with ordinality c (text, words, latin, model, embedding, n)`,
		source, from, bot, chunks, words, latin, models, embeddings)
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

// change runs do in a transaction. Changes of one bot's chunks wait for each other, since they count the same words.
func (s *Store) change(ctx context.Context, bot int64, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('knowledge/' || $1::bigint, 0))`, bot); err != nil {
			return err
		}
		return do(tx)
	})
}

// lexemes returns the words of a text as a tsvector, and those that may be English. It adds the words to known.
func lexemes(text string, known map[string]bool) (vector, latin string) {
	places := map[string][]string{}
	var english strings.Builder
	at := 0
	for word := range terms(text) {
		at++
		known[word] = true
		if at < 1<<14 && len(places[word]) < mostPlaces { // the greatest place of a tsvector
			places[word] = append(places[word], strconv.Itoa(at))
		} else if places[word] == nil {
			places[word] = []string{strconv.Itoa(1<<14 - 1)}
		}
		if isLatin(word) {
			english.WriteString(word + " ")
		}
	}
	var all strings.Builder
	for _, word := range slices.Sorted(maps.Keys(places)) {
		all.WriteString("'" + word + "':" + strings.Join(places[word], ",") + " ")
	}
	return all.String(), english.String()
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

// count adds the words of a source to the bot's.
func count(ctx context.Context, tx pgx.Tx, bot, source int64, known map[string]bool) error {
	if _, err := tx.Exec(ctx, `
		insert into knowledge.term (bot_id, word, chunks)
		select $1::bigint, lexeme, count(*) from knowledge.chunk c, unnest(c.words) where source_id = $2 group by lexeme
		union all select $1::bigint, '', count(*) from knowledge.chunk where source_id = $2
		on conflict (bot_id, word) do update set chunks = term.chunks + excluded.chunks`, bot, source); err != nil {
		return fmt.Errorf("count the words of source %d: %w", source, err)
	}
	var words, grams []string
	for _, word := range slices.Sorted(maps.Keys(known)) {
		if !strings.ContainsFunc(word, unicode.IsDigit) {
			words, grams = append(words, word), append(grams, strings.Join(wording.Grams(word), "\n"))
		}
	}
	_, err := tx.Exec(ctx, `
		update knowledge.term set grams = string_to_array(given.grams, E'\n') from unnest($2::text[], $3::text[]) given (word, grams)
		where bot_id = $1 and term.word = given.word and term.grams = '{}'`, bot, words, grams)
	if err != nil {
		return fmt.Errorf("write the trigrams of source %d: %w", source, err)
	}
	return nil
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
