package auditcli

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/tlog"
	"bahi/internal/app"
)

// signedSoon limits the time from an event to its checkpoint: a server signs every BAHI_AUDIT_EVERY, which is shorter.
const signedSoon = time.Minute

// ownTree returns the log's own tree as an unsigned checkpoint, if it is larger than all signed ones: it still covers events that were
// removed together with their checkpoints.
func ownTree(ctx context.Context, s *app.System, kept []tlog.RetainedCheckpoint) ([]tlog.RetainedCheckpoint, error) {
	size, err := s.Tree.Size(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range kept {
		if k.Size >= size {
			return nil, nil
		}
	}
	if size == 0 {
		return nil, nil
	}
	tree, err := tlog.TreeAt(ctx, s.Tree, size)
	if err != nil {
		return nil, err
	}
	at, err := s.Tree.Position(ctx, size-1)
	if err != nil {
		return nil, err
	}
	return []tlog.RetainedCheckpoint{{
		Checkpoint: tlog.Checkpoint{Origin: tlog.Origin(s.Store.ID()), Size: size, Root: tree.Root(), Position: at},
		From:       "the tree beside the log, not signed", Trust: tlog.Untrusted,
	}}, nil
}

// columns compares each row of the checkpoints with its note.
func columns(ctx context.Context, s *app.System, r tlog.Result) (tlog.Result, error) {
	var (
		number, size, position int64
		root                   []byte
		note                   string
	)
	numbers, err := s.Signer.Numbers(ctx)
	if err != nil {
		return r, err
	}
	excused := numbers.Excused // a restore changed the numbers of earlier ones
	rows, _ := s.Pool.Query(ctx, `select number, size, root, position, note from audit.checkpoint order by number`)
	wrong := int64(0)
	_, err = pgx.ForEachRow(rows, []any{&number, &size, &root, &position, &note}, func() error {
		c, err := tlog.ParseCheckpoint([]byte(note))
		if wrong == 0 && (err != nil || c.Number != 0 && c.Number != number && number > excused || c.Size != uint64(size) ||
			!bytes.Equal(c.Root[:], root) || c.Position != event.Position(position)) {
			wrong = number
		}
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("read the checkpoints: %w", err)
	}
	if wrong != 0 {
		r = r.Also(tlog.Falsified(fmt.Errorf("the row of checkpoint %d differs from its note", wrong)))
	}
	return r, nil
}

// projected compares the log with the last event that each projection folded. An accepted restore explains tables that are newer than the
// log.
func projected(ctx context.Context, s *app.System, r tlog.Result, head event.Position) (tlog.Result, error) {
	type made struct {
		Name     string
		Position event.Position
		Event    uuid.UUID
	}
	rows, _ := s.Pool.Query(ctx, `select name, position, event_id from projection.generation where store_id = $1 and event_id is not null
		order by name, generation`, s.Store.ID())
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[made])
	if err != nil {
		return r, fmt.Errorf("read the projections' checkpoints: %w", err)
	}
	for _, p := range all {
		if len(r.Restores) > 0 {
			break
		}
		found := event.Stored{}
		for e, err := range s.Store.ReadAll(ctx, p.Position+1, eventstore.Backwards) {
			if err != nil {
				return r, err
			}
			found = e
			break
		}
		switch {
		case found.Position == p.Position && found.ID == p.Event:
			continue
		case p.Position > head:
			return r.Also(tlog.Finding{Kind: tlog.Truncated, Proven: r.Proven, Reason: fmt.Sprintf(
				"The log ends at position %d, and the tables of %s have events up to position %d: the newest events are gone.", head,
				p.Name, p.Position)}), nil
		default:
			return r.Also(tlog.Finding{Kind: tlog.Rewritten, Proven: r.Proven, Reason: fmt.Sprintf(
				"The tables of %s are built from event %s at position %d, which the log does not have there.", p.Name, p.Event, p.Position)}), nil
		}
	}
	return r, nil
}

// unsigned records the first event after all checkpoints if its checkpoint is overdue.
func unsigned(ctx context.Context, s *app.System, r tlog.Result, kept []tlog.RetainedCheckpoint) (tlog.Result, error) {
	if r.Proven == 0 || r.Proven >= r.Events {
		return r, nil
	}
	after := event.Position(r.Proven)
	for _, k := range kept {
		if k.Size == r.Proven && k.Position > 0 {
			after = k.Position
		}
	}
	for e, err := range s.Store.ReadAll(ctx, after, eventstore.Forwards) {
		if err != nil {
			return r, err
		}
		if time.Since(e.At) > signedSoon {
			first := tlog.Of(e)
			r.Unsigned = &first
		}
		break
	}
	return r, nil
}

// missing adds a finding if checkpoints were removed.
func missing(ctx context.Context, s *app.System, r tlog.Result) (tlog.Result, error) {
	n, err := s.Signer.Numbers(ctx)
	if err != nil {
		return r, err
	}
	if n.Imported > 0 {
		fmt.Fprintf(s.Settings.Shell.Out, "Checkpoints 1 to %d came with an imported log, or from an older version: some may be missing.\n",
			n.Imported)
	}
	if n.Missing > 0 {
		r = r.Also(tlog.Finding{Kind: tlog.Rewritten, Proven: r.Proven, Reason: fmt.Sprintf(
			"%d signed checkpoints were removed, from number %d on: they are numbered without gaps.", n.Missing, n.First)})
	}
	return r, nil
}

// emptied adds a finding if the tree beside the log has lost leaves. Leaves are stored in one transaction with the last one's position.
func emptied(ctx context.Context, s *app.System, r tlog.Result) (tlog.Result, error) {
	var made int64
	err := s.Pool.QueryRow(ctx, `select coalesce(max(position), 0) from projection.generation
		where name = 'audit' and status = 'live' and store_id = $1`, s.Store.ID()).Scan(&made)
	if err != nil {
		return r, fmt.Errorf("read the tree's position: %w", err)
	}
	size, err := s.Tree.Size(ctx)
	if err == nil && size < uint64(made) {
		r = r.Also(tlog.Finding{Kind: tlog.Rewritten, Proven: r.Proven, Reason: fmt.Sprintf(
			"The tree beside the log covers the events up to position %d, but has %d: leaves were removed. bahi projections rebuild "+
				"audit rebuilds it.", made, size)})
	}
	return r, err
}
