package projections

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/internal/test/draws"
)

// parted is a projection whose fill can be divided by the length of the names. It also records the previous name of the same part, so a
// part that misses or repeats an event changes the tables.
func parted() *Projection {
	return Define("seen", 1, `
create table seen (position bigint not null, name text not null);
create table counted (key bigint primary key, n bigint not null);
-- after fill
create index seen_position_idx on seen (position);
`, On(func(b *Batch, e event.Recorded[book.AccountOpened]) {
		b.Exec(`insert into seen (position, name) values ($1, $2)`, int64(e.Position), e.Data.Name)
		b.Exec(`insert into counted (key, n) values ($1, 1) on conflict (key) do update set n = counted.n + 1`, int64(e.Position)%11)
	})).PartitionedBy(func(r *event.Recorded[any]) (key int64, all bool) { return int64(r.Position) % 11, false })
}

func TestKilledBuildInPartsGivesTheSameTables(t *testing.T) {
	t.Parallel()
	for _, parts := range []int{1, 2, 4} {
		t.Run(strconv.Itoa(parts), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(parts), 4))
			r := newFixture(t)
			p := parted()
			want := numberedNames(0, 1200)
			r.add(t, want...)
			build := r.build(p)
			build.How = BuildOptions{Throttle: 20, Partitions: parts} // takes a minute
			require.NoError(t, build.Request(t.Context()))
			for range 3 {
				before := r.position(t, p)
				one := r.serve(t, p)
				soon(t, "the build advances", func() bool { return r.position(t, p) > before })
				r.kill(t, random)
				one.stop()
			}
			require.NoError(t, Throttle(t.Context(), r.pool, p, 0))
			r.serve(t, p).reached("seen", 1200)
			require.Equal(t, want, r.names(t, "seen"))
			require.Equal(t, []string{"seen_g1"}, r.schemas(t))
			require.Equal(t, parts, r.live(t, p).Partitions)
			r.exact(t, p)
		})
	}
}

// A process that finds no live tables may look for their build after the build has ended.
func TestAFirstBuildThatHasJustEndedIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	p := parted()
	r.add(t, numberedNames(0, 3)...)
	r.serve(t, p).reached("seen", 3)
	b := r.build(p)
	conn, err := connect(t.Context(), b.Config, p)
	require.NoError(t, err)
	require.NoError(t, b.first(t.Context(), conn))
	require.NoError(t, conn.Close(t.Context()))
	require.Equal(t, []string{"seen_g1"}, r.schemas(t))
}

// After any sequence of operations by operators and processes, the tables equal a fold of the log, and nothing else remains.
func TestTablesConvergeToTheLog(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	random := rand.New(rand.NewPCG(1, 2))
	rapid.Check(t, func(rt *rapid.T) {
		r.exec(t, `do $$ declare s text; begin
			for s in select nspname from pg_namespace where nspname ~ '^seen_g' loop execute format('drop schema %I cascade', s); end loop;
			delete from projection.generation; end $$`)
		p := parted()
		r.add(t, numberedNames(0, 20)...)
		servers := [2]*running{}
		accept := func(err error, expected ...error) {
			for _, e := range expected {
				if errors.Is(err, e) {
					return
				}
			}
			require.NoError(t, err)
		}
		steps := map[string]func(*rapid.T){
			"request": func(rt *rapid.T) {
				b := r.build(p)
				b.How = BuildOptions{
					Partitions: rapid.IntRange(1, 3).Draw(rt, "parts"), Throttle: rapid.SampledFrom([]int{0, 400}).Draw(rt, "throttle"),
					Keep: rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "keep"),
				}
				accept(b.Request(t.Context()), ErrBuildRuns)
			},
			"pause":  func(*rapid.T) { accept(Pause(t.Context(), r.pool, p), ErrNotBuilt) },
			"resume": func(*rapid.T) { accept(Resume(t.Context(), r.pool, p), ErrNotPaused) },
			"accept": func(*rapid.T) { accept(Accept(t.Context(), r.pool, p), ErrNotDiffers) },
			"cancel": func(*rapid.T) { accept(r.build(p).Cancel(t.Context()), ErrNoBuild) },
			"add":    func(rt *rapid.T) { r.add(t, numberedNames(0, rapid.IntRange(1, 60).Draw(rt, "events"))...) },
			"kill":   func(*rapid.T) { r.kill(t, random) },
			"spoil": func(*rapid.T) {
				if g, found, err := liveGeneration(t.Context(), r.pool, p); err == nil && found {
					_, _ = r.pool.Exec(t.Context(), `update `+g.schema()+`.seen set name = 'spoilt' where position % 7 = 0`) // may have been dropped
				}
			},
			"rollback": func(*rapid.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = r.build(p).Rollback(ctx, time.Hour) // may fail for many reasons
			},
			"start": func(rt *rapid.T) {
				if i := rapid.IntRange(0, 1).Draw(rt, "which"); servers[i] == nil {
					servers[i] = r.serve(t, p)
				}
			},
			"stop": func(rt *rapid.T) {
				if i := rapid.IntRange(0, 1).Draw(rt, "which"); servers[i] != nil {
					servers[i].stop()
					servers[i] = nil
				}
			},
			"wait": func(rt *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 80).Draw(rt, "ms")) * time.Millisecond) },
		}
		rt.Repeat(steps)
		for i := range servers {
			if servers[i] == nil {
				servers[i] = r.serve(t, p)
			}
		}
		// All pauses end. The last build replaces the tables, whether spoilt or not.
		_ = Resume(t.Context(), r.pool, p)
		_ = Throttle(t.Context(), r.pool, p, 0)
		soon(t, "no build is in progress", func() bool {
			g, found := r.being(t, p)
			if found && g.Status == differs {
				_ = Accept(t.Context(), r.pool, p)
			}
			if found && g.Error != nil {
				require.Empty(t, *g.Error)
			}
			_, built, err := liveGeneration(t.Context(), r.pool, p)
			require.NoError(t, err)
			return !found && built
		})
		b := r.build(p)
		b.How = BuildOptions{Accept: true, Keep: time.Hour}
		require.NoError(t, b.Run(t.Context()))
		head := r.head(t)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			all, err := generations(t.Context(), r.pool, `true`)
			require.NoError(c, err)
			for _, g := range all {
				require.Equal(c, head, g.Position, "%+v", g)
			}
			require.LessOrEqual(c, len(all), 2, "%+v", all)
			require.Len(c, r.schemas(t), len(all))
		}, time.Minute, 20*time.Millisecond)
		r.exact(t, p)
		for _, s := range servers {
			s.stop()
		}
		soon(t, "no lock remains", func() bool { return r.locks(t) == 0 })
	})
}

// TestMain runs the property fewer times than rapid's default, because each run starts processes and waits for them.
func TestMain(m *testing.M) {
	draws.Default(3)
	os.Exit(m.Run())
}
