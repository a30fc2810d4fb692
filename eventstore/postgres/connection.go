package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/eventstore"
	"bahi/eventstore/signal"
)

func (a *appender) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.ask)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, a.config)
	if err != nil {
		return err
	}
	// An acknowledged append is on disk even if the database's default for synchronous_commit is off. Stricter settings stay.
	const introduce = `
		select pid, backend_start, case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end
		from pg_stat_activity where pid = pg_backend_pid()`
	a.conn = conn
	if err := conn.QueryRow(ctx, introduce).Scan(&a.session.pid, &a.session.started, nil); err != nil {
		a.disconnect()
		return err
	}
	a.undisturbed, a.shared, a.head, a.leveled, a.locked = 0, false, uuid.Nil, false, false // other processes may have appended
	a.tail.reset()
	return nil
}

func (a *appender) disconnect() {
	if a.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.timeouts.ask)
	defer cancel()
	a.conn.Close(ctx) //nolint:errcheck // the connection is lost already
	a.conn = nil
}

// resolve reads from the log the outcome of a group whose connection was lost. It first terminates the lost session, which could still
// commit. It returns the appends that did not take place.
func (a *appender) resolve(ctx context.Context, group []*pending, why error) (undone []*pending) {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.resolve)
	defer cancel()
	lost := a.session
	for ctx.Err() == nil {
		err := a.connect(ctx)
		if err == nil {
			err = a.end(ctx, lost)
		}
		if err == nil {
			err = a.level(ctx)
		}
		if err == nil {
			group, undone, err = a.lookUp(ctx, group, undone)
		}
		if err == nil {
			return undone
		}
		a.log.Debug("outcome of appends still unknown", "appends", len(group), "error", err)
		a.refuseWaiting(err) // they were not sent, and resolving may take long
		a.disconnect()
		_ = signal.Sleep(ctx, retryInterval)
	}
	for _, p := range group {
		p.fail(fmt.Errorf("%w: %w", eventstore.ErrInDoubt, why))
	}
	return undone
}

// end terminates a lost session and waits until its transaction has ended.
func (a *appender) end(ctx context.Context, lost session) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.ask)
	defer cancel()
	const terminate = `select count(pg_terminate_backend(pid)) from pg_stat_activity where pid = $1 and backend_start = $2`
	for {
		var running int
		err := a.conn.QueryRow(ctx, terminate, lost.pid, lost.started).Scan(&running)
		if err != nil || running == 0 {
			return err
		}
		if err := signal.Sleep(ctx, retryInterval); err != nil {
			return err
		}
	}
}

// lookUp sends the results of those appends of a group that are in the log. It returns the appends that it could not look up, and adds
// those missing from the log to undone.
func (a *appender) lookUp(ctx context.Context, group, undone []*pending) (rest, _ []*pending, err error) {
	defer a.tail.headMoved(0) // subscribers fetch these events from the database
	for i, p := range group {
		done, found, err := a.find(ctx, p)
		switch {
		case err != nil:
			return group[i:], undone, err
		case found:
			done.Replayed = false // unknown: an earlier call may have appended it
			p.reply <- eventstore.Result{Appended: done}
		default:
			undone = append(undone, p)
		}
	}
	return nil, undone, nil
}

// lock begins a transaction with the log's lock. The group is chosen after it, and so has the appends that arrived while another process
// held the lock. If the lock cannot be had in time, lock refuses all that wait.
func (a *appender) lock(ctx context.Context) {
	answer, cancel := context.WithTimeout(ctx, a.timeouts.answer)
	defer cancel()
	batch, lost := &pgx.Batch{}, a.session
	batch.Queue(`begin`)
	batch.Queue(lockLog)
	err := a.conn.SendBatch(answer, batch).Close()
	if a.locked = err == nil; a.locked {
		return
	}
	a.unlock(ctx)
	if err = a.broken(err); a.conn != nil {
		a.log.Error("locking the log failed", "error", err)
		a.refuseWaiting(err)
		return
	}
	a.log.Warn("append connection lost while waiting for the log's lock", "error", err)
	if err = a.connect(ctx); err == nil {
		err = a.end(ctx, lost) // it may hold the lock
	}
	if err != nil {
		a.log.Warn("the lost append connection may still hold the log's lock", "error", err)
	}
}

// unlock ends the transaction with the log's lock. If it fails, the connection is lost; a.broken detects that.
func (a *appender) unlock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.ask)
	defer cancel()
	if a.locked = false; !a.conn.IsClosed() {
		_, _ = a.conn.Exec(ctx, `rollback`)
	}
}
