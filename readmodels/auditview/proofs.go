package auditview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/eventstore/tlog"
	"bahi/readmodels/opsview"
)

// Errors of requests for a proof that does not exist.
var (
	ErrNoCheckpoint = fault.New(fault.Unavailable, "Nothing has been signed yet: a checkpoint is signed within a second or two of the first "+
		"event")
	ErrNotSigned   = fault.New(fault.Unavailable, "No checkpoint covers this position yet: one is signed within a second or two, try again")
	ErrNotAsHashed = fault.New(fault.Conflict, "The event at this position differs from the hashed one: run bahi audit verify --store")
)

// Proofs returns checkpoints and proofs of the log.
type Proofs struct {
	Tree *Tree
	DB   *pgxpool.Pool
	Log  opsview.Log
}

// Checkpoint is a signed checkpoint.
type Checkpoint struct {
	Number    int64           `json:"number"              doc:"Number of the checkpoint in the order of signing, from 1"`
	Size      uint64          `json:"size"                doc:"Number of events that the checkpoint covers"`
	Root      []byte          `json:"root"                doc:"Root of the Merkle tree over these events (RFC 6962)"`
	Position  event.Position  `json:"position"            doc:"Position of the last of these events"`
	SignedAt  time.Time       `json:"signed_at" doc:"Time of the signature"`
	Note      string          `json:"note"                doc:"The checkpoint itself, with its signatures (C2SP tlog-checkpoint)"`
	Abandoned *event.Position `json:"abandoned,omitempty" doc:"Position of the event that accepted a restore without some of these events"`
}

const checkpointColumns = `number, size, root, position, signed_at, note, abandoned`

// Newest returns the newest checkpoint, or [ErrNoCheckpoint].
func (p *Proofs) Newest(ctx context.Context) (Checkpoint, error) {
	return p.one(ctx, `abandoned is null order by size desc limit 1`)
}

// Upto returns the newest signed checkpoint without events after a position, or "".
func (p *Proofs) Upto(ctx context.Context, at event.Position) (string, error) {
	c, err := p.one(ctx, `abandoned is null and position <= $1 order by size desc limit 1`, int64(at))
	if errors.Is(err, ErrNoCheckpoint) {
		err = nil
	}
	return c.Note, err
}

func (p *Proofs) one(ctx context.Context, where string, args ...any) (Checkpoint, error) {
	rows, _ := p.DB.Query(ctx, `select `+checkpointColumns+` from audit.checkpoint where `+where, args...)
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Checkpoint])
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoCheckpoint
	}
	return c, err
}

// Checkpoints returns the checkpoints after a number in their order, including abandoned ones.
func (p *Proofs) Checkpoints(ctx context.Context, after int64, most int) ([]Checkpoint, error) {
	rows, _ := p.DB.Query(ctx, `select `+checkpointColumns+` from audit.checkpoint where number > $1 order by number limit $2`, after, most)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Checkpoint])
}

// Notes returns the signed texts of checkpoints that are not abandoned, by size. If there are more than about most, it returns the newest
// and others spread over the log. It reports whether it returns all.
func (p *Proofs) Notes(ctx context.Context, most int) (notes [][]byte, all bool, err error) {
	rows, _ := p.DB.Query(ctx, `
		with n as (select count(*) / $1 as each, max(size) as newest from audit.checkpoint where abandoned is null)
		select convert_to(note, 'UTF8'), n.each = 0 from audit.checkpoint, n
		where abandoned is null and (n.each = 0 or number % (n.each + 1) = 0 or size = n.newest) order by size`, most+1)
	all = true
	var note []byte
	_, err = pgx.ForEachRow(rows, []any{&note, &all}, func() error { notes = append(notes, bytes.Clone(note)); return nil })
	return notes, all, err
}

// Daily returns the signed texts of the checkpoints for an archive up to a position, by size: the last text of each day (UTC), and the
// texts with signatures of two keys of the log. Two signatures extend trust from the former key to the next. Daily omits abandoned
// checkpoints.
func (p *Proofs) Daily(ctx context.Context, upTo event.Position) ([]string, error) {
	rows, _ := p.DB.Query(ctx, `
		with c as (
			select note, size, (signed_at at time zone 'utc')::date as day,
				lead((signed_at at time zone 'utc')::date) over (order by size) as next_day
			from audit.checkpoint where abandoned is null and position <= $1
		)
		select note from c where next_day is distinct from day or note like E'%\n— bahi/%\n— bahi/%' order by size`, int64(min(upTo, 1<<62)))
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Key is a present or former public key for the signatures of checkpoints.
type Key struct {
	Key   string     `json:"key"             doc:"Name, id and public key in the format of verifiers (C2SP signed-note)"`
	Since time.Time  `json:"since" doc:"Time of the first checkpoint with the key"`
	Until *time.Time `json:"until,omitempty" doc:"Time of its replacement; absent: the key signs now"`
}

// Keys returns all keys in the order in which they signed.
func (p *Proofs) Keys(ctx context.Context) ([]Key, error) {
	rows, _ := p.DB.Query(ctx, `select verifier, since, until from audit.key where since is not null order by since, number`)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
}

// Inclusion is the proof that an event is in the log.
type Inclusion struct {
	Position   event.Position `json:"position" doc:"Position of the event"`
	Index      uint64         `json:"index"                doc:"Index of the event's leaf, from 0"`
	Size       uint64         `json:"size"                 doc:"Number of events of the tree"`
	Leaf       []byte         `json:"leaf_hash" doc:"Hash of the leaf"`
	Root       []byte         `json:"root"                 doc:"Root of the tree"`
	Hashes     [][]byte       `json:"hashes"               doc:"Proof: the sibling hashes on the path from the leaf to the root (RFC 6962, section 2.1.1)"`
	Checkpoint string         `json:"checkpoint,omitempty" doc:"Signed checkpoint of the tree; absent: none"`
}

// Inclusion proves that the event at a position is in the tree of a size; nil: the tree of the newest checkpoint.
func (p *Proofs) Inclusion(ctx context.Context, at event.Position, size *uint64) (found Inclusion, err error) {
	if found.Size, err = p.size(ctx, "size", size); err != nil {
		return found, err
	}
	index, known, err := p.Tree.Index(ctx, at)
	if err != nil {
		return found, err
	}
	if !known || index >= found.Size {
		return found, fault.Wrong("position", fmt.Sprintf("is not in a tree of %d events", found.Size))
	}
	e, err := p.event(ctx, at)
	if err != nil {
		return found, err
	}
	hashes, err := tlog.Inclusion(ctx, p.Tree, index, found.Size)
	if err != nil {
		return found, err
	}
	tree, err := tlog.TreeAt(ctx, p.Tree, found.Size)
	if err != nil {
		return found, err
	}
	leaf, root := tlog.LeafHash(e), tree.Root()
	if tlog.VerifyInclusion(leaf, index, found.Size, hashes, root) != nil {
		return found, ErrNotAsHashed
	}
	found.Position, found.Index, found.Leaf, found.Root, found.Hashes = at, index, leaf[:], root[:], tlog.Slices(hashes)
	signed, err := p.one(ctx, `abandoned is null and size = $1`, int64(found.Size))
	if err != nil && !errors.Is(err, ErrNoCheckpoint) {
		return found, err
	}
	found.Checkpoint = signed.Note
	return found, nil
}

// Consistency is the proof that a tree is the beginning of a larger one.
type Consistency struct {
	From     uint64   `json:"from" doc:"Number of events of the smaller log"`
	To       uint64   `json:"to" doc:"Number of events of the larger log"`
	RootFrom []byte   `json:"root_from" doc:"Root of the smaller tree"`
	RootTo   []byte   `json:"root_to" doc:"Root of the larger tree"`
	Hashes   [][]byte `json:"hashes"    doc:"Proof (RFC 6962, section 2.1.2)"`
}

// Consistency proves that the log at one size begins with the log at the other.
func (p *Proofs) Consistency(ctx context.Context, from, to uint64) (found Consistency, err error) {
	if from > to {
		return found, fault.Wrong("from", "must not be more than to")
	}
	if _, err := p.size(ctx, "to", &to); err != nil {
		return found, err
	}
	hashes, err := tlog.Consistency(ctx, p.Tree, from, to)
	if err != nil {
		return found, err
	}
	before, err := tlog.TreeAt(ctx, p.Tree, from)
	if err != nil {
		return found, err
	}
	after, err := tlog.TreeAt(ctx, p.Tree, to)
	if err != nil {
		return found, err
	}
	rootFrom, rootTo := before.Root(), after.Root()
	return Consistency{From: from, To: to, RootFrom: rootFrom[:], RootTo: rootTo[:], Hashes: tlog.Slices(hashes)}, nil
}

// size returns the requested size if the tree has it, or without one the size of the newest checkpoint.
func (p *Proofs) size(ctx context.Context, field string, asked *uint64) (uint64, error) {
	newest, err := p.Newest(ctx)
	if err != nil {
		return 0, err
	}
	if asked == nil {
		return newest.Size, nil
	}
	size, err := p.Tree.Size(ctx)
	if err == nil && (*asked == 0 || *asked > size) {
		err = fault.Wrong(field, fmt.Sprintf("must be from 1 to %d, the events of the tree", size))
	}
	return *asked, err
}

// File returns a file of proofs (C2SP tlog-proof), one for each event. A verifier needs only the public key. size selects the checkpoint of
// the proofs; nil: the newest. File returns [ErrNotSigned] if no checkpoint covers an event yet.
func (p *Proofs) File(ctx context.Context, size *uint64, positions ...event.Position) (file []byte, err error) {
	signed, err := p.Newest(ctx)
	if err == nil && size != nil {
		if signed, err = p.one(ctx, `abandoned is null and size = $1`, int64(min(*size, 1<<62))); errors.Is(err, ErrNoCheckpoint) {
			err = fault.Wrong("size", "must be the size of a signed checkpoint")
		}
	}
	if err != nil {
		return nil, err
	}
	for _, at := range positions {
		index, known, err := p.Tree.Index(ctx, at)
		if err != nil {
			return nil, err
		}
		if !known || index >= signed.Size {
			return nil, p.uncovered(ctx, at, signed.Size, size != nil)
		}
		e, err := p.event(ctx, at)
		if err != nil {
			return nil, err
		}
		proof, err := tlog.Prove(ctx, p.Tree, e, index, []byte(signed.Note))
		if errors.Is(err, tlog.ErrNotAsHashed) {
			return nil, ErrNotAsHashed
		}
		if err != nil {
			return nil, err
		}
		file = tlog.AppendProof(file, proof)
	}
	return file, nil
}

// uncovered returns the error of a position that a checkpoint does not cover. The event does not exist, or it is newer. The error for a
// newer event is permanent only if the request names the checkpoint.
func (p *Proofs) uncovered(ctx context.Context, at event.Position, size uint64, named bool) error {
	_, there, err := p.Log.At(ctx, at)
	if err != nil {
		return err
	}
	if there && !named {
		return ErrNotSigned
	}
	return fault.Wrong("position", fmt.Sprintf("is not in a tree of %d events", size))
}

// Stream returns the positions of a stream's events.
func (p *Proofs) Stream(ctx context.Context, stream string) (all []event.Position, err error) {
	for e, err := range p.Log.Stream(ctx, stream, 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, e.Position)
		if of := opsview.MetaOf(e.Meta).FollowUpOf; of > 0 {
			all = append(all, of)
		}
	}
	return all, nil
}

func (p *Proofs) event(ctx context.Context, at event.Position) (event.Stored, error) {
	e, found, err := p.Log.At(ctx, at)
	if err == nil && !found {
		err = ErrNotAsHashed // although the tree has a leaf for the position
	}
	return e, err
}
