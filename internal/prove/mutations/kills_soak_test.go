//go:build soak

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/journaltest"
	"bahi/internal/test/pgtest"
)

// The program ends itself at each step of an append under load, and starts again. At the end, the books have each answered write once, and
// each key had one effect.
func TestKillsAtEachStepOfAnAppendLoseNothing(t *testing.T) {
	t.Parallel()
	overlay, steps := kills(t)
	program := filepath.Join(t.TempDir(), "bahi")
	require.NoError(t, apptest.GoBuild(program, "v0-test", "-overlay="+overlay))
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		diesAtEach(t, program, steps, func(step string) bool { return !strings.HasPrefix(step, "journal: ") })
	})
	t.Run("journal", func(t *testing.T) {
		t.Parallel()
		log, _ := apptest.EmptyLog(t)
		diesAtEach(t, program, steps, func(step string) bool {
			return !strings.HasPrefix(step, "calm: ") && step != "locked: sent" // a log with a journal has other statements
		}, "EVENTSTORE_URL="+journaltest.Served(t, log))
	})
}

// diesAtEach kills a program at those steps that it has.
func diesAtEach(t *testing.T, program string, steps []string, has func(step string) bool, settings ...string) {
	t.Helper()
	data, database := t.TempDir(), apptest.Migrated(t)
	named := filepath.Join(data, "kill")
	command := func(args ...string) *apptest.Cmd {
		cmd := apptest.Command(t, data, args...).With("DATABASE_URL="+database, "BAHI_TEST_KILL="+named).With(settings...)
		cmd.Program = program
		return cmd
	}
	p := apptest.Serve(t, command("serve"))
	p.Ready()
	l := apptest.NewLoad(t, p.URL, 1)
	settings = append(settings, "BAHI_ADDR="+strings.TrimPrefix(p.URL, "http://"))
	for _, step := range steps {
		if !has(step) {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		stopped := make(chan struct{})
		go func() {
			l.Run(ctx)
			close(stopped)
		}()
		l.After(ctx, 20, func() { require.NoError(t, os.WriteFile(named, []byte(step), 0o600)) })
		select {
		case <-p.Done:
		case <-ctx.Done():
			require.Fail(t, "the program did not reach the step", step)
		}
		require.NoError(t, os.Remove(named))
		p = apptest.Serve(t, command("serve"))
		p.Ready()
		l.After(ctx, 20, cancel) // clients have repeated what had no answer
		<-stopped
		require.ErrorIs(t, ctx.Err(), context.Canceled, step)
		l.Verify()
		isDense(t, database, step)
	}
	apptest.Healthy(t, command("doctor")) // laws of the log, tables
	apptest.Healthy(t, command("audit", "verify", "--store"))
	p.Stop()
}

// isDense requires that the log has the positions 1 to its head, and that no transaction is cut.
func isDense(t *testing.T, database, step string) {
	t.Helper()
	conn := pgtest.Connect(t, database)
	var dense, whole bool
	require.NoError(t, conn.QueryRow(t.Context(), `
		select count(*) = max(position) and min(position) = 1, bool_and(more = 0 or follows = more - 1)
		from (select position, more, lead(more) over (order by position) follows
			from (select position, coalesce((meta->>'more')::int, 0) more from log.event) e) e`).
		Scan(&dense, &whole))
	require.True(t, dense, step)
	require.True(t, whole, step)
}
