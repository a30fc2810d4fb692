// Package knowledge indexes the sources of bots in chunks, and finds the passages that match a question.
//
// Chunks and vectors are not in projections, so a rebuild does not fetch or embed again. Jobs create them from the bytes in the blob store.
// Postgres does the full-text search. Go splits the words, so that Indian letters are letters in every locale (CONTRACT.md B1).
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

	"bahi/domain/person"
	"bahi/domain/wording"
)

// Embedder computes vectors of texts.
type Embedder interface {
	// Embeds returns the name of the model, or "".
	Embeds() string
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Store stores the chunks of all bots.
type Store struct {
	Pool  *pgxpool.Pool
	Model Embedder

	pgvector string // schema of the extension that compares vectors; "": this process compares
}

const (
	embedAtOnce = 64 // texts in one call
	writeAtOnce = 16 // chunks in one batch
	maxWord     = 60 // maximum bytes of a searchable word
)

// Put replaces the chunks of a source, and returns their number. It writes the first chunks while it reads the last ones, and stores
// nothing after an error or without chunks. The title is searchable with each chunk. The caller then calls [Store.Index].
func (s *Store) Put(ctx context.Context, bot, source int64, title string, chunks iter.Seq2[string, error]) (count int64, err error) {
	model := s.Model.Embeds()
	var vectors [][]float32
	if model != "" { // the transaction must not wait for a model
		if chunks, vectors, err = s.embed(ctx, chunks); err != nil {
			return 0, err
		}
	}
	counted := &counting{bot: bot, ids: map[string]int32{}}
	err = s.change(ctx, bot, func(tx pgx.Tx) error {
		if err := drop(ctx, tx, bot, `source_id = $1`, source); err != nil {
			return err
		}
		// Only Index indexes pending entries, not one of many inserts.
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

// each returns the texts without their errors.
func each(texts []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, text := range texts {
			if !yield(text, nil) {
				return
			}
		}
	}
}

// change runs do in a transaction. Changes of a bot's chunks run one at a time, because they count the same words.
func (s *Store) change(ctx context.Context, bot int64, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('knowledge/' || $1::bigint, 0))`, bot); err != nil {
			return err
		}
		return do(tx)
	})
}

// Index indexes the written chunks. A search also finds chunks that are not indexed, but reads all of these.
func (s *Store) Index(ctx context.Context) error {
	if _, err := s.Pool.Exec(ctx, `select gin_clean_pending_list('knowledge.chunk_of_bot_idx'),
		gin_clean_pending_list('knowledge.term_of_bot_idx')`); err != nil {
		return fmt.Errorf("index chunks: %w", err)
	}
	return nil
}

// terms returns the words of a text. Digits of all scripts become ASCII digits, and a rupee sign is a word.
func terms(text string) func(yield func(string) bool) {
	text = strings.Map(person.Digit, strings.ReplaceAll(text, "₹", " rs "))
	return func(yield func(string) bool) {
		for word := range wording.Each(text) {
			if len(word) <= maxWord && !yield(word) {
				return
			}
		}
	}
}

func isLatin(word string) bool {
	return !strings.ContainsFunc(word, func(c rune) bool { return c > unicode.MaxASCII })
}

// drop removes chunks of a bot, and subtracts their words from the bot's words.
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

// Outdated lists at most the given number of sources with vectors of a model other than the current one.
func (s *Store) Outdated(ctx context.Context, most int) ([]int64, error) {
	rows, err := s.Pool.Query(ctx, `
		select distinct source_id from knowledge.chunk where model is distinct from nullif($1, '') limit $2`, s.Model.Embeds(), most)
	if err != nil {
		return nil, fmt.Errorf("find chunks of another model: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
