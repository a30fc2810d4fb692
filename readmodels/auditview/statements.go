package auditview

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
	"bahi/readmodels"
)

// Figures are the days and balances of a statement.
type Figures struct{ tlog.Stated }

// Code returns the text of the QR code on a printed statement: its figures as known at a position.
func (f Figures) Code(account int64, position event.Position, checkpoint string) string {
	return tlog.StatementCode{
		Checkpoint: tlog.CheckpointHash([]byte(checkpoint)), Account: tlog.MapKey(tlog.AccountEntry(account)),
		Position: position, Stated: f.Stated,
	}.String()
}

// Statement is the proof of an account's statement. The caller sets the figures.
type Statement struct {
	tlog.Statement

	Figures  Figures
	Position event.Position // position up to which it has all events of the account
}

// Write writes the file.
func (s Statement) Write(w io.Writer) error {
	s.Stated = s.Figures.Stated
	return tlog.WriteStatement(w, s.Statement)
}

// Statement returns the proof of an account's statement at the newest checkpoint. It returns [ErrNotSigned] if the
// checkpoint lacks an event of the account that was in the log when the read began.
func (p *Proofs) Statement(ctx context.Context, at *readmodels.At, workspace uuid.UUID, account int64) (s Statement, err error) {
	names := []string{tlog.AccountEntry(account), tlog.CommonEntry(workspace.String())}
	changed, err := readmodels.Rows(ctx, p.Tree.Reader.From(at, "audit"), pgx.RowTo[int64],
		`select changed from audit.entry where entry = any($1)`, names)
	if err != nil {
		return s, err
	}
	c, err := p.mapped(ctx, names, &s.Statement)
	if err != nil {
		return s, err
	}
	for _, newest := range changed {
		if event.Position(newest) > c.Position {
			return s, ErrNotSigned
		}
	}
	if at.Stale() || len(changed) == 0 {
		return s, ErrNotSigned
	}
	s.Account, s.Workspace, s.Position = account, workspace.String(), c.Position
	if s.Events, err = p.entryEvents(ctx, names[0], c, &s.Entry, accountStreams, account); err != nil {
		return s, err
	}
	common, err := p.entryEvents(ctx, names[1], c, &s.Common, `select unnest(array['bookslock-', 'period-']) || $2`, workspace.String())
	s.Events = append(s.Events, common...)
	return s, err
}

// accountStreams selects the streams of account $2. Even a deleted row has a version that is not deleted, and only those have an index by
// account.
const accountStreams = `
	select distinct a.ledger || 'row-' || v.row_id from books.row_version v join books.account a on a.id = v.account_id
	where a.id = $2 and not v.deleted
	union all select a.ledger || '-' || a.id from books.account a where a.id = $2`

// eventsOf returns SQL that selects the events of streams up to position $1. The 0 prevents a plan that reads the log up to the position.
func eventsOf(streams string) string {
	return `
		select e.position, e.stream, e.revision, e.id, e.type, e.data::text, e.meta::text, e.recorded_at
		from (` + streams + `) s (stream) join log.event e on e.stream = s.stream where e.position + 0 <= $1 order by e.position`
}

// entryEvents returns the events of a map entry of a checkpoint, and sets the number and the root of their leaves. sql
// selects the streams of the events. It returns [ErrNotAsHashed] if the events differ from the checkpoint.
func (p *Proofs) entryEvents(ctx context.Context, name string, c tlog.Checkpoint, entry *tlog.StatementEntry, sql string, of any) (
	[]event.Stored, error) {
	at := new(readmodels.At).AsKnownAt(c.Position)
	events, err := readmodels.Rows(ctx, p.Tree.Reader.From(at, "books"), pgx.RowToStructByPos[event.Stored],
		eventsOf(sql), int64(c.Position), of)
	if err != nil {
		return nil, err
	}
	if entry.Size, entry.Root = leavesOf(events); entry.Verify(name, c.Map) != nil {
		return nil, ErrNotAsHashed
	}
	return events, nil
}

// leavesOf returns the number of events and the root of their leaves, zero for none.
func leavesOf(events []event.Stored) (uint64, tlog.Hash) {
	if len(events) == 0 {
		return 0, tlog.Hash{}
	}
	var tree tlog.Tree
	var hasher tlog.Hasher
	for _, e := range events {
		tree.Append(hasher.Leaf(e))
	}
	return tree.Size(), tree.Root()
}

// mapped sets the newest checkpoint and the paths of both entries in its map. The signer stores the map's nodes with the
// checkpoint, so one snapshot has both.
func (p *Proofs) mapped(ctx context.Context, names []string, s *tlog.Statement) (c tlog.Checkpoint, err error) {
	err = pgx.BeginTxFunc(ctx, p.DB, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select note from audit.checkpoint where abandoned is null order by size desc limit 1`).Scan(&s.Checkpoint)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotSigned
		}
		if err == nil {
			c, err = tlog.ParseCheckpoint([]byte(s.Checkpoint))
		}
		if err != nil {
			return fmt.Errorf("read the newest checkpoint: %w", err)
		}
		if c.Map == (tlog.Hash{}) { // signed by an earlier version
			return ErrNotSigned
		}
		keys := []tlog.Hash{tlog.MapKey(names[0]), tlog.MapKey(names[1])}
		m, err := tlog.LoadMap(ctx, p.Tree.MapNodes(tx), c.Map, keys)
		if errors.Is(err, tlog.ErrMapBroken) {
			return ErrNotAsHashed
		}
		if err == nil {
			s.Entry.MapPath = m.Path(keys[0])
			s.Common.MapPath = m.Path(keys[1])
		}
		return err
	})
	return c, err
}
