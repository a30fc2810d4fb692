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
	"bahi/domain/fault"
	"bahi/eventstore"
	"bahi/eventstore/signal"
)

// Build creates the next generation of a projection while the previous one serves reads. The registry has the progress of the build, so any
// process of the program can resume it.
//
// Its phases are requested, filling, indexing, catching up and comparing. Then readers switch to the new generation. If its tables differ
// from the live ones, the build stays up to date until an operator accepts the differences or cancels it.
type Build struct {
	Store      eventstore.Store
	Config     *pgx.ConnConfig
	Projection *Projection
	Reveal     Reveal // nil if the projection has no personal values
	Log        *slog.Logger
	Program    string           // version of the program, for error reports
	Now        func() time.Time // nil: measure no rates
	Stay       bool             // wait if the tables differ from the live ones, instead of returning [ErrDiffers]
	How        BuildOptions     // for a new build
	Progress   func(Progress)   // receives the progress of a build in any process; may be nil
}

// BuildOptions has the options of a build.
type BuildOptions struct {
	Throttle   int           // maximum events per second; 0: unlimited
	Partitions int           // parallel parts of the fill, if the projection allows them; 0: chosen by the number of processors
	Accept     bool          // the tables may differ from the replaced generation's
	Keep       time.Duration // time for which the replaced generation stays up to date for a rollback
}

// Progress is the progress of a build.
type Progress struct {
	Phase       string
	Done, Total event.Position
	Rate        int64         // events per second
	Then        time.Duration // estimate for the phases after the fill; 0: unknown
}

// Reasons why a build ends without a new generation.
var (
	ErrBuildRuns = fault.New(fault.Conflict, "The projection is being rebuilt already")
	ErrCancelled = errors.New("the build was cancelled")
	ErrDiffers   = errors.New("the new tables differ from the live ones")
)

// Run builds the next generation and returns when readers have switched to it. If another process does the work, Run waits for that
// process. If ctx ends, the build stops until another process resumes it, as serving processes do.
//
// It returns ErrBuildRuns if a build is in progress, ErrCancelled, ErrDiffers if the build waits for an operator, or the error that stopped
// the build.
func (b Build) Run(ctx context.Context) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	if err := sweep(ctx, conn, b.Projection); err != nil {
		return err
	}
	g, err := b.request(ctx, conn)
	if err != nil {
		return err
	}
	return b.until(ctx, conn, g)
}

// Join is Run for a build that is in progress in another process, or interrupted. It returns ErrNoBuild if there is none.
func (b Build) Join(ctx context.Context) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	g, found, err := b.underWay(ctx, conn)
	if err == nil && !found {
		err = ErrNoBuild
	}
	if err != nil {
		return err
	}
	return b.until(ctx, conn, g)
}

// Request enters a build into the registry. [Runner.MaintainGenerations] then does the work.
func (b Build) Request(ctx context.Context) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	_, err = b.request(ctx, conn)
	return errors.Join(err, conn.Close(ctx))
}

// first builds the version's first generation, or resumes it.
func (b Build) first(ctx context.Context, conn *pgx.Conn) error {
	g, found, err := b.underWay(ctx, conn)
	if err == nil && !found {
		var live bool
		if _, live, err = liveGeneration(ctx, conn, b.Projection); live { // the build ended after the caller's check
			return nil
		}
	}
	if err == nil && !found {
		g, err = b.request(ctx, conn)
	}
	if errors.Is(err, ErrBuildRuns) { // by another process, just now
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
	g, err := newGeneration(ctx, conn, b.Projection, b.Store.ID(), b.How, requested)
	if isTaken(err) {
		return g, fmt.Errorf("%s: %w", b.Projection.Name, ErrBuildRuns)
	}
	return g, err
}

// underWay returns the build in the registry.
func (b Build) underWay(ctx context.Context, db querier) (generation, bool, error) {
	return oneGeneration(ctx, db, isBuilt, b.Projection.Name, b.Projection.Version)
}

// until works on a build until it ends, or waits while another process works on it.
func (b Build) until(ctx context.Context, conn *pgx.Conn, g generation) error {
	for {
		mine, err := g.lock().try(ctx, conn)
		if err != nil {
			return err
		}
		if mine {
			err := b.work(ctx, conn, g)
			if notReleased := g.lock().release(ctx, conn); err == nil && notReleased != nil {
				b.Log.Warn("releasing the lock on a build failed; it ends with its connection", "error", notReleased)
			}
			return err
		}
		now, found, err := oneGeneration(ctx, conn, `name = $1 and generation = $2 and status <> 'scratch'`, g.Name, g.Generation)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("build %s: %w", g.Name, ErrCancelled)
		case now.built():
			return nil
		case now.Error != nil:
			return errors.New(*now.Error)
		case now.Status == differs && !now.Accepted && !b.Stay:
			return fmt.Errorf("build %s: %w", g.Name, ErrDiffers)
		}
		b.reportProgress(now)
		if err := signal.Sleep(ctx, tryAgain); err != nil {
			return err
		}
	}
}

func (b Build) reportProgress(g generation) {
	if b.Progress == nil {
		return
	}
	now := Progress{Phase: g.Status, Done: g.Position, Total: max(g.Total, g.Position), Rate: g.Rate}
	if b.Now != nil && g.Rate > 0 {
		now.Then = g.then(b.Now())
	}
	b.Progress(now)
}

// work completes a build. The caller holds its lock. If the build stops for a permanent reason, work records the reason in the registry.
func (b Build) work(ctx context.Context, conn *pgx.Conn, g generation) error {
	s := b.session(conn, g)
	err := s.own(ctx)
	if errors.Is(err, ErrFenced) {
		return fmt.Errorf("build %s: %w", g.Name, ErrCancelled)
	}
	if err != nil {
		return err
	}
	if s.g.built() {
		return nil
	}
	watched, c := b.control(ctx, s)
	err = b.steps(watched, s, c)
	if fenced := context.Cause(watched); err != nil && errors.Is(fenced, ErrFenced) {
		err = fenced
	}
	c.end()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFenced):
		switch built, gone := b.became(ctx, g); {
		case built:
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

// became reports whether a build that this process has lost is complete, or was cancelled and no longer exists.
func (b Build) became(ctx context.Context, g generation) (built, gone bool) {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return false, false
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	now, there, err := oneGeneration(ctx, conn, `name = $1 and generation = $2 and status <> 'scratch'`, g.Name, g.Generation)
	return err == nil && now.built(), err == nil && !there
}

// steps runs the remaining phases.
func (b Build) steps(ctx context.Context, s *session, c *control) error {
	if err := b.belongs(ctx, s.g, s.g.Position, s.g.EventID); err != nil {
		return err
	}
	if s.g.DDL != b.Projection.Hash() { // another program with this version has created the tables
		if err := b.startOver(ctx, s); err != nil {
			return err
		}
	}
	if s.g.Status == requested {
		if err := b.makeTables(ctx, s); err != nil {
			return err
		}
	}
	if err := useSchema(ctx, s.conn, s.g.schema()); err != nil {
		return err
	}
	if s.g.Status == filling {
		limit, err := b.fillTo(ctx, s)
		if err == nil {
			err = b.fill(ctx, s, c, limit)
		}
		if err != nil {
			return err
		}
	}
	if s.g.Status == indexing {
		if err := b.index(ctx, s); err != nil {
			return err
		}
	}
	return b.takeOver(ctx, s, c)
}

// belongs checks that the log has the event at which the build stopped.
func (b Build) belongs(ctx context.Context, g generation, at event.Position, id *uuid.UUID) error {
	if g.StoreID != b.Store.ID() {
		return &mismatch{fmt.Sprintf("the build of %s belongs to log %s, and this is log %s: cancel the build and start again", g.Name,
			g.StoreID, b.Store.ID())}
	}
	if id == nil {
		return nil
	}
	if known, err := has(ctx, b.Store, at, *id); err != nil || known {
		return err
	}
	return &mismatch{fmt.Sprintf("the build of %s is at position %d with event %s, but the log has no such event there: cancel it and start "+
		"again", g.Name, at, *id)}
}

// enter records the build's phase.
func (b Build) enter(ctx context.Context, db querier, s *session, phase string) error {
	status := phase
	if s.check {
		status = statusScratch
	}
	changed, err := become(ctx, db, status, `error = null, error_at = null, error_position = null`,
		`name = $1 and generation = $2 and owner = $3`, s.g.Name, s.g.Generation, s.owner)
	if err == nil && len(changed) == 0 {
		err = ErrFenced
	}
	if err == nil {
		s.g.Status = phase
		b.Log.Debug("build entered a phase", "projection", s.g.Name, "generation", s.g.Generation, "phase", phase, "position", s.g.Position)
		b.reportProgress(s.g)
	}
	return err
}

// makeTables creates the empty tables.
func (b Build) makeTables(ctx context.Context, s *session) error {
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if err := lockRegistry(ctx, tx); err != nil {
			return err
		}
		unlogged, err := registryUnlogged(ctx, tx)
		if err != nil {
			return err
		}
		if unlogged { // the schema may belong to a generation that the registry has lost
			if _, err := tx.Exec(ctx, `drop schema if exists `+s.g.schema()+` cascade`); err != nil {
				return err
			}
		}
		if err := inSchema(ctx, tx, s.g.schema(), `create schema `+s.g.schema()+`; `+b.Projection.tables); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
		if unlogged {
			if err := alterSchema(ctx, tx, "unlogged", s.g.schema()); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `insert into projection.partition (name, generation, ordinal) select $1, $2, generate_series(0, $3 - 1)`,
			s.g.Name, s.g.Generation, s.g.Partitions)
		if err != nil {
			return err
		}
		return b.enter(ctx, tx, s, filling)
	})
}

// startOver empties the generation.
func (b Build) startOver(ctx context.Context, s *session) error {
	b.Log.Info("a build has other tables than this program's; starting over", "projection", s.g.Name, "generation", s.g.Generation)
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `drop schema if exists `+s.g.schema()+` cascade`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from projection.partition where name = $1 and generation = $2`, s.g.Name, s.g.Generation); err != nil {
			return err
		}
		changed, err := become(ctx, tx, requested, `ddl_sha256 = $4, position = 0, event_id = null, differences = null`,
			`name = $1 and generation = $2 and owner = $3`, s.g.Name, s.g.Generation, s.owner, b.Projection.Hash())
		if err != nil {
			return err
		}
		if len(changed) == 0 {
			return ErrFenced
		}
		s.g = changed[0]
		return nil
	})
}

// fillTo returns the end of the fill. It is the position of the live tables if they are of this log, so that both can be compared,
// otherwise the log's head.
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

// index runs the DDL after the fill. It is idempotent.
func (b Build) index(ctx context.Context, s *session) error {
	if err := b.makeIndexes(ctx, s); err != nil {
		return fmt.Errorf("create indexes: %w", err)
	}
	return b.completeTables(ctx, s, keyedPlans)
}

// indexers limits the number of builds that create indexes with a second connection. The first start builds all projections at once, and
// Postgres accepts a hundred connections by default.
var indexers = make(chan struct{}, 2)

// makeIndexes creates two indexes at a time after a large fill, because the build has no other work.
func (b Build) makeIndexes(ctx context.Context, s *session) error {
	indexes, _ := b.Projection.indexes()
	conns := []*pgx.Conn{s.conn}
	if s.g.Position > fillBatch {
		select {
		case indexers <- struct{}{}:
			defer func() { <-indexers }()
			helper, err := connect(ctx, b.Config, b.Projection)
			if err != nil {
				return err
			}
			defer helper.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
			if err := useSchema(ctx, helper, s.g.schema()); err != nil {
				return err
			}
			conns = append(conns, helper)
		default:
		}
	}
	todo, failed := make(chan string, len(indexes)), make(chan error, len(conns))
	for _, index := range indexes {
		todo <- index
	}
	close(todo)
	for _, conn := range conns {
		go func() {
			for index := range todo {
				if _, err := conn.Exec(ctx, index); err != nil {
					if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.ConstraintName == "pg_class_relname_nsp_index" {
						err = &unreachable{err} // this process lost the build while it created the index
					}
					failed <- orUnreachable(conn, err)
					return
				}
			}
			failed <- nil
		}()
	}
	var err error
	for range conns {
		err = errors.Join(err, <-failed)
	}
	return err
}

// completeTables collects the planner's statistics and runs the rest of the DDL after the fill, with the planner settings in plans.
func (b Build) completeTables(ctx context.Context, s *session, plans string) error {
	if err := analyze(ctx, s); err != nil {
		return fmt.Errorf("collect statistics: %w", err)
	}
	_, rest := b.Projection.indexes()
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, plans); err != nil {
			return err
		}
		if err := inSchema(ctx, tx, s.g.schema(), rest); err != nil {
			return fmt.Errorf("run the DDL after the fill: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from projection.partition where name = $1 and generation = $2`, s.g.Name, s.g.Generation); err != nil {
			return err
		}
		return b.enter(ctx, tx, s, catchingUp)
	})
}

// foldUpTo folds the log in large batches. It reads and decodes the next batch while it folds one.
func (b Build) foldUpTo(ctx context.Context, s *session, limit event.Position) error {
	decoding, err := newDecoder(ctx, b.Store, b.Projection, b.Reveal)
	if err != nil {
		return err
	}
	for d, err := range b.ahead(ctx, decoding, s.g.Position, limit, nil) {
		if d.upTo > s.g.Position {
			if err := applyIsolating(ctx, s, s.conn, d); err != nil {
				return err
			}
			b.reportProgress(s.g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noteFailure records the error that stopped a build, unless another process has resumed the build.
func (b Build) noteFailure(ctx context.Context, s *session, why error) {
	b.Log.Error("build stopped", "projection", s.g.Name, "generation", s.g.Generation, "error", why)
	conn, err := connect(ctx, b.Config, b.Projection)
	if err == nil {
		_, err = noteIn(ctx, conn, why, b.Program, `name = $1 and generation = $2 and owner = $3`, s.g.Name, s.g.Generation, s.owner)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		b.Log.Warn("recording a build's failure failed", "projection", s.g.Name, "error", err)
	}
}
