package auditproj

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
)

// whatToDo is the end of an error that prevents the start.
const whatToDo = "Nothing is served, so that nothing is appended to it. " + waysOut

// waysOut is the end of an error about a log that lost signed events.
const waysOut = "To find what was done: bahi audit verify --store. " +
	"If the log was restored from a backup that is older than this checkpoint, restore a newer one, or continue without those events, " +
	"which is recorded: bahi audit accept-restore --reason '…'"

// Check compares the log with the newest checkpoint, and with the newest checkpoint of each outside place. It returns [ErrRewritten], with
// advice, if the log was shortened or rewritten. It does not hash the whole log as [Signer.Reread] does, so it may miss a change. If the
// tree is still being built, [Signer.Sign] compares the tree later.
func (s *Signer) Check(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	last, err := s.Newest(ctx)
	if err == nil {
		err = s.noneHidden(ctx, s.DB)
	}
	if err == nil {
		err = s.noneBefore(ctx)
	}
	if err != nil {
		return err
	}
	if last != nil {
		if err := s.isAsSigned(ctx, *last); err != nil {
			return err
		}
		if err := s.holds(ctx, *last, "the newest checkpoint"); err != nil {
			return err
		}
	}
	outside, err := s.binding(ctx)
	for _, c := range outside {
		if err = s.holds(ctx, c.Signed, "the newest checkpoint in "+c.Where); err != nil {
			break
		}
	}
	return err
}

// noneBefore checks that there is no event before the first position. A reader of the log would skip such an event, but a reader of its
// stream would not.
func (s *Signer) noneBefore(ctx context.Context) error {
	for e, err := range s.Store.ReadAll(ctx, 1, eventstore.Backwards) {
		if err == nil {
			err = &ErrRewritten{Found: fmt.Sprintf("There is an event at position %d, before the log's first (%s in %s), which Bahi never writes. "+
				"%s", e.Position, e.Type, e.Stream, whatToDo)}
		}
		return err
	}
	return nil
}

// binding returns the outside checkpoints that the log must contain.
func (s *Signer) binding(ctx context.Context) (bind []Copy, err error) {
	outside, err := s.Outside(ctx)
	if err != nil {
		s.Log.Warn("some outside checkpoints are unreadable; the log was not compared with them", "error", err)
	}
	for _, c := range outside {
		known, err := s.abandoned(ctx, c.Signed)
		if err != nil {
			return nil, err
		}
		if !known {
			bind = append(bind, c)
		}
	}
	return bind, nil
}

// isAsSigned checks that the newest checkpoint's row agrees with its note. It does not check the signatures, because a former key may no
// longer be available.
func (s *Signer) isAsSigned(ctx context.Context, c Signed) error {
	keys, err := s.Ring.Trusted(ctx)
	if err != nil {
		return err
	}
	signed, _, err := keys.Open([]byte(c.Note))
	switch {
	case err != nil && !errors.Is(err, tlog.ErrNotSigned):
		return &ErrRewritten{Found: fmt.Sprintf("The newest checkpoint (%d events) is not the signed one: %s. %s", c.Size, err, whatToDo)}
	case signed.Origin != s.Ring.origin() || signed.Size != c.Size || signed.Root != tlog.Hash(c.Root) || signed.Position != c.Position:
		return &ErrRewritten{Found: fmt.Sprintf(
			"The newest checkpoint's row has %d events up to position %d, but its signed note has others. %s", c.Size, c.Position, whatToDo)}
	}
	return nil
}

// Copy is a checkpoint from an outside place.
type Copy struct {
	Signed

	Where string
}

// Outside returns the newest checkpoint of each outside place that has a checkpoint signed by this log's keys. The error reports each place
// whose checkpoint is unreadable or not of this log.
func (s *Signer) Outside(ctx context.Context) (all []Copy, err error) {
	keys, err := s.Ring.Public(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, bringIn)
	defer cancel()
	for _, out := range s.Out {
		keeper, keeps := out.(interface {
			Newest(ctx context.Context) ([]byte, error)
		})
		if !keeps {
			continue
		}
		note, getErr := keeper.Newest(ctx)
		if getErr != nil || note == nil {
			err = errors.Join(err, getErr)
			continue
		}
		c, _, openErr := keys.Open(note)
		if openErr != nil || c.Origin != s.Ring.origin() {
			err = errors.Join(err, fmt.Errorf("the checkpoint in %s is not of this log: %w", out.Name(), openErr))
			continue
		}
		all = append(all, Copy{Signed{Size: c.Size, Root: c.Root[:], Position: c.Position, Note: string(note)}, out.Name()})
	}
	return all, err
}

// containsOutside checks that the tree contains the outside checkpoints. It runs once, before the first signature: the tree may lag at the
// start, and the signer of a rewritten log would replace the copies.
func (s *Signer) containsOutside(ctx context.Context, size uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		return nil
	}
	outside, err := s.binding(ctx)
	for _, c := range outside {
		if err = s.contains(ctx, c.Signed, size); err != nil {
			break
		}
	}
	s.held = err == nil
	return err
}

// abandoned reports whether an accepted restore abandoned a checkpoint.
func (s *Signer) abandoned(ctx context.Context, c Signed) (bool, error) {
	marked, err := s.marked(ctx, s.DB, `size = $1 and root = $2`, int64(c.Size), c.Root)
	return slices.ContainsFunc(marked, s.gaveUp), err
}

// marked returns checkpoints that are marked as abandoned. Every client with write access to the database can mark them, so only an event
// of the log proves it (see gaveUp).
func (s *Signer) marked(ctx context.Context, db querier, where string, args ...any) ([]Signed, error) {
	rows, _ := db.Query(ctx, `select `+signedColumns+` from audit.checkpoint where abandoned is not null and `+where, args...)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Signed])
}

// gaveUp reports whether an event of the log abandons a checkpoint.
func (s *Signer) gaveUp(c Signed) bool {
	accepted := s.accepted.Load()
	return accepted != nil && slices.ContainsFunc(*accepted,
		func(r audit.RestoreAccepted) bool { return c.Number <= r.LastNumber && c.Size > r.Kept.Size })
}

// noneHidden checks that the newest checkpoint is not marked as abandoned without an event of the log.
func (s *Signer) noneHidden(ctx context.Context, db querier) error {
	last, err := s.marked(ctx, db, `number = (select number from audit.checkpoint order by number desc limit 1)`)
	if err == nil && len(last) > 0 && !s.gaveUp(last[0]) {
		err = &ErrRewritten{Found: fmt.Sprintf("The checkpoint that was signed last (%d events) is marked as abandoned, but no event of the "+
			"log records it. %s", last[0].Size, whatToDo)}
	}
	return err
}

// Hidden returns the checkpoints that are marked as abandoned without an event of the log. The log must contain them.
func (s *Signer) Hidden(ctx context.Context) ([]Signed, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	marked, err := s.marked(ctx, s.DB, `true`)
	return slices.DeleteFunc(marked, s.gaveUp), err
}

// unhide removes the mark from hidden checkpoints.
func (s *Signer) unhide(ctx context.Context) error {
	hidden, err := s.Hidden(ctx)
	for _, c := range hidden {
		if _, err := s.DB.Exec(ctx, `update audit.checkpoint c set abandoned = null
			where number = $1 and not exists (select from audit.checkpoint o where o.size = c.size and o.abandoned is null)`, c.Number); err != nil {
			return err
		}
	}
	return err
}

// isThere checks that the log has the last event of a checkpoint. The error ends with toDo.
func (s *Signer) isThere(ctx context.Context, c Signed, what, toDo string) error {
	var newest event.Stored // up to the checkpoint's position
	for e, err := range s.Store.ReadAll(ctx, c.Position+1, eventstore.Backwards) {
		if err != nil {
			return err
		}
		newest = e
		break
	}
	found := fmt.Sprintf("the event at position %d is %s (%s), but was %s", c.Position, newest.ID, newest.Type, c.EventID)
	switch {
	case newest.Position == c.Position && (c.EventID == uuid.Nil || c.EventID == newest.ID):
		return nil
	case newest.Position != c.Position:
		head, err := s.Store.Head(ctx)
		if err != nil {
			return err
		}
		if found = fmt.Sprintf("it has no event at position %d", c.Position); head < c.Position {
			found = fmt.Sprintf("it ends at position %d, so its newest events are lost", head)
		}
	}
	return &ErrRewritten{Found: notAsSigned(c, what, found, toDo), Lost: true}
}

func notAsSigned(c Signed, what, found, toDo string) string {
	return fmt.Sprintf("The log is not the one that %s was signed for (%d events, up to position %d): %s. %s", what, c.Size, c.Position,
		found, toDo)
}

// holds checks that the log contains the events of a checkpoint.
func (s *Signer) holds(ctx context.Context, c Signed, what string) error {
	if err := s.isThere(ctx, c, what, whatToDo); err != nil {
		return err
	}
	broken := func(found string) error { return &ErrRewritten{Found: notAsSigned(c, what, found, whatToDo)} }
	size, err := s.Tables.Size(ctx)
	if err != nil || size < c.Size {
		return err
	}
	rewritten := new(ErrRewritten)
	if _, err := s.leafAt(ctx, c.Position, c.Size-1); errors.As(err, &rewritten) {
		return broken(rewritten.Found)
	} else if err != nil {
		return err
	}
	if err := s.contains(ctx, c, size); errors.As(err, &rewritten) {
		return broken(rewritten.Found)
	} else if err != nil {
		return err
	}
	return nil
}

// Recount is the result of comparing the log with all checkpoints.
type Recount struct {
	Kept   audit.Tree // the newest checkpoint that the log contains; size 0: none
	Broken int64      // number of checkpoints that the log does not contain
	Newest audit.Tree // the newest checkpoint that the log does not contain
	Last   int64      // number of the newest of all checkpoints

	// Reached reports that the log has as many events as the first checkpoint that it does not contain. Then the log was rewritten, or
	// continued after a restore. Otherwise it only lost its newest events.
	Reached bool
}

// Recount hashes the whole log. It compares the log with every checkpoint that was not abandoned, and with the newest outside checkpoints,
// which it adds to the table if they are missing. progress may be nil.
func (s *Signer) Recount(ctx context.Context, progress func(done, total event.Position)) (r Recount, err error) {
	if err := s.settle(ctx); err != nil {
		return r, err
	}
	if err := s.unhide(ctx); err != nil {
		return r, err
	}
	if err := s.takeIn(ctx); err != nil {
		return r, err
	}
	head, err := s.Store.Head(ctx)
	if err != nil {
		return r, err
	}
	page, err := s.page(ctx, 0)
	if err != nil {
		return r, err
	}
	var (
		tree   tlog.Tree
		hasher tlog.Hasher
	)
	for e, err := range s.Store.ReadAll(ctx, 0, eventstore.Forwards) {
		if err != nil {
			return r, err
		}
		if len(page) == 0 {
			break
		}
		tree.Append(hasher.Leaf(e))
		if progress != nil {
			progress(e.Position, head)
		}
		if tree.Size() < page[0].Size {
			continue
		}
		if tree.Root() != tlog.Hash(page[0].Root) { // no later one can agree
			break
		}
		r.Kept = page[0]
		if page = page[1:]; len(page) == 0 {
			if page, err = s.page(ctx, r.Kept.Size); err != nil {
				return r, err
			}
		}
	}
	return r, s.broken(ctx, &r)
}

// pageOf is the maximum number of checkpoints in memory.
const pageOf = 10_000

// page returns the next checkpoints by size.
func (s *Signer) page(ctx context.Context, after uint64) ([]audit.Tree, error) {
	rows, _ := s.DB.Query(ctx, `select size, root from audit.checkpoint where abandoned is null and size > $1 order by size limit $2`,
		int64(after), pageOf)
	page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[audit.Tree])
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints: %w", err)
	}
	return page, nil
}

// broken counts the checkpoints after those that the log contains.
func (s *Signer) broken(ctx context.Context, r *Recount) error {
	var first event.Position
	err := s.DB.QueryRow(ctx, `select coalesce(max(number), 0), count(*) filter (where size > $1),
		coalesce(min(position) filter (where size > $1), 0)
		from audit.checkpoint where abandoned is null`, int64(r.Kept.Size)).Scan(&r.Last, &r.Broken, &first)
	if err != nil || r.Broken == 0 {
		return err
	}
	head, err := s.Store.Head(ctx)
	if err != nil {
		return err
	}
	r.Reached = head >= first
	c, err := s.Newest(ctx)
	if err == nil && c != nil {
		r.Newest = audit.Tree{Size: c.Size, Root: c.Root}
	}
	return err
}

// takeIn adds the newest outside checkpoints to the table if the database lost them.
func (s *Signer) takeIn(ctx context.Context) error {
	outside, err := s.Outside(ctx)
	if err != nil {
		return err
	}
	for _, c := range outside {
		c.EventID = uuid.Nil
		if err := s.putBack(ctx, c.Signed); err != nil {
			return err
		}
	}
	return nil
}

// putBack adds a lost checkpoint to the table.
func (s *Signer) putBack(ctx context.Context, c Signed) error {
	parsed, err := tlog.ParseCheckpoint([]byte(c.Note))
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.DB, func(tx pgx.Tx) error {
		next, err := nextNumber(ctx, tx)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `insert into audit.checkpoint (number, size, root, position, event_id, signed_at, note)
			select case when $7::bigint = 0 or exists (select from audit.checkpoint where number = $7) then $8::bigint else $7 end,
				$1, $2, $3, $4, $5, $6
			where not exists (select from audit.checkpoint where size = $1 and (root = $2 or abandoned is null))`,
			int64(c.Size), c.Root, int64(c.Position), c.EventID, parsed.At, c.Note, parsed.Number, next)
		if err != nil || tag.RowsAffected() == 1 && parsed.Number < next {
			return err
		}
		_, err = tx.Exec(ctx, `update audit.numbering set last = greatest($1::bigint, $2::bigint)`, next-1, parsed.Number*tag.RowsAffected())
		return err
	})
	if err != nil {
		return fmt.Errorf("put a checkpoint back into the table: %w", err)
	}
	return nil
}
