// Package knowledge indexes the sources of bots in chunks, and finds the passages that match a question.
//
// Chunks and vectors are not in projections, so a rebuild does not fetch or embed again. Jobs create them from the bytes in the blob store.
// Postgres does the full-text search. Go splits the words, so that Indian letters are letters in every locale (CONTRACT.md B1).
package knowledge

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/wording"
)

// embedder computes vectors of texts.
type embedder interface {
	// Embeds returns the name of the model, or "".
	Embeds() string
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Store stores the chunks of all bots.
type Store struct {
	Pool  *pgxpool.Pool
	Model embedder

	pgvector string // schema of the extension that compares vectors; "": this process compares
}

const (
	embedBatch = 64 // texts in one call
	writeBatch = 16 // chunks in one batch
)

// Put replaces the chunks of a source. It stores nothing after an error or without chunks. The title is searchable with each chunk. The
// caller then calls [Store.Index].
func (s *Store) Put(ctx context.Context, bot, source int64, title string, chunks []string) error {
	if len(chunks) == 0 {
		return failure(noText)
	}
	model := s.Model.Embeds()
	vectors := make([][]float32, 0, len(chunks))
	for some := range slices.Chunk(chunks, embedBatch) { // the transaction must not wait for a model
		of := make([][]float32, len(some))
		if model != "" {
			var err error
			if of, err = s.Model.Embed(ctx, some); err != nil {
				return err
			}
		}
		vectors = append(vectors, of...)
	}
	return s.change(ctx, bot, func(tx pgx.Tx) error {
		if err := drop(ctx, tx, bot, source); err != nil {
			return err
		}
		// Only Index indexes pending entries, not one of many inserts.
		if _, err := tx.Exec(ctx, `set local gin_pending_list_limit = '64MB'`); err != nil {
			return err
		}
		added := &pgx.Batch{}
		for nth, text := range chunks {
			added.Queue(`insert into knowledge.chunk (source_id, ordinal, bot_id, text, words, model, embedding)
				values ($1, $2, $3, $4, $5::text::tsvector, nullif($6, ''), $7)`,
				source, nth, bot, text, wording.Vector(bot, title+"\n"+text), model, vectors[nth])
			if added.Len() == writeBatch || nth == len(chunks)-1 {
				if err := tx.SendBatch(ctx, added).Close(); err != nil {
					return fmt.Errorf("write chunks of source %d: %w", source, err)
				}
				added = &pgx.Batch{}
			}
		}
		if _, err := tx.Exec(ctx, `
			with these as (select words from knowledge.chunk where source_id = $2), counted as (`+counts+`)
			insert into knowledge.term (bot_id, word, chunks, written) select $1, word, chunks, written from counted
			on conflict (bot_id, word) do update set chunks = term.chunks + excluded.chunks, written = term.written or excluded.written`,
			bot, source); err != nil {
			return fmt.Errorf("count the words of bot %d: %w", bot, err)
		}
		return nil
	})
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

// counts selects the number of chunks with each word, and with the empty word the number of all chunks.
const counts = `
	select substr(lexeme, strpos(lexeme, '/') + 1) as word, count(*) as chunks, bool_or('D' = any(weights)) as written
	from these, unnest(these.words) group by lexeme union all select '', count(*), false from these having count(*) > 0`

// drop removes the chunks of a source, or of the whole bot for source 0, and subtracts their words from the bot's words.
func drop(ctx context.Context, tx pgx.Tx, bot, source int64) error {
	gone, err := tx.Exec(ctx, `
		with these as (delete from knowledge.chunk where bot_id = $1 and (source_id = $2 or $2 = 0) returning words), counted as (`+counts+`)
		update knowledge.term set chunks = term.chunks - counted.chunks from counted where term.bot_id = $1 and term.word = counted.word`,
		bot, source)
	if err == nil && gone.RowsAffected() > 0 {
		_, err = tx.Exec(ctx, `delete from knowledge.term where bot_id = $1 and chunks <= 0`, bot)
	}
	if err != nil {
		return fmt.Errorf("remove chunks of bot %d: %w", bot, err)
	}
	return nil
}

// Forget removes the chunks of a source, or of the whole bot for source 0.
func (s *Store) Forget(ctx context.Context, bot, source int64) error {
	if err := s.change(ctx, bot, func(tx pgx.Tx) error { return drop(ctx, tx, bot, source) }); err != nil {
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
