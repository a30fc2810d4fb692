//go:build interop

package knowledge

import (
	"bufio"
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/labelled"
)

// hashed is a model that derives vectors from a hash of the text. Some vectors are zero, others have another length.
type hashed struct{}

func (hashed) Embeds() string { return "hashed" }

func (hashed) Embed(_ context.Context, texts []string) (vectors [][]float32, err error) {
	for _, text := range texts {
		sum := fnv.New64a()
		_, _ = io.WriteString(sum, text)
		random := rand.New(rand.NewPCG(1, sum.Sum64()))
		vector := make([]float32, 64)
		for i := range vector {
			vector[i] = random.Float32() - 0.5
		}
		switch sum.Sum64() % 10 {
		case 0:
			clear(vector)
		case 1:
			vector = vector[:10]
		}
		vectors = append(vectors, vector)
	}
	return vectors, nil
}

// The extension pgvector, in the Postgres of scripts/interop/pgvector.js, finds what the scan finds.
func TestPgvectorFindsWhatTheScanFinds(t *testing.T) {
	t.Parallel()
	node := exec.CommandContext(t.Context(), "node", "pgvector.js")
	node.Dir = "../../../scripts/interop"
	node.Stderr = os.Stderr
	out, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() { _, _ = node.Process.Kill(), node.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	settings, err := pgxpool.ParseConfig("postgres://postgres@" + strings.TrimSpace(address) + "/postgres?sslmode=disable")
	require.NoError(t, err)
	settings.MaxConns = 1 // the server accepts one connection
	pool, err := pgxpool.NewWithConfig(t.Context(), settings)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	migrations, err := filepath.Glob("../../../migrations/*_knowledge*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, migrations)
	_, err = pool.Exec(t.Context(), `create table public.bahi_schema (version int)`) // the migrations say which programs may use them
	require.NoError(t, err)
	for _, name := range migrations {
		sql, err := os.ReadFile(name)
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), string(sql), pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err, name)
	}
	_, err = pool.Exec(t.Context(), `alter table knowledge.chunk rename column nth to ordinal`) // 0013_names renames in other schemas too
	require.NoError(t, err)
	s := &Store{Pool: pool, Model: hashed{}}
	require.NoError(t, s.UsePgvector(t.Context()))
	require.NoError(t, s.UsePgvector(t.Context()), "it is there already")
	require.Equal(t, "public", s.pgvector)

	set := labelled.Documents()
	for i, d := range set {
		var chunks []string // more chunks than a search by vectors returns
		for words := range slices.Chunk(strings.Fields(d.Text), 10) {
			chunks = append(chunks, strings.Join(words, " "))
		}
		require.NoError(t, s.Put(t.Context(), int64(1+i%2), int64(i+1), d.Title, chunks))
	}
	for _, d := range set {
		for _, question := range d.Questions {
			vectors, err := s.Model.Embed(t.Context(), []string{question})
			require.NoError(t, err)
			for bot := range int64(3) {
				want, err := s.scan(t.Context(), bot, vectors[0])
				require.NoError(t, err)
				got, err := s.ordered(t.Context(), bot, vectors[0])
				require.NoError(t, err)
				require.Len(t, got, maxNear*int(min(bot, 1)), "bot 0 knows nothing")
				require.Equal(t, want, append([]Passage(nil), got...), question)
				found, err := s.Search(t.Context(), bot, question, 6)
				require.NoError(t, err)
				require.Len(t, found, 6*int(min(bot, 1)))
			}
		}
	}
}
