package migrations_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
)

func TestAProgramServesADatabaseThatANewerOneHasMigrated(t *testing.T) {
	t.Parallel()
	url := pgtest.Template(t, "migrated", migrations.Up)
	conn := pgtest.Connect(t, url)
	newer := func(sql string) {
		t.Helper()
		pgtest.Exec(t, conn, sql+`; update public.bahi_schema set version = version + 1`)
	}
	version := pgtest.Value[int](t, conn, `select version from public.bahi_schema`)
	newer(`alter table projection.generation add column mood text`)
	require.NoError(t, migrations.Up(t.Context(), url), "it adds a column")
	newer(fmt.Sprintf(`comment on table public.bahi_schema is 'oldest: %d'`, version))
	require.NoError(t, migrations.Up(t.Context(), url), "it leaves older programs behind")
	newer(fmt.Sprintf(`comment on table public.bahi_schema is 'oldest: %d'`, version+1))
	require.ErrorContains(t, migrations.Up(t.Context(), url),
		fmt.Sprintf("to version %d, and this one, of version %d, cannot serve it", version+3, version))
	now := pgtest.Value[int](t, conn, `select version from public.bahi_schema`)
	require.Equal(t, version+3, now, "it changes nothing")
}

func TestALogOfAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.Template(t, "migrated", migrations.Up)
	conn := pgtest.Connect(t, url)
	for _, c := range []struct {
		sql    string
		format int
	}{{`update log.identity set format = 7`, 7}, {`alter table log.identity drop format`, 1}} {
		pgtest.Exec(t, conn, c.sql+`; update public.bahi_schema set version = 19`)
		const text = "the data are in format %d, and this program reads format %d: start the program that wrote them"
		require.EqualError(t, migrations.Up(t.Context(), url), fmt.Sprintf(text, c.format, migrations.Format))
	}
}

// firstReleased is the first migration of a database that an older program may be serving.
const firstReleased = 9

func TestAMigrationOnlyAddsOrSaysWhichProgramsItLeavesBehind(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.sql")
	require.NoError(t, err)
	breaks := regexp.MustCompile(`(?i)\b(drop|rename|truncate|delete|set not null|alter column|add constraint)\b`)
	for _, file := range files {
		if n, err := strconv.Atoi(file[:4]); err != nil || n < firstReleased {
			continue
		}
		text := worktest.File(t, file)
		// a changed storage, statistic or index breaks no older program
		statements := regexp.MustCompile(`--.*|alter column \w+ set (storage|statistics) \w+|drop index \S+`).ReplaceAllString(string(text), "")
		if !strings.Contains(statements, "comment on table public.bahi_schema is 'oldest: ") {
			require.Empty(t, breaks.FindAllString(statements, -1), "%s breaks programs that serve: see mayServe", file)
		}
	}
}

func TestProcessesThatStartAtOnceMigrateOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.DB(t)
	done := make(chan error)
	const processes = 5
	for range processes {
		go func() { done <- migrations.Up(t.Context(), url) }()
	}
	for range processes {
		require.NoError(t, <-done)
	}
	conn := pgtest.Connect(t, url)
	var log, jobs int
	require.NoError(t, conn.QueryRow(t.Context(),
		`select (select count(*) from log.event), (select count(*) from river.river_job)`).Scan(&log, &jobs))
	require.Zero(t, log+jobs)
}

func TestGenerationsOfOlderProgramsGetTheirStatus(t *testing.T) {
	t.Parallel()
	conn := pgtest.Connect(t, pgtest.DB(t))
	for _, sql := range []string{
		"0003_projections.sql", "0005_reactors.sql", `create table public.bahi_schema ()`,
		`insert into projection.generation (name, generation, version, ddl_sha256, store_id, live, building, phase, scratch, keep_until) values
			('books', 1, 1, '', gen_random_uuid(), true, false, null, false, null),
			('books', 2, 1, '', gen_random_uuid(), false, false, null, false, now()),
			('books', 3, 1, '', gen_random_uuid(), false, true, null, true, null),
			('books', 4, 1, '', gen_random_uuid(), false, false, 'catching up', false, null),
			('books', 5, 2, '', gen_random_uuid(), false, true, null, false, null)`,
		"0012_generation_status.sql",
	} {
		if strings.HasSuffix(sql, ".sql") {
			text := worktest.File(t, sql)
			sql = string(text)
		}
		pgtest.Exec(t, conn, sql)
	}
	statuses := pgtest.Value[[]string](t, conn, `select array_agg(status order by generation) from projection.generation`)
	require.Equal(t, []string{"live", "kept", "scratch", "catching up", "requested"}, statuses)
}
