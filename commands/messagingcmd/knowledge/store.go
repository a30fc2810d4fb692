// Package knowledge makes searchable chunks of what bots know from, and finds the passages that belong to a question.
//
// Chunks and vectors are outside the projections: a rebuild neither fetches nor embeds. They are made by jobs from bytes in the blob store,
// and can be made once more. Full text is Postgres's; the words are cut in Go, so that the letters of India are letters in every locale
// (CONTRACT.md B1).
package knowledge

import (
	"context"
	"fmt"
	"iter"
	"slices"
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
	writeAtOnce = 16 // chunks of a batch
	maxWord     = 60 // bytes of a word that is searched
)

// Put replaces the chunks of a source, and returns how many there are. It writes the first ones while the last ones are still read, and
// nothing where their error is not nil or there is none. The title is searched with each of them. [Store.Index] is to follow.
func (s *Store) Put(ctx context.Context, bot, source int64, title string, chunks iter.Seq2[string, error]) (count int64, err error) {
	model := s.Model.Embeds()
	var vectors [][]float32
	if model != "" { // a transaction does not wait for a model
		if chunks, vectors, err = s.embed(ctx, chunks); err != nil {
			return 0, err
		}
	}
	counted := &counting{bot: bot, ids: map[string]int32{}}
	err = s.change(ctx, bot, func(tx pgx.Tx) error {
		if err := drop(ctx, tx, bot, `source_id = $1`, source); err != nil {
			return err
		}
		// What waits to be indexed is indexed by Index alone, not by one of many inserts.
		if _, err := tx.Exec(ctx, `set local gin_pending_list_limit = '64MB'`); err != nil {
			return err
		}
		var texts []string
		flush := func() error {
			words := make([][]occurrence, len(texts))
			for i, text := range texts {
				words[i] = counted.cut(title + "\n" + text)
			}
			if err := counted.stem(ctx, tx); err != nil {
				return err
			}
			added := &pgx.Batch{}
			for i, text := range texts {
				var by *string
				var vector []float32
				if vectors != nil {
					by, vector = &model, vectors[count]
				}
				keys, marks := counted.keys(words[i])
				added.Queue(`
					insert into knowledge.chunk (source_id, nth, bot_id, text, keys, marks, model, embedding) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
					source, count, bot, text, keys, marks, by, vector)
				count++
			}
			texts = texts[:0]
			if err := tx.SendBatch(ctx, added).Close(); err != nil {
				return fmt.Errorf("write chunks of source %d: %w", source, err)
			}
			return nil
		}
		for text, err := range chunks {
			if texts = append(texts, text); err == nil && len(texts) == writeAtOnce {
				err = flush()
			}
			if err != nil {
				return err
			}
		}
		if err := flush(); err != nil {
			return err
		}
		if count == 0 {
			return failure(noText)
		}
		return counted.write(ctx, tx, count)
	})
	return count, err
}

// embed returns the chunks with their vectors.
func (s *Store) embed(ctx context.Context, chunks iter.Seq2[string, error]) (again iter.Seq2[string, error], vectors [][]float32,
	err error) {
	var texts []string
	for text, err := range chunks {
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, text)
	}
	for some := range slices.Chunk(texts, embedAtOnce) {
		of, err := s.Model.Embed(ctx, some)
		if err != nil {
			return nil, nil, err
		}
		vectors = append(vectors, of...)
	}
	return each(texts), vectors, nil
}

// each returns the texts without an error.
func each(texts []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, text := range texts {
			if !yield(text, nil) {
				return
			}
		}
	}
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

// Index indexes together what was written. Until then it is found, but each search reads all of it.
func (s *Store) Index(ctx context.Context) error {
	if _, err := s.Pool.Exec(ctx, `select gin_clean_pending_list('knowledge.chunk_of_bot_idx'),
		gin_clean_pending_list('knowledge.term_of_bot_idx')`); err != nil {
		return fmt.Errorf("index what bots know: %w", err)
	}
	return nil
}

// terms returns the words of a text, with digits of all scripts as those of ASCII, and a sign of rupees as a word.
func terms(text string) func(yield func(string) bool) {
	text = strings.Map(func(c rune) rune {
		if c > unicode.MaxASCII && unicode.Is(unicode.Nd, c) {
			return '0' + (c-firstOf(c))%10
		}
		return c
	}, strings.ReplaceAll(text, "₹", " rs "))
	return func(yield func(string) bool) {
		for word := range wording.Each(text) {
			if len(word) <= maxWord && !yield(word) {
				return
			}
		}
	}
}

// firstOf returns a zero of the digits that follow each other in Unicode up to a digit.
func firstOf(c rune) rune {
	for _, r := range unicode.Nd.R16 {
		if c >= rune(r.Lo) && c <= rune(r.Hi) {
			return rune(r.Lo)
		}
	}
	for _, r := range unicode.Nd.R32 {
		if c >= rune(r.Lo) && c <= rune(r.Hi) {
			return rune(r.Lo)
		}
	}
	return c
}

func isLatin(word string) bool {
	return !strings.ContainsFunc(word, func(c rune) bool { return c > unicode.MaxASCII })
}

// drop removes chunks of a bot, and takes their words off the bot's.
func drop(ctx context.Context, tx pgx.Tx, bot int64, which string, id int64) error {
	gone, err := tx.Exec(ctx, `
		with gone as (delete from knowledge.chunk where `+which+` returning keys),
		less as (
			select key, count(*) as chunks from gone, unnest(gone.keys) key group by key
			union all select knowledge.key($2, ''), count(*) from gone having count(*) > 0
		)
		update knowledge.term set chunks = term.chunks - less.chunks from less where term.bot_id = $2 and knowledge.key(term.bot_id, `+
		`term.word) = less.key`, id, bot)
	if err == nil && gone.RowsAffected() > 0 {
		_, err = tx.Exec(ctx, `delete from knowledge.term where bot_id = $1 and chunks <= 0`, bot)
	}
	if err != nil {
		return fmt.Errorf("remove chunks of bot %d: %w", bot, err)
	}
	return nil
}

// Forget removes the chunks of a source.
func (s *Store) Forget(ctx context.Context, bot, source int64) error {
	if err := s.change(ctx, bot, func(tx pgx.Tx) error { return drop(ctx, tx, bot, `source_id = $1`, source) }); err != nil {
		return err
	}
	return s.Index(ctx)
}

// ForgetBot removes the chunks of a bot.
func (s *Store) ForgetBot(ctx context.Context, bot int64) error {
	if err := s.change(ctx, bot, func(tx pgx.Tx) error { return drop(ctx, tx, bot, `bot_id = $1`, bot) }); err != nil {
		return err
	}
	return s.Index(ctx)
}

// Outdated lists the sources whose vectors are of another model than the one there is now, at most so many.
func (s *Store) Outdated(ctx context.Context, most int) ([]int64, error) {
	rows, err := s.Pool.Query(ctx, `
		select distinct source_id from knowledge.chunk where model is distinct from nullif($1, '') limit $2`, s.Model.Embeds(), most)
	if err != nil {
		return nil, fmt.Errorf("find chunks of another model: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
