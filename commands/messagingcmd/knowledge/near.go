package knowledge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// UsePgvector makes the database compare vectors if the extension pgvector is installed or can be added. No column has the extension's
// type, so a backup does not require pgvector, and the extension may be added or removed between two starts.
func (s *Store) UsePgvector(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		// several nodes may start concurrently
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('knowledge/pgvector', 0))`); err != nil {
			return err
		}
		var missing bool
		err := tx.QueryRow(ctx, `select exists (select from pg_available_extensions where name = 'vector' and installed_version is null)`).Scan(
			&missing)
		if err == nil && missing {
			_, err = tx.Exec(ctx, `create extension vector`)
		}
		if err == nil {
			err = tx.QueryRow(ctx, `select coalesce((select quote_ident(nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
				where extname = 'vector'), '')`).Scan(&s.pgvector)
		}
		if err != nil {
			return fmt.Errorf("find pgvector: %w", err)
		}
		return nil
	})
}

// near returns the chunks with the vectors nearest to the question's vector.
func (s *Store) near(ctx context.Context, bot int64, question string) ([]Passage, error) {
	vectors, err := s.Model.Embed(ctx, []string{question})
	if err != nil {
		return nil, err
	}
	compare := s.scan
	if n := len(vectors[0]); s.pgvector != "" && n > 0 && n <= maxNumbers {
		compare = s.ordered
	}
	nearest, err := compare(ctx, bot, vectors[0])
	if err != nil {
		return nil, fmt.Errorf("compare the vectors of bot %d: %w", bot, err)
	}
	return nearest, nil
}

// maxNumbers is the maximum dimension of a vector in pgvector.
const maxNumbers = 16000

// ordered compares vectors by pgvector with the same result as scan. Its operator refuses vectors of different lengths,
// and returns NaN for zero vectors.
func (s *Store) ordered(ctx context.Context, bot int64, vector []float32) ([]Passage, error) {
	rows, _ := s.Pool.Query(ctx, strings.ReplaceAll(`
		select source_id, ordinal from knowledge.chunk where bot_id = $1 and model = $2
		order by case when cardinality(embedding) = cardinality($3::real[])
			and (embedding::SCHEMA.vector operator(SCHEMA.<=>) $3::real[]::SCHEMA.vector) <> 'NaN'
			then embedding::SCHEMA.vector operator(SCHEMA.<=>) $3::real[]::SCHEMA.vector else 2 end, source_id, ordinal
		limit $4`, "SCHEMA", s.pgvector), bot, s.Model.Embeds(), vector, maxNear) // CollectRows returns the error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Passage, err error) {
		return p, row.Scan(&p.Source, &p.Ordinal)
	})
}

// scan compares vectors in this process.
func (s *Store) scan(ctx context.Context, bot int64, vector []float32) (nearest []Passage, err error) {
	rows, err := s.Pool.Query(ctx, `select source_id, ordinal, embedding from knowledge.chunk where bot_id = $1 and model = $2`, bot,
		s.Model.Embeds())
	if err != nil {
		return nil, err
	}
	var p Passage
	var other []float32
	_, err = pgx.ForEachRow(rows, []any{&p.Source, &p.Ordinal, &other}, func() error {
		p.Score = cosine(vector, other)
		nearest = append(nearest, p)
		return nil
	})
	slices.SortFunc(nearest, func(a, b Passage) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	nearest = nearest[:min(len(nearest), maxNear)]
	for i := range nearest {
		nearest[i].Score = 0 // ranks are merged, not scores
	}
	return nearest, err
}

// cosine returns the cosine of the angle between two vectors, -1 for those of different lengths.
func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return -1
	}
	var dot, x, y float64
	for i := range a {
		dot, x, y = dot+float64(a[i])*float64(b[i]), x+float64(a[i])*float64(a[i]), y+float64(b[i])*float64(b[i])
	}
	if x == 0 || y == 0 {
		return -1
	}
	return dot / math.Sqrt(x*y)
}
