package auditproj

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
)

// Tables reads the tree's live tables.
type Tables interface {
	tlog.Tiles

	// Size returns the number of leaves; 0 without a tree.
	Size(ctx context.Context) (uint64, error)
	// Entries returns the number of leaves, and the entries of the map with an event after a position, by name.
	Entries(ctx context.Context, after event.Position) (size uint64, entries map[string]tlog.Compact, err error)
	// MapNodes reads the stored nodes of the map.
	MapNodes(tx pgx.Tx) tlog.MapNodes
	// Position returns the log's position of the leaf at index, from 0.
	Position(ctx context.Context, index uint64) (event.Position, error)
}

// Signer signs the tree if it has grown, at most once in the interval Every. One of several nodes signs.
type Signer struct {
	DB     *pgxpool.Pool
	Store  eventstore.Store
	Tables Tables
	Ring   *Ring
	Out    []Publisher // receive each checkpoint
	// Brought, if not nil, is called with the result of publishing a checkpoint at the nth publisher, from 0.
	Brought  func(nth int, err error)
	Interval time.Duration // 0: one second
	Now      func() time.Time
	Log      *slog.Logger

	mu      sync.Mutex // protects the fields below
	settled uuid.UUID  // the newest applied event of the stream audit-log
	held    bool       // the tree was compared with the outside checkpoints

	seen *Signed                // the newest valid checkpoint that this process knows
	lost atomic.Pointer[string] // reason for refusing writes; nil: the log is intact

	accepted atomic.Pointer[[]audit.RestoreAccepted] // the restores that the log has accepted
	said     string                                  // the last logged reason for not signing; only Run uses it
}

// Publisher is a place outside the database that receives checkpoints.
type Publisher interface {
	// Publish stores a checkpoint, and may add signatures to it. A failed checkpoint is not published again; the next one replaces it.
	Publish(ctx context.Context, c *Signed) error
	// Name names the place in the program's log.
	Name() string
}

// Signed is a signed checkpoint.
type Signed struct {
	Number   int64 // order of signing, from 1
	Size     uint64
	Root     []byte
	Position event.Position
	EventID  uuid.UUID
	Note     string
}

const (
	signInterval = time.Second
	fullCheck    = 10               // while the log does not grow, every tenth interval checks the log and the tables
	bringIn      = 10 * time.Second // timeout for all publishers, and for reading from them
	signerLock   = 8241007          // the advisory lock of the signing node
)

// ErrRewritten reports that the log or its tree differs from the signed one. Found is the message. Lost is true if the log lacks the newest
// signed event.
type ErrRewritten struct {
	Found string
	Lost  bool
}

func (e *ErrRewritten) Error() string { return e.Found }

// errBehind reports that the tree is being rebuilt and is behind the last checkpoint.
var errBehind = errors.New("the tree is being built")

// Run signs until ctx ends. It logs each reason for not signing once, and retries.
func (s *Signer) Run(ctx context.Context) {
	brought := make(chan Signed, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.bring(ctx, brought)
	}()
	ticker := time.NewTicker(cmp.Or(s.Interval, signInterval))
	defer ticker.Stop()
	for nth := 1; ; nth++ {
		select {
		case <-ctx.Done():
			<-done
			return
		case <-ticker.C:
		}
		if nth%fullCheck != 0 && s.isSigned(ctx) {
			continue
		}
		signed, err := s.Sign(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errBehind):
			s.Log.Debug("no checkpoint signed yet", "error", err)
		case err != nil && err.Error() != s.said:
			s.said = err.Error()
			s.Log.Error("signing a checkpoint failed", "error", err)
		case err == nil:
			s.said = ""
		}
		if signed == nil {
			continue
		}
		select {
		case <-brought: // the newer checkpoint replaces the waiting one
		default:
		}
		brought <- *signed
	}
}

// isSigned reports whether the newest checkpoint covers the log's newest event, as far as this process knows.
func (s *Signer) isSigned(ctx context.Context) bool {
	s.mu.Lock()
	seen := s.seen
	s.mu.Unlock()
	if s.said != "" {
		return false
	}
	for e, err := range s.Store.ReadAll(ctx, eventstore.End, eventstore.Backwards) {
		return err == nil && seen != nil && e.Position == seen.Position && e.ID == seen.EventID
	}
	return seen == nil
}

// bring publishes checkpoints concurrently with the signing.
func (s *Signer) bring(ctx context.Context, brought <-chan Signed) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-brought:
			s.Publish(ctx, &c)
		}
	}
}

// Publish publishes a checkpoint at every publisher in order. The timeouts are separate.
func (s *Signer) Publish(ctx context.Context, c *Signed) {
	for nth, out := range s.Out {
		within, cancel := context.WithTimeout(ctx, bringIn/time.Duration(len(s.Out)))
		err := out.Publish(within, c)
		cancel()
		if errors.Is(err, context.Canceled) {
			continue // ctx ended
		}
		if err != nil {
			s.Log.Warn("publishing a checkpoint failed; the next one will be published", "to", out.Name(), "size", c.Size, "error", err)
		}
		if s.Brought != nil {
			s.Brought(nth, err)
		}
	}
}

const signedColumns = `number, size, root, position, event_id, note`

// Newest returns the newest checkpoint that was not abandoned, nil if there is none.
func (s *Signer) Newest(ctx context.Context) (*Signed, error) { return newest(ctx, s.DB) }

func newest(ctx context.Context, db querier) (*Signed, error) {
	rows, _ := db.Query(ctx, `select `+signedColumns+` from audit.checkpoint where abandoned is null order by size desc limit 1`)
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Signed])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there may be none
	}
	if err != nil {
		return nil, fmt.Errorf("read the newest checkpoint: %w", err)
	}
	return &c, nil
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Sign signs the tree and returns the checkpoint. It returns nil if the tree has not grown or another node is signing,
// and [ErrRewritten] if the tree does not contain the previous checkpoint.
func (s *Signer) Sign(ctx context.Context) (signed *Signed, err error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, s.DB, func(tx pgx.Tx) error {
		// A crash must not lose a published checkpoint, whatever the database's default is.
		if _, err := tx.Exec(ctx, `set local synchronous_commit = on`); err != nil {
			return err
		}
		var mine bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, signerLock).Scan(&mine); err != nil || !mine {
			return err
		}
		last, err := newest(ctx, tx)
		if err == nil {
			err = s.noneHidden(ctx, tx)
		}
		if err == nil {
			err = s.noneRemoved(ctx, last)
		}
		if err == nil && last != nil { // a log that lost its newest events may have grown since, before the tree notices
			err = s.isThere(ctx, *last, "the newest checkpoint", waysOut)
		}
		if err != nil {
			return err
		}
		root, since, err := s.mapSince(ctx, tx, last)
		if err != nil {
			return err
		}
		size, entries, err := s.Tables.Entries(ctx, since)
		if err == nil && last != nil && size >= last.Size { // the event of a retried request has the same id as the lost one
			_, err = s.leafAt(ctx, last.Position, last.Size-1)
		}
		if err != nil || size == 0 || last != nil && size == last.Size {
			return err
		}
		if last != nil {
			if err := s.contains(ctx, *last, size); err != nil {
				return err
			}
		}
		if err := s.containsOutside(ctx, size); err != nil {
			return err
		}
		if root, err = s.growMap(ctx, tx, root, entries); err != nil {
			return err
		}
		number, err := nextNumber(ctx, tx)
		if err != nil {
			return err
		}
		next, err := s.checkpoint(ctx, last, size, number, root)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into audit.checkpoint (number, size, root, position, event_id, signed_at, note) values ($1, $2, $3, $4, $5,
			$6, $7)`,
			next.Number, int64(next.Size), next.Root, int64(next.Position), next.EventID, s.Now(), next.Note)
		signed = &next
		return err
	})
	if err != nil {
		signed = nil // an uncommitted checkpoint must not be reported as missing later
	}
	if err := s.note(ctx, signed, err); err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	return signed, nil
}

// noneRemoved compares the newest checkpoint with the newest one that this process has seen.
func (s *Signer) noneRemoved(ctx context.Context, last *Signed) error {
	s.mu.Lock()
	seen := s.seen
	s.mu.Unlock()
	switch {
	case seen == nil || last != nil && last.Size >= seen.Size || s.gaveUp(*seen):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.seen == seen {
			s.seen = last
		}
		return nil
	default:
		err := s.isThere(ctx, *seen, "the newest checkpoint, which was removed from its table,", waysOut)
		if err == nil {
			err = &ErrRewritten{Found: fmt.Sprintf("The checkpoint of %d events was removed from its table. %s", seen.Size, waysOut)}
		}
		return err
	}
}

// note records the result of an attempt to sign. If the database lost a checkpoint together with the checkpoint's events, note stores the
// checkpoint again for other nodes and the operator.
func (s *Signer) note(ctx context.Context, signed *Signed, err error) error {
	s.mu.Lock()
	if signed != nil {
		s.seen = signed
	}
	seen := s.seen
	s.mu.Unlock()
	rewritten := new(ErrRewritten)
	switch {
	case err == nil:
		s.lost.Store(nil)
	case errors.As(err, &rewritten) && rewritten.Lost:
		s.lost.Store(&rewritten.Found)
		if seen != nil {
			return errors.Join(err, s.putBack(ctx, *seen))
		}
	}
	return err
}

// Lost returns the reason for refusing writes if the log has lost signed events and no operator has accepted the loss. Otherwise it returns
// "".
func (s *Signer) Lost() string {
	if why := s.lost.Load(); why != nil {
		return *why
	}
	return ""
}

// contains checks that the tree contains a checkpoint.
func (s *Signer) contains(ctx context.Context, last Signed, size uint64) error {
	if size < last.Size {
		return fmt.Errorf("%w: the tree has %d events, but %d were signed", errBehind, size, last.Size)
	}
	then, err := tlog.TreeAt(ctx, s.Tables, last.Size)
	if err != nil {
		return err
	}
	if root := then.Root(); root != tlog.Hash(last.Root) {
		return &ErrRewritten{Found: fmt.Sprintf("the tree over the log's first %d events has the root %s, but %s was signed: "+
			"events before position %d were rewritten, or the tree's tables were. Find the first bad event with: bahi audit verify --store. "+
			"If the log is right, rebuild its tree with: bahi projections rebuild audit", last.Size, root, tlog.Hash(last.Root), last.Position+1)}
	}
	return nil
}

// checkpoint returns the checkpoint of the tree at a size. The former key also signs the first checkpoint after a rotation.
func (s *Signer) checkpoint(ctx context.Context, last *Signed, size uint64, number int64, entries tlog.Hash) (c Signed,
	err error) {
	tree, err := tlog.TreeAt(ctx, s.Tables, size)
	if err != nil {
		return c, err
	}
	at, err := s.Tables.Position(ctx, size-1)
	if err != nil {
		return c, err
	}
	e, err := s.leafAt(ctx, at, size-1)
	if err != nil {
		return c, err
	}
	root := tree.Root()
	c = Signed{Number: number, Size: size, Root: root[:], Position: at, EventID: e.ID}
	keys, err := s.signers(ctx, last)
	if err != nil {
		return c, err
	}
	note, err := tlog.Checkpoint{Origin: s.Ring.origin(), Size: size, Root: root, At: s.Now(), Position: at, Number: number,
		Map: entries}.Sign(keys...)
	c.Note = string(note)
	return c, err
}

// signers returns the keys that sign the next checkpoint.
func (s *Signer) signers(ctx context.Context, last *Signed) ([]tlog.Key, error) {
	current, former, err := s.Ring.InUse(ctx)
	if err != nil {
		return nil, err
	}
	keys := []tlog.Key{current}
	if last == nil || former == nil {
		return keys, nil
	}
	trusted, err := tlog.ParseKeys(current.Public())
	if err != nil {
		return nil, err
	}
	_, _, err = trusted.Open([]byte(last.Note))
	if errors.Is(err, tlog.ErrNotSigned) {
		return append(keys, *former), nil
	}
	return keys, err
}

// leafAt returns the event at a position. It checks that the event is the leaf at index.
func (s *Signer) leafAt(ctx context.Context, at event.Position, index uint64) (event.Stored, error) {
	for e, err := range s.Store.ReadAll(ctx, at+1, eventstore.Backwards) {
		if err != nil {
			return e, err
		}
		if e.Position != at {
			break
		}
		tiles, err := s.Tables.ReadTiles(ctx, []tlog.TileID{{Index: index / tlog.TileWidth}})
		if err != nil {
			return e, err
		}
		from := index % tlog.TileWidth * tlog.HashSize
		if uint64(len(tiles[0])) < from+tlog.HashSize {
			return e, fmt.Errorf("the tree's tables lack the leaf %d: rebuild them with bahi projections rebuild audit", index)
		}
		if hash := tlog.Hash(tiles[0][from:]); hash != tlog.LeafHash(e) {
			return e, &ErrRewritten{Found: fmt.Sprintf("the event at position %d (%s in %s) was changed since it was hashed: its leaf was %s, and "+
				"is %s now",
				at, e.Type, e.Stream, hash, tlog.LeafHash(e))}
		}
		return e, nil
	}
	return event.Stored{}, &ErrRewritten{Found: fmt.Sprintf("the log no longer has an event at position %d, which the tree has", at)}
}

// settle applies the log's events about keys and accepted restores to the tables.
func (s *Signer) settle(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := audit.Kind.Stream(audit.Log)
	var newest uuid.UUID
	for e, err := range s.Store.ReadStream(ctx, stream, eventstore.LastRevision, eventstore.Backwards) {
		if err != nil {
			return fmt.Errorf("read events about proofs: %w", err)
		}
		newest = e.ID
		break
	}
	if newest == s.settled {
		return nil
	}
	var accepted []audit.RestoreAccepted
	for stored, err := range s.Store.ReadStream(ctx, stream, 0, eventstore.Forwards) {
		if err != nil {
			return fmt.Errorf("read events about proofs: %w", err)
		}
		e, err := audit.Kind.Decode(stored)
		if err != nil {
			return err
		}
		if err := s.apply(ctx, e); err != nil {
			return fmt.Errorf("apply %s at position %d: %w", stored.Type, stored.Position, err)
		}
		if restore, is := e.Data.(audit.RestoreAccepted); is {
			accepted = append(accepted, restore)
		}
	}
	s.accepted.Store(&accepted)
	s.settled = newest
	return nil
}

func (s *Signer) apply(ctx context.Context, e event.Recorded[audit.Event]) (err error) {
	switch what := e.Data.(type) {
	case audit.KeyRotated:
		_, err = s.DB.Exec(ctx, `update audit.key set
			since = case when verifier = $1 then coalesce(since, $3) else since end,
			until = case when verifier = $2 then coalesce(until, $3) else until end
			where verifier in ($1, $2)`, what.To, what.From, e.At)
	case audit.RestoreAccepted:
		_, err = s.DB.Exec(ctx, `update audit.checkpoint set abandoned = $1
			where abandoned is null and number <= $2 and size > $3`, int64(e.Position), what.LastNumber, int64(what.Kept.Size))
	}
	return err
}
