package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	audits "bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/audit"
)

// whatToDo ends what a start says that is refused.
const whatToDo = "Nothing is served, so that nothing is written behind it. To find what was done: bahi audit verify --store. " +
	"If the log was restored from a backup that is older than this checkpoint, restore a newer one, or go on without those events, " +
	"which is recorded: bahi audit accept-restore --reason '…'"

// Check holds the newest checkpoint against the log, and the newest that is kept outside. It answers
// [ErrRewritten], which says what to do, when the log was shortened or rewritten as far as can be seen without
// hashing all of it. A tree that is still to be built is held against the checkpoint by [Signer.Sign].
func (s *Signer) Check(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	last, err := s.Newest(ctx)
	if err != nil {
		return err
	}
	if last != nil {
		if err := s.holds(ctx, *last, "the newest checkpoint"); err != nil {
			return err
		}
	}
	outside, where, err := s.Outside(ctx)
	if err != nil {
		s.Log.Warn("the checkpoints that are kept outside cannot be read; the log is not held against them", "error", err)
	}
	if outside == nil || last != nil && outside.Size <= last.Size && outside.Number <= last.Number {
		return nil
	}
	known, err := s.abandoned(ctx, *outside)
	if err != nil || known {
		return err
	}
	return s.holds(ctx, *outside, "the newest checkpoint in "+where)
}

// Outside answers the newest checkpoint that is kept outside and was signed by this log's keys, and where; nil when
// there is none.
func (s *Signer) Outside(ctx context.Context) (newest *Signed, where string, err error) {
	keys, err := s.Ring.Public(ctx)
	if err != nil {
		return nil, "", err
	}
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
			err = errors.Join(err, fmt.Errorf("the checkpoint in %s is not one of this log: %w", out.Name(), openErr))
			continue
		}
		if newest == nil || c.Size > newest.Size {
			newest, where = &Signed{Size: c.Size, Root: c.Root[:], Position: c.Position, Note: string(note)}, out.Name()
		}
	}
	return newest, where, err
}

// abandoned says whether a checkpoint is among those that an accepted restore gave up.
func (s *Signer) abandoned(ctx context.Context, c Signed) (known bool, err error) {
	err = s.DB.QueryRow(ctx, `select exists (select from audit.checkpoint where abandoned is not null and size = $1 and root = $2)`, int64(c.Size), c.Root).Scan(&known)
	return known, err
}

// holds says that the log has what a checkpoint was signed for.
func (s *Signer) holds(ctx context.Context, c Signed, what string) error {
	broken := func(format string, args ...any) error {
		return &ErrRewritten{fmt.Sprintf("The log is not the one that %s was signed for (%d events, up to position %d): %s. %s",
			what, c.Size, c.Position, fmt.Sprintf(format, args...), whatToDo)}
	}
	head, err := s.Store.Head(ctx)
	if err != nil {
		return err
	}
	if head < c.Position {
		return broken("it ends at position %d, so its newest events are gone", head)
	}
	var there *event.Stored
	for e, err := range s.Store.ReadAll(ctx, c.Position+1, eventstore.Backwards) {
		if err != nil {
			return err
		}
		if e.Position == c.Position {
			there = &e
		}
		break
	}
	switch {
	case there == nil:
		return broken("it has no event at position %d", c.Position)
	case c.EventID != uuid.Nil && there.ID != c.EventID:
		return broken("the event at position %d is %s (%s), and was %s", c.Position, there.ID, there.Type, c.EventID)
	}
	size, err := s.Tables.Size(ctx)
	if err != nil || size < c.Size {
		return err
	}
	rewritten := new(ErrRewritten)
	if _, err := s.leafAt(ctx, c.Position, c.Size-1); errors.As(err, &rewritten) {
		return broken("%s", rewritten.Found)
	} else if err != nil {
		return err
	}
	if err := s.contains(ctx, c, size); errors.As(err, &rewritten) {
		return broken("%s", rewritten.Found)
	} else if err != nil {
		return err
	}
	return nil
}

// Recount is what the log has of all that was signed.
type Recount struct {
	Kept   audits.Tree // the newest checkpoint that the log has; size 0: none
	Broken int64       // how many there are that it has not
	Newest audits.Tree // of those
	Last   int64       // number of the newest checkpoint there is
}

// Recount hashes the whole log and holds it against every checkpoint that was not abandoned, and against the newest
// that is kept outside, which is taken into the table if it is not there. Progress may be nil.
func (s *Signer) Recount(ctx context.Context, progress func(done, total event.Position)) (r Recount, err error) {
	if err := s.settle(ctx); err != nil {
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
		tree   audit.Tree
		hasher audit.Hasher
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
		if tree.Root() != audit.Hash(page[0].Root) { // none of the later ones can hold
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

// pageOf is how many checkpoints are in memory at once.
const pageOf = 10_000

// page answers the next checkpoints by size.
func (s *Signer) page(ctx context.Context, after uint64) ([]audits.Tree, error) {
	rows, _ := s.DB.Query(ctx, `select size, root from audit.checkpoint where abandoned is null and size > $1 order by size limit $2`, int64(after), pageOf)
	page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[audits.Tree])
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints: %w", err)
	}
	return page, nil
}

// broken counts the checkpoints behind those that the log has.
func (s *Signer) broken(ctx context.Context, r *Recount) error {
	err := s.DB.QueryRow(ctx, `select coalesce(max(number), 0), count(*) filter (where size > $1) from audit.checkpoint where abandoned is null`, int64(r.Kept.Size)).
		Scan(&r.Last, &r.Broken)
	if err != nil || r.Broken == 0 {
		return err
	}
	c, err := s.Newest(ctx)
	if err == nil && c != nil {
		r.Newest = audits.Tree{Size: c.Size, Root: c.Root}
	}
	return err
}

// takeIn adds the newest checkpoint that is kept outside to the table, if the log lost it with its database.
func (s *Signer) takeIn(ctx context.Context) error {
	c, _, err := s.Outside(ctx)
	if err != nil || c == nil {
		return err
	}
	parsed, err := audit.ParseCheckpoint([]byte(c.Note))
	if err != nil {
		return err
	}
	_, err = s.DB.Exec(ctx, `insert into audit.checkpoint (size, root, position, event_id, signed_at, note)
		select $1, $2, $3, $4, $5, $6 where not exists (select from audit.checkpoint where size = $1 and root = $2)
		on conflict do nothing`, int64(c.Size), c.Root, int64(c.Position), uuid.Nil, parsed.At, c.Note)
	if err != nil {
		return fmt.Errorf("take in a checkpoint from outside: %w", err)
	}
	return nil
}
