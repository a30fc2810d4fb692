package knowledge

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/internal/pgtest"
	"bahi/migrations"
)

func TestWordsThatAreSimilarHaveATrigramInCommonThatIsSought(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		grams := trigrams{7, map[string]int64{}}
		one := rapid.StringMatching(`[abc]{1,12}`).Draw(t, "one")
		other := rapid.StringMatching(`[abc]{1,12}`).Draw(t, "other")
		sought := grams.seekers(other)
		common, of := alikeness(one, other)
		if 100*common >= similar*of && !slices.ContainsFunc(grams.seekers(one), func(key int64) bool { return slices.Contains(sought, key) }) {
			t.Fatalf("%s is not found by %s", other, one)
		}
	})
}

func TestParagraphsAreThoseOfTheExpression(t *testing.T) {
	t.Parallel()
	cut := func(parts []string) (kept []string) {
		for _, part := range parts {
			if part = strings.TrimSpace(part); part != "" {
				kept = append(kept, part)
			}
		}
		return kept
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[a \t\n\f]{0,30}").Draw(t, "text")
		require.Equal(t, cut(regexp.MustCompile(`\n[ \t]*(?:\n[ \t]*)+|\f`).Split(text, -1)), cut(slices.Collect(paragraphs(text))))
	})
}

// none makes no vectors.
type none struct{}

func (none) Embeds() string                                       { return "" }
func (none) Embed(context.Context, []string) ([][]float32, error) { return nil, nil }

func TestChunksOfAnOlderProgramAreFoundAfterTheMigration(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s := &Store{Pool: pool, Model: none{}}
	_, err = s.Put(t.Context(), 3, 1, "", each([]string{"gold rate gold", "चाँदी के दाम 1250", "returning"}))
	require.NoError(t, err)
	rows := func() (all []string) {
		for _, sql := range []string{`select (nth, keys, marks)::text from knowledge.chunk order by nth`, `select (word, chunks, seeks)::text from knowledge.term order by word`} {
			rows, _ := pool.Query(t.Context(), sql)
			some, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			all = append(all, some...)
		}
		return all
	}
	before := rows()
	names, err := filepath.Glob("../../../migrations/*_knowledge_keys.sql")
	require.NoError(t, err)
	require.Len(t, names, 1)
	file, err := os.ReadFile(names[0])
	require.NoError(t, err)
	// What an older program wrote, in the tables that it knows.
	_, err = pool.Exec(t.Context(), `
		drop index knowledge.chunk_of_bot_idx, knowledge.term_of_bot_idx;
		alter table knowledge.chunk drop keys, drop marks; drop function knowledge.key; alter table knowledge.term drop seeks;
		create index chunk_of_bot_idx on knowledge.chunk (bot_id); create index term_of_bot_idx on knowledge.term (bot_id);
		update knowledge.chunk set words = (array['''gold'':1,3 ''rate'':2', '''चाँदी'':1 ''के'':2 ''दाम'':3 ''1250'':4', '''returning'':1 ''return'':1'])[nth + 1]::tsvector;
		update knowledge.term set grams = array(select distinct substr('  ' || word || ' ', n, 3) from generate_series(1, length(word) + 1) n) where word not in ('', '1250', 'return')`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), string(file))
	require.NoError(t, err)
	require.Equal(t, before, rows())

	_, err = pool.Exec(t.Context(), `update knowledge.chunk set keys = null, marks = null`) // as an older program goes on to write
	require.NoError(t, err)
	again, err := s.Outdated(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, again)
}
