package api_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

// kept is a file in the log of this test.
type kept struct {
	SHA256 string `json:"sha256"`
}

type (
	fileKept struct{ kept }
	keepFile struct{ kept }
)

func (e fileKept) Evolve(kept) kept { return e.kept }

func (c keepFile) Decide(kept) ([]event.Event[kept], error) {
	return []event.Event[kept]{fileKept(c)}, nil
}

var keptFiles = event.NewKind("keptfile", event.Of[fileKept]("FileKept", 1))

// withLog adds an operation that records its file in a real log.
func (s *server) withLog(t *testing.T) *server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	v, err := vault.Open(t.Context(), pool, make([]byte, 32), log)
	require.NoError(t, err)
	store, err := postgres.Open(t.Context(), pool, log)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	h := commands.New(store, v, time.Now)
	newID := func(context.Context) (string, error) { return uuid.NewString(), nil }
	api.Handle(s.API, api.Op{ID: "keep-file", Method: "POST", Path: "/kept"},
		func(ctx context.Context, in *struct{ File api.File }) (*api.Body[string], error) {
			seen, err := seeFile(in.File)
			if err != nil {
				return nil, err
			}
			out, err := commands.Create(ctx, h, api.Request(ctx), keptFiles, newID, keepFile{kept{seen.SHA256}})
			if err != nil {
				return nil, err
			}
			api.SetWriteHeaders(ctx, out.Position, out.Replayed)
			return api.Answer(out.ID, nil)
		})
	return s
}

func TestBoundaryDoesNotChangeAFormsFingerprint(t *testing.T) {
	t.Parallel()
	s := serve(t).withLog(t)
	clerk := s.as(t, "bahi_clerk").With("Idempotency-Key", "k1")
	file := part{"file", "a.png", "image/png", strings.Repeat("x", 100_000)}
	note := part{name: "note", content: "n"}
	post := func(boundary string, parts ...part) *apitest.Answer {
		t.Helper()
		body, kind := formOf(boundary, parts...)
		return clerk.With("Content-Type", kind).POST("/kept", io.MultiReader(strings.NewReader(body)))
	}
	first := post("one", file, note).Status(201)
	require.Empty(t, first.Header("Idempotency-Replayed"))
	again := post("another-one", file, note).Status(201)
	require.Equal(t, "true", again.Header("Idempotency-Replayed"))
	require.Equal(t, first.Text, again.Text)

	for name, parts := range map[string][]part{
		"content":       {{"file", "a.png", "image/png", strings.Repeat("x", 99_999) + "y"}, note},
		"name":          {{"file", "b.png", "image/png", file.content}, note},
		"type":          {{"file", "a.png", "image/jpeg", file.content}, note},
		"another field": {file, {name: "note", content: "m"}},
		"field's name":  {file, {name: "remark", content: "n"}},
		"no field":      {file},
	} {
		require.Equal(t, "Idempotency-Key was used with another request", problemIn(t, post("one", parts...).Status(422)), name)
	}
}
