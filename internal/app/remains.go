package app

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"bahi/eventstore/signal"
	"bahi/projections"
)

const (
	unseenInterval = 100 * time.Millisecond // how often to check for old transactions
	lockTimeout    = 2 * time.Second        // sign-ins may have to wait that long
	maxWrites      = 20                     // rewrites of one table, while a transaction still sees its dead rows
)

// Remains implements the erasures' ResidualData.
type Remains struct {
	System      *System
	Projections []*projections.Projection // projections with personal values in their tables
}

// ScrubMail implements the reactors' ResidualData.
func (r Remains) ScrubMail(ctx context.Context, marks ...string) error {
	if r.System.keptMails == nil {
		return nil
	}
	return r.System.keptMails.Scrub(ctx, marks...)
}

// DeletePictures implements the reactors' ResidualData.
func (r Remains) DeletePictures(ctx context.Context, folder string) error {
	keys, err := r.System.Blobs.List(ctx, folder)
	for _, key := range keys {
		err = errors.Join(err, r.System.Blobs.Delete(ctx, key))
	}
	return err
}

// Scrub implements the reactors' ResidualData. A plain VACUUM leaves the bytes of dead rows in their pages. So Scrub rewrites the tables
// with personal values and the planner's statistics, which are small beside the books. A transaction that locks one of them for longer than
// lockTimeout stops Scrub, because all others would have to wait behind it. At the end, Postgres starts a new file of the write-ahead log
// and removes the old ones.
func (r Remains) Scrub(ctx context.Context) (denied []string, err error) {
	s := &scrubbing{}
	config := r.System.Pool.Config().ConnConfig.Copy()
	config.OnNotice = s.readNotice
	if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	defer s.conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	if err := r.untilUnseen(ctx, s); err != nil {
		return nil, err
	}
	if _, err := s.conn.Exec(ctx, `select set_config('lock_timeout', $1, false)`,
		strconv.FormatInt(lockTimeout.Milliseconds(), 10)); err != nil {
		return nil, err
	}
	rows, _ := s.conn.Query(ctx, `
		select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and n.nspname ~ $1`, r.schemas())
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		if err := r.rewrite(ctx, s, "rewrite "+table, table); err != nil {
			return s.denied, err
		}
	}
	if err := r.rewrite(ctx, s, "rewrite the planner's statistics of values (it does not own the database)", "pg_statistic"); err != nil {
		return s.denied, err
	}
	for _, step := range []struct{ what, sql string }{
		{"write changes to the files (it does not belong to pg_checkpoint)", `checkpoint`},
		{"start a new file of the write-ahead log (it may not execute pg_switch_wal)", `select pg_switch_wal()`},
		{"", `checkpoint`}, // after it, the earlier files are removed
	} {
		if err := s.do(ctx, step.what, step.sql); err != nil {
			return s.denied, err
		}
	}
	return s.denied, nil
}

// rewrite rewrites a table without its dead rows. VACUUM keeps rows that a transaction may still see, and reports success, so rewrite reads
// VACUUM's output: a transaction that began after untilUnseen may have an older snapshot if a transaction of another database is running.
func (r Remains) rewrite(ctx context.Context, s *scrubbing, what, table string) error {
	for range maxWrites {
		s.kept = 0
		if err := s.do(ctx, what, `vacuum (full, verbose, analyze) `+table); err != nil || s.kept == 0 || s.blind {
			return err
		}
		if err := r.untilUnseen(ctx, s); err != nil {
			return err
		}
		if err := signal.Sleep(ctx, unseenInterval); err != nil {
			return err
		}
	}
	return fmt.Errorf("scrub Postgres: %s still has %d dead rows, which a transaction may see", table, s.kept)
}

// schemas returns a pattern for the names of schemas with personal values: those of all generations of the projections that fold such
// values, and a few others.
func (r Remains) schemas() string {
	names := []string{"account", "vault", "river", "inbox"}
	for _, name := range r.people() {
		names = append(names, name+"_g[0-9]+")
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// people returns the names of the projections that fold personal values.
func (r Remains) people() (names []string) {
	for _, p := range r.Projections {
		if p.Personal() {
			names = append(names, p.Name)
		}
	}
	return names
}

// scrubbing is one attempt. An external database may grant it fewer privileges.
type scrubbing struct {
	conn    *pgx.Conn
	skipped bool // Postgres warned during the statement
	kept    int  // dead rows that VACUUM has kept
	blind   bool // cannot see other roles' transactions, and does not wait for them
	denied  []string
}

// readNotice reads Postgres's notices: for a VACUUM without permission there is only a warning.
func (s *scrubbing) readNotice(_ *pgconn.PgConn, n *pgconn.Notice) {
	s.skipped = s.skipped || n.SeverityUnlocalized == "WARNING"
	if n.SeverityUnlocalized == "INFO" { // in every language its detail begins with the number of dead rows that cannot be removed
		line, _, _ := strings.Cut(n.Detail, "\n")
		kept, _ := strconv.Atoi(firstNumber.FindString(line))
		s.kept += kept
	}
}

var firstNumber = regexp.MustCompile(`[0-9]+`)

// do runs a statement, and records it if it is not permitted.
func (s *scrubbing) do(ctx context.Context, what, sql string) error {
	s.skipped = false
	_, err := s.conn.Exec(ctx, sql)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "42501" { // insufficient_privilege
		s.skipped, err = true, nil
	}
	if err != nil {
		return fmt.Errorf("scrub Postgres (%s): %w", sql, err)
	}
	if s.skipped && what != "" {
		s.denied = append(s.denied, what)
	}
	return nil
}

// untilUnseen waits until no transaction sees the earlier state of the database. Otherwise VACUUM would silently keep those rows.
func (r Remains) untilUnseen(ctx context.Context, s *scrubbing) error {
	var (
		now    string
		seeing bool
	)
	err := s.conn.QueryRow(ctx, `select pg_current_xact_id()::xid::text, pg_has_role(current_user, 'pg_read_all_stats', 'usage')`).Scan(&now,
		&seeing)
	if err != nil {
		return err
	}
	if !seeing && !s.blind {
		s.blind = true
		s.denied = append(s.denied, "see other roles' transactions, to wait for them (it does not belong to pg_read_all_stats)")
	}
	for looks := 0; ; looks++ {
		var seen bool
		err := s.conn.QueryRow(ctx, `
			select exists (
				select from pg_stat_activity
				where (datname = current_database() and pid <> pg_backend_pid() or backend_type = 'walsender')
					and pid not in (select pid from pg_stat_progress_vacuum) -- whose snapshot keeps nothing; that of an ANALYZE does
					and greatest(age(backend_xmin), age(backend_xid)) > age($1::xid)
				union all select from pg_prepared_xacts where database = current_database() and age(transaction) > age($1::xid)
				union all select from pg_replication_slots where greatest(age(xmin), age(catalog_xmin)) > age($1::xid))`, now).Scan(&seen)
		if err != nil || !seen {
			return err
		}
		if looks == 0 {
			r.System.Log.Warn("erasure waits for older transactions to end")
		}
		if err := signal.Sleep(ctx, unseenInterval); err != nil {
			return fmt.Errorf("an older transaction still sees erased values: %w", err)
		}
	}
}
