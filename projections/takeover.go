package projections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"bahi/domain/event"
	"bahi/eventstore/signal"
)

const (
	// closeBy is the maximum number of events that the new tables may lag when readers switch. These events are folded while the live
	// projection is stopped, and readers of the newest events wait meanwhile.
	closeBy = 256

	// tries is the number of attempts after which closeBy doubles, because writes outpace the fold.
	tries = 20

	// answersTimeout is the timeout of the lock of a row of the registry.
	answersTimeout = `10s`
)

// takeOver brings the new tables up to date, compares them with the live ones, and makes them live.
func (b Build) takeOver(ctx context.Context, s *session, c *control) error {
	if err := b.agree(ctx, s, c); err != nil {
		return err
	}
	if err := b.enter(ctx, s.conn, s, catchingUp); err != nil {
		return err
	}
	for within := event.Position(closeBy); ; {
		for range tries {
			head, err := b.Store.Head(ctx)
			if err == nil {
				err = b.foldUpTo(ctx, s, head)
			}
			if err == nil {
				err = c.wait(ctx, 0)
			}
			if err != nil {
				return err
			}
			if err = b.swap(ctx, s, within); !errors.Is(err, errBehind) {
				return err
			}
		}
		within *= 2
	}
}

// agree returns when the new tables equal those of the replaced generation at one position, or an operator has accepted the differences. It
// logs if there are no tables to compare with.
func (b Build) agree(ctx context.Context, s *session, c *control) error {
	if s.g.Status == differs { // an earlier process has found the differences
		return b.untilAccepted(ctx, s, c)
	}
	of, found, err := b.reference(ctx, s)
	if err != nil || !found {
		return err
	}
	if err := b.foldUpTo(ctx, s, of.Position); err != nil {
		return err
	}
	if err := b.enter(ctx, s.conn, s, comparing); err != nil {
		return err
	}
	compared, err := b.compareWith(ctx, s, of)
	if errors.Is(err, errNotMoving) {
		b.Log.Warn("new generation not compared: the live one has stopped at an earlier position",
			"projection", s.g.Name, "generation", s.g.Generation, "position", s.g.Position, "live", of.Position)
		return nil
	}
	if err != nil || len(compared.Differences) == 0 {
		return err
	}
	for _, d := range compared.Differences {
		b.Log.Warn("new generation differs from the live one", "projection", s.g.Name, "generation", s.g.Generation,
			"position", compared.Position, "table", d.Table, "rows", d.Count)
	}
	if b.Projection.personal { // erasures do not erase rows in the registry; `bahi doctor` shows the rows
		for i := range compared.Differences {
			compared.Differences[i].Rows = nil
		}
	}
	text, err := json.Marshal(compared.Differences)
	if err != nil {
		return err
	}
	_, err = s.conn.Exec(ctx, `update projection.generation set differences = $3 where name = $1 and generation = $2`, s.g.Name,
		s.g.Generation, text)
	if err != nil {
		return err
	}
	return b.untilAccepted(ctx, s, c)
}

// untilAccepted keeps the tables up to date until an operator accepts the differences.
func (b Build) untilAccepted(ctx context.Context, s *session, c *control) error {
	if c.accepted.Load() {
		return nil
	}
	if err := b.enter(ctx, s.conn, s, differs); err != nil {
		return err
	}
	if !b.Stay {
		return ErrDiffers
	}
	return b.follow(ctx, s, c.accepted.Load)
}

// follow keeps tables up to date until the condition holds.
func (b Build) follow(ctx context.Context, s *session, until func() bool) error {
	decoding, err := newDecoder(ctx, b.Store, b.Projection, b.Reveal)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for following.Err() == nil && !until() {
			_ = signal.Sleep(following, progressInterval)
		}
		stop()
	}()
	for batch, err := range coalesced(following, b.Projection, b.Store, s.g.Position, &demand{}) {
		if following.Err() != nil && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return &unreachable{err}
		}
		d, decodeErr := decoding.decode(ctx, batch)
		if d.upTo > s.g.Position {
			if err := applyIsolating(ctx, s, s.conn, d); err != nil {
				return err
			}
		}
		if decodeErr != nil {
			return decodeErr
		}
	}
	return ctx.Err()
}

// reference returns the generation to compare with the new one: the live one, or for a new version with comparable columns the previous
// version's. It returns false if this log has none.
func (b Build) reference(ctx context.Context, s *session) (generation, bool, error) {
	of, found, err := liveGeneration(ctx, s.conn, b.Projection)
	if err == nil && !found && b.Projection.common != nil {
		of, found, err = oneGeneration(ctx, s.conn, `status = 'live' and name = $1 and version = (
			select max(version) from projection.generation where status = 'live' and name = $1 and version < $2)`, s.g.Name, s.g.Version)
	}
	if err != nil || !found {
		return of, false, err
	}
	if err := verify(ctx, b.Store, of); err != nil {
		if _, other := errors.AsType[*mismatch](err); other {
			b.Log.Warn("new generation cannot be compared with the live one", "projection", s.g.Name, "generation", s.g.Generation, "error", err)
			return of, false, nil
		}
		return of, false, err
	}
	return of, true, nil
}

// errBehind reports that the new tables lag too much to become live.
var errBehind = errors.New("the new generation lags too much")

// swap makes the new generation live. Meanwhile the live one is stopped, at most for the time to fold within events. Readers find one of
// the two generations. Both have all events that the readers have read before. The previous owner detects the change with its next batch.
func (b Build) swap(ctx context.Context, s *session, within event.Position) error {
	conn, err := connect(ctx, b.Config, b.Projection)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the connection is discarded
	old, err := move(ctx, conn, s.g, &s.owner, s.g.KeepFor, func(live event.Position) error {
		head, err := b.Store.Head(ctx) // read now, because the live one may be ahead of an earlier head
		if err != nil {
			return err
		}
		live = min(live, head) // a position of another log may exceed the head
		if live > s.g.Position+within {
			return errBehind
		}
		return b.foldUpTo(ctx, s, live)
	})
	if err != nil {
		return err
	}
	b.Log.Info("new generation is live", "projection", s.g.Name, "generation", s.g.Generation, "position", s.g.Position)
	if old == nil || s.g.KeepFor > 0 {
		return nil
	}
	// The build has ended, and other processes may already report that.
	if err := drop(context.WithoutCancel(ctx), conn, *old); err != nil {
		b.Log.Warn("dropping an old generation failed; a serving process will drop it", "projection", s.g.Name, "generation", old.Generation,
			"error", err)
	}
	return nil
}

// move makes a generation live and returns the replaced one, or nil. The caller keeps the replaced one for a while, or drops it. move calls
// reach while the live one is stopped at a position. reach returns when the new one has that position.
func move(ctx context.Context, conn *pgx.Conn, to generation, owner *uuid.UUID, keep time.Duration,
	reach func(event.Position) error) (old *generation, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '`+answersTimeout+`'`); err != nil {
			return err
		}
		if err := lockRegistry(ctx, tx); err != nil {
			return err
		}
		live, found, err := oneGeneration(ctx, tx, isLive, to.Name, to.Version)
		if err != nil {
			return err
		}
		if found {
			// The generation's runner waits for this lock before its next checkpoint, and is fenced off afterwards.
			rows, _ := tx.Query(ctx, `select `+generationColumns+` from projection.generation where name = $1 and generation = $2 for update`,
				live.Name, live.Generation)
			if live, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[generation]); err != nil {
				return err
			}
			if err := reach(live.Position); err != nil {
				return err
			}
			old = &live
			if err := retire(ctx, tx, live, to, keep); err != nil {
				return err
			}
		}
		changed, err := become(ctx, tx, statusLive, `keep_until = null, owner = null, differences = null, paused = false,
			after_fill = case when status <> 'kept' and differences is null then clock_timestamp() - filled_at else after_fill end`,
			`name = $1 and generation = $2 and ($3::uuid is null or owner = $3)`, to.Name, to.Generation, owner)
		if err == nil && len(changed) == 0 {
			err = ErrFenced
		}
		return err
	})
	if isBusy(err) {
		err = fmt.Errorf("the projection is busy with a long transaction: %w", err)
	}
	return old, err
}

// isBusy reports whether a wait for a lock timed out.
func isBusy(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && server.Code == "55P03"
}

// retire hides a generation, so that readers find the other one, and expires the previously kept generation.
func retire(ctx context.Context, tx pgx.Tx, g, to generation, keep time.Duration) error {
	if _, err := become(ctx, tx, statusScratch, unused, isKept+` and generation <> $3`, g.Name, g.Version, to.Generation); err != nil {
		return err
	}
	var err error
	if keep > 0 {
		_, err = become(ctx, tx, statusKept, `owner = null, paused = false, keep_until = now() + $3::interval`,
			`name = $1 and generation = $2`, g.Name, g.Generation, keep)
	} else {
		_, err = become(ctx, tx, statusScratch, unused, `name = $1 and generation = $2`, g.Name, g.Generation)
	}
	return err
}

// lockRegistry prevents others from creating, switching or dropping generations until tx ends.
func lockRegistry(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('projection.generation'))`)
	return err
}

const (
	// dropTries and dropInterval are the number and the interval of tries to drop tables.
	dropTries    = 20
	dropInterval = 50 * time.Millisecond

	// makesWait limits the time that one try waits for readers, because other readers wait behind the try.
	makesWait = `20ms`
)

// drop removes a replaced generation. A check may read it for a long time. So drop retries with short waits: readers that have not yet
// switched wait behind a waiting drop.
func drop(ctx context.Context, conn *pgx.Conn, g generation) error {
	for nth := 1; ; nth++ {
		err := tryDrop(ctx, conn, g)
		if !isBusy(err) || nth == dropTries {
			return err
		}
		if err := signal.Sleep(ctx, dropInterval); err != nil {
			return err
		}
	}
}

// tryDrop drops the tables first: a runner locks the tables before the registry, and the same order avoids a deadlock.
func tryDrop(ctx context.Context, conn *pgx.Conn, g generation) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '`+makesWait+`'`); err != nil {
			return err
		}
		if err := lockRegistry(ctx, tx); err != nil {
			return err
		}
		_, live, err := oneGeneration(ctx, tx, `name = $1 and generation = $2 and status = 'live'`, g.Name, g.Generation)
		if err != nil || live {
			return err
		}
		if _, err := tx.Exec(ctx, `drop schema if exists `+g.schema()+` cascade`); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `delete from projection.generation where name = $1 and generation = $2`, g.Name, g.Generation)
		return err
	})
}
