package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"bahi/domain/marketplace/product"
	"bahi/internal/app"
	"bahi/internal/cli"
	"bahi/internal/test/apptest"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
)

// terminal opens a terminal. It returns the file for a program's output, and a function that returns the screen.
func terminal(t *testing.T) (tty *os.File, shown *logtest.Buffer) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(screen.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120}))
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	shown = &logtest.Buffer{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(shown, screen) // ends with an error once the terminal is closed
	}()
	t.Cleanup(func() {
		require.NoError(t, tty.Close())
		<-ended
		require.NoError(t, screen.Close())
	})
	return tty, shown
}

// The test blocks the log before each append of the import, so that nothing depends on the import's duration.
func TestTheImportOfACatalogShowsABar(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	id, slug := sold(t, o)
	file := filepath.Join(t.TempDir(), "catalog.csv")
	require.NoError(t, os.WriteFile(file, []byte("name,price\n"+strings.Repeat("Hook,1\n", product.MaxBatch+1)), 0o600))
	held := make([]*pgx.Conn, 2)
	for i := range held {
		var err error
		held[i], err = pgx.Connect(t.Context(), o.Database)
		require.NoError(t, err)
		t.Cleanup(func() { _ = held[i].Close(context.WithoutCancel(t.Context())) })
	}
	hold := func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), `select pg_advisory_lock(8241001)`)
		return err
	}
	require.NoError(t, hold(held[0]))

	tty, shown := terminal(t)
	cmd := apptest.Command(t, t.TempDir(), "catalog", "import", file, "--company", slug)
	var out bytes.Buffer
	done := make(chan int, 1)
	go func() {
		env := append(slices.Clip(cmd.Env), "DATABASE_URL="+o.Database, "EVENTSTORE_URL="+o.Sys.Settings.EventStore)
		done <- cli.Run(t.Context(), app.Shell{In: cmd.Stdin, Out: &out, Err: tty, Env: env}, cmd.Args...)
	}()
	// until waits until a connection that waits for the log matches a condition, in which $1 is the pid of another one.
	until := func(condition string, of *pgx.Conn) {
		t.Helper()
		require.Eventually(t, func() (waits bool) {
			require.NoError(t, o.Sys.Pool.QueryRow(t.Context(), `
				select exists (select from pg_locks join pg_stat_activity a using (pid) where locktype = 'advisory' and objid = 8241001 and not granted
					and datname = current_database() and `+condition+`)`, of.PgConn().PID()).Scan(&waits))
			return waits
		}, time.Minute, 10*time.Millisecond)
	}
	// The import's connections are newer than those of the test.
	const imports = `pid <> $1 and backend_start > (select backend_start from pg_stat_activity where pid = $1)`
	until(imports+` and waitstart < clock_timestamp() - interval '1 second'`, held[1])
	require.Empty(t, shown.String(), "a short import shows nothing")
	for i, batches := 1, 0; batches == 0; i++ {
		until(imports, held[1])
		next, before := held[i%2], held[(i+1)%2]
		holds := make(chan error, 1)
		go func() { holds <- hold(next) }()
		until(`pid = $1`, next)
		pgtest.Exec(t, before, `select pg_advisory_unlock(8241001)`)
		require.NoError(t, <-holds)
		require.NoError(t, o.Sys.Pool.QueryRow(t.Context(), `select count(*) from log.event where type = 'ProductsImported'`).Scan(&batches))
	}
	bar := regexp.MustCompile(`import +500 / 501 .* [1-9]\d* products/s, \d+s left`)
	require.Eventually(t, func() bool { return bar.MatchString(shown.String()) }, time.Minute, 10*time.Millisecond)
	for _, c := range held {
		require.NoError(t, c.Close(t.Context()))
	}
	require.Equal(t, 0, <-done, shown.String())
	require.Equal(t, "501 products created, 0 rows failed\n", out.String())
	o.Anonymous().GET("/api/v1/catalog?company_id=" + id).Status(200).Contains(`"total":501,`)
}
