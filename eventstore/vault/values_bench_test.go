package vault_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore/vault"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

// BenchmarkOpenPersonal measures the cost of a batch of 1,000 values in a rebuild, without a cache of keys.
func BenchmarkOpenPersonal(b *testing.B) {
	for _, subjects := range []int{1, 1000} {
		b.Run(fmt.Sprintf("1000 values of %d subjects", subjects), func(b *testing.B) {
			pool, err := pgxpool.New(b.Context(), pgtest.Template(b, "migrated", migrations.Up))
			require.NoError(b, err)
			defer pool.Close()
			v, err := vault.Open(b.Context(), pool, master, slog.New(slog.DiscardHandler))
			require.NoError(b, err)
			values := make([]event.Personal, 1000)
			for i := range values {
				values[i] = event.NewPersonal(fmt.Sprintf("user-%d", i%subjects), address)
			}
			values, err = event.MapSealed(values, func(f []*event.Sealed) error { return v.Seal(b.Context(), f) })
			require.NoError(b, err)
			for b.Loop() {
				_, err := event.MapSealed(values, func(f []*event.Sealed) error { return v.OpenPersonal(b.Context(), f) })
				require.NoError(b, err)
			}
		})
	}
}
