package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"bahi/domain/event"
	"bahi/eventstore"
)

// Build makes the next generation of a projection while the one before it is read. What it has done is in
// the registry, so that any process that has the program can go on where another one ended.
//
// Its phases: requested, filling, indexing, catching up, comparing; then readers find the new generation.
// If it differs from the one that they read so far, it stays at that, and follows the log, until somebody
// accepts the differences or cancels the build.
type Build struct {
	Store      eventstore.Store
	Config     *pgx.ConnConfig
	Projection *Projection
	Reveal     Reveal // nil when the projection has no personal values
	Log        *slog.Logger
	Program    string           // version of the program, for who looks at its errors
	Now        func() time.Time // nil: no rates are measured
	Stay       bool             // to wait where the tables differ from the live ones, and not answer [ErrDiffers]
	How        How              // for a build that is not under way yet
	Progress   func(Progress)   // of a build under way in whichever process; may be nil
}

// How is how a generation is built.
type How struct {
	Throttle   int           // the most events a second; 0: as many as it can
	Partitions int           // parts that fill at once, where the projection allows it; 0: as the machine is
	Accept     bool          // it may differ from the generation that it replaces
	Keep       time.Duration // how long that one follows on, so that it can be read again at once
}

// Progress is how far a build is.
type Progress struct {
	Phase       string
	Done, Total event.Position
	Rate        int64         // events a second
	Then        time.Duration // that the phases behind the fill take; 0: nobody can tell
}

// What a build ends with, other than a new generation.
var (
	ErrBuildRuns = errors.New("the projection is being built already")
	ErrCancelled = errors.New("the build was cancelled")
	ErrDiffers   = errors.New("the new tables differ from the live ones")
)

// Run builds the next generation and returns when it is read. It works itself, or watches the process that
// does. When ctx ends, the build stops until another process takes it up, which a serving one does.
//
// It returns ErrBuildRuns when a build is under way, ErrCancelled, ErrDiffers when the build waits for that to be
// accepted, or why it has stopped.
func (b Build) Run(ctx context.Context) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	if err := sweep(ctx, conn, b.Projection); err != nil {
		return err
	}
	g, err := b.request(ctx, conn)
	if err != nil {
		return err
	}
	return b.until(ctx, conn, g)
}

// Join is Run for a build that is under way, in another process or since one that is gone. It answers
// ErrNoBuild when there is none.
func (b Build) Join(ctx context.Context) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	g, found, err := b.underWay(ctx, conn)
	if err == nil && !found {
		err = ErrNoBuild
	}
	if err != nil {
		return err
	}
	return b.until(ctx, conn, g)
}

// Request asks for the next generation, which [Runner.Tend] builds.
func (b Build) Request(ctx context.Context) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	_, err = b.request(ctx, conn)
	return errors.Join(err, conn.Close(ctx))
}

// first builds the version's first generation, or goes on with what another process has begun of it.
func (b Build) first(ctx context.Context, conn *pgx.Conn) error {
	g, found, err := b.underWay(ctx, conn)
	if err == nil && !found {
		g, err = b.request(ctx, conn)
	}
	if errors.Is(err, ErrBuildRuns) { // since a moment ago
		g, _, err = b.underWay(ctx, conn)
	}
	if err == nil && g.Error != nil {
		err = errors.New(*g.Error)
	}
	if err != nil || g.Generation == 0 { // the other process is done already
		return err
	}
	return b.until(ctx, conn, g)
}

// request enters the build into the registry.
func (b Build) request(ctx context.Context, conn *pgx.Conn) (generation, error) {
	g, err := newGeneration(ctx, conn, b.Projection, b.Store.ID(), b.How, false)
	if isTaken(err) {
		return g, fmt.Errorf("%s: %w", b.Projection.Name, ErrBuildRuns)
	}
	return g, err
}

// underWay returns the build that is in the registry.
func (b Build) underWay(ctx context.Context, db querier) (generation, bool, error) {
	return oneGeneration(ctx, db, isBuilt, b.Projection.Name, b.Projection.Version)
}

// until works on a build, or waits while another process does, until it is over.
func (b Build) until(ctx context.Context, conn *pgx.Conn, g generation) error {
	for {
		var mine bool
		if err := conn.QueryRow(ctx, `select `+tryHold, g.schema()).Scan(&mine); err != nil {
			return err
		}
		if mine {
			err := b.work(ctx, conn, g)
			if _, letGoErr := conn.Exec(ctx, `select `+letGo, g.schema()); err == nil && letGoErr != nil {
				b.Log.Warn("the lock on a build is given up with its connection", "error", letGoErr)
			}
			return err
		}
		now, found, err := oneGeneration(ctx, conn, `name = $1 and generation = $2 and not scratch`, g.Name, g.Generation)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("build %s: %w", g.Name, ErrCancelled)
		case now.Live:
			return nil
		case now.Error != nil:
			return errors.New(*now.Error)
		case now.phase() == differs && !now.Accepted && !b.Stay:
			return fmt.Errorf("build %s: %w", g.Name, ErrDiffers)
		}
		b.tell(now)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tryAgain):
		}
	}
}

func (b Build) tell(g generation) {
	if b.Progress == nil {
		return
	}
	now := Progress{Phase: g.phase(), Done: g.Position, Total: max(g.Total, g.Position), Rate: g.Rate}
	if b.Now != nil && g.Rate > 0 {
		now.Then = g.then(b.Now())
	}
	b.Progress(now)
}

// work takes a build from where it is to its end. The caller holds the lock on it. Why it has stopped, if
// that is not for this process or the database to get over, is noted in the registry.
func (b Build) work(ctx context.Context, conn *pgx.Conn, g generation) error {
	s := b.session(conn, g)
	err := s.own(ctx)
	if errors.Is(err, ErrFenced) {
		return fmt.Errorf("build %s: %w", g.Name, ErrCancelled)
	}
	if err != nil {
		return err
	}
	if s.g.Live {
		return nil
	}
	watched, c, err := b.control(ctx, s)
	if err != nil {
		return err
	}
	err = b.steps(watched, s, c)
	if fenced := context.Cause(watched); err != nil && errors.Is(fenced, ErrFenced) {
		err = fenced
	}
	c.end()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFenced):
		switch live, gone := b.became(ctx, g); {
		case live:
			return nil
		case gone:
			err = ErrCancelled
		}
	case ctx.Err() == nil && !errors.Is(err, ErrDiffers) && !isTransient(conn, err):
		b.noteFailure(ctx, s, err)
	}
	return fmt.Errorf("build %s: %w", g.Name, err)
}

func (b Build) session(conn *pgx.Conn, g generation) *session {
	return &session{p: b.Projection, g: g, owner: uuid.New(), conn: conn, pace: pace{now: b.Now}}
}

// became says what has become of a build that is no longer this process's: whether it is read, or somebody has
// cancelled it.
func (b Build) became(ctx context.Context, g generation) (live, gone bool) {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return false, false
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	now, there, err := oneGeneration(ctx, conn, `name = $1 and generation = $2 and not scratch`, g.Name, g.Generation)
	return err == nil && now.Live, err == nil && !there
}

// steps are the phases that are left.
func (b Build) steps(ctx context.Context, s *session, c *control) error {
	if err := b.belongs(ctx, s.g, s.g.Position, s.g.EventID); err != nil {
		return err
	}
	if s.g.DDL != b.Projection.Hash() { // begun by another state of this version's program
		if err := b.startOver(ctx, s); err != nil {
			return err
		}
	}
	if s.g.phase() == requested {
		if err := b.makeTables(ctx, s); err != nil {
			return err
		}
	}
	if err := useSchema(ctx, s.conn, s.g.schema()); err != nil {
		return err
	}
	if s.g.phase() == filling {
		limit, err := b.fillTo(ctx, s)
		if err == nil {
			err = b.fill(ctx, s, c, limit)
		}
		if err != nil {
			return err
		}
	}
	if s.g.phase() == indexing {
		if err := b.index(ctx, s); err != nil {
			return err
		}
	}
	return b.takeOver(ctx, s, c)
}

// belongs holds a place that a build has come to against the log.
func (b Build) belongs(ctx context.Context, g generation, at event.Position, id *uuid.UUID) error {
	if g.StoreID != b.Store.ID() {
		return &mismatch{fmt.Sprintf("the build of %s was begun with log %s, and this is log %s: cancel it and begin anew", g.Name, g.StoreID, b.Store.ID())}
	}
	if id == nil {
		return nil
	}
	if known, err := has(ctx, b.Store, at, *id); err != nil || known {
		return err
	}
	return &mismatch{fmt.Sprintf("the build of %s stands at position %d on event %s, and the log has no such event there: cancel it and begin anew", g.Name, at, *id)}
}

// enter notes the phase that the build is in.
func (b Build) enter(ctx context.Context, db querier, s *session, phase string) error {
	done, err := db.Exec(ctx, `update projection.generation set phase = $4, error = null, error_at = null, error_position = null
		where name = $1 and generation = $2 and owner = $3`, s.g.Name, s.g.Generation, s.owner, phase)
	if err == nil && done.RowsAffected() == 0 {
		err = ErrFenced
	}
	if err == nil {
		s.g.Phase = &phase
		b.Log.Debug("a build came to a phase", "projection", s.g.Name, "generation", s.g.Generation, "phase", phase, "position", s.g.Position)
		b.tell(s.g)
	}
	return err
}

// makeTables makes the empty tables.
func (b Build) makeTables(ctx context.Context, s *session) error {
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if err := inSchema(ctx, tx, s.g.schema(), `create schema `+s.g.schema()+`; `+b.Projection.tables); err != nil {
			return fmt.Errorf("make tables: %w", err)
		}
		_, err := tx.Exec(ctx, `insert into projection.partition (name, generation, nth) select $1, $2, generate_series(0, $3 - 1)`,
			s.g.Name, s.g.Generation, s.g.Partitions)
		if err != nil {
			return err
		}
		return b.enter(ctx, tx, s, filling)
	})
}

// startOver empties the generation.
func (b Build) startOver(ctx context.Context, s *session) error {
	b.Log.Info("a build was begun with other tables than this program makes, and starts over", "projection", s.g.Name, "generation", s.g.Generation)
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `drop schema if exists `+s.g.schema()+` cascade`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from projection.partition where name = $1 and generation = $2`, s.g.Name, s.g.Generation); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			update projection.generation set ddl_sha256 = $4, phase = $5, building = true, position = 0, event_id = null, differences = null
			where name = $1 and generation = $2 and owner = $3 returning `+generationColumns,
			s.g.Name, s.g.Generation, s.owner, b.Projection.Hash(), requested)
		g, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[generation])
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrFenced
		}
		s.g = g
		return err
	})
}

// fillTo returns where the fill ends: where the live tables are, if they are of this log, so that the two
// can be compared; else at the log's head.
func (b Build) fillTo(ctx context.Context, s *session) (event.Position, error) {
	head, err := b.Store.Head(ctx)
	if err != nil {
		return 0, err
	}
	of, found, err := b.reference(ctx, s)
	if err == nil && found {
		head = min(head, of.Position)
	}
	return head, err
}

// index runs what is behind the fill in the DDL. What is there stays when it is done again.
func (b Build) index(ctx context.Context, s *session) error {
	if err := b.makeIndexes(ctx, s); err != nil {
		return fmt.Errorf("make indexes: %w", err)
	}
	return b.completeTables(ctx, s, keyedPlans)
}

// makeIndexes makes the indexes two at a time, since nothing else has to be done meanwhile.
func (b Build) makeIndexes(ctx context.Context, s *session) error {
	indexes, _ := b.Projection.indexes()
	helper, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer helper.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	if err := useSchema(ctx, helper, s.g.schema()); err != nil {
		return err
	}
	todo, failed := make(chan string, len(indexes)), make(chan error, 2)
	for _, index := range indexes {
		todo <- index
	}
	close(todo)
	for _, conn := range []*pgx.Conn{s.conn, helper} {
		go func() {
			for index := range todo {
				if _, err := conn.Exec(ctx, index); err != nil {
					if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.ConstraintName == "pg_class_relname_nsp_index" {
						err = &unreachable{err} // a process that has lost the build came to the end of this index just now
					}
					failed <- orUnreachable(conn, err)
					return
				}
			}
			failed <- nil
		}()
	}
	return errors.Join(<-failed, <-failed)
}

// completeTables runs the rest of what is behind the fill, with settings of Postgres's planner.
func (b Build) completeTables(ctx context.Context, s *session, plans string) error {
	_, rest := b.Projection.indexes()
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, plans); err != nil {
			return err
		}
		if err := inSchema(ctx, tx, s.g.schema(), rest); err != nil {
			return fmt.Errorf("make what comes after the fill: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from projection.partition where name = $1 and generation = $2`, s.g.Name, s.g.Generation); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update projection.generation set building = false where name = $1 and generation = $2`, s.g.Name, s.g.Generation); err != nil {
			return err
		}
		return b.enter(ctx, tx, s, catchingUp)
	})
	if err == nil {
		s.g.Building = false
	}
	return err
}

// foldUpTo folds the log in large batches, which are read and decoded ahead.
func (b Build) foldUpTo(ctx context.Context, s *session, limit event.Position) error {
	decoding, err := newDecoder(ctx, b.Store, b.Projection, b.Reveal)
	if err != nil {
		return err
	}
	for d, err := range b.ahead(ctx, decoding, s.g.Position, limit, nil) {
		if d.upTo > s.g.Position {
			if err := s.applyFinding(ctx, d); err != nil {
				return err
			}
			b.tell(s.g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noteFailure writes why a build has stopped, unless another process has taken it up.
func (b Build) noteFailure(ctx context.Context, s *session, why error) {
	b.Log.Error("a build stands still", "projection", s.g.Name, "generation", s.g.Generation, "error", why)
	conn, err := connect(ctx, b.Config, b.Projection)
	if err == nil {
		_, err = noteIn(ctx, conn, why, b.Program, `name = $1 and generation = $2 and owner = $3`, s.g.Name, s.g.Generation, s.owner)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		b.Log.Warn("why a build stands still was not noted", "projection", s.g.Name, "error", err)
	}
}
