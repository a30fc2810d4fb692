package auditproj

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// growEntries queues the additions to the entries of the map. It reads those that the events concern.
func growEntries(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, events []event.Stored, leaves []tlog.Hash) error {
	concerns := make([]tlog.Concern, len(events))
	rows, began := map[string]string{}, map[string]bool{} // entry by a row's stream
	var streams []string
	for i := range events {
		concerns[i] = tlog.ConcernOf(&events[i])
		if row := concerns[i].Row; row != "" && !began[row] {
			began[row] = true
			streams = append(streams, row)
		}
	}
	if len(streams) > 0 {
		found, _ := tx.Query(ctx, `select stream, entry from entry_row where stream = any($1)`, streams)
		var stream, entry string
		if _, err := pgx.ForEachRow(found, []any{&stream, &entry}, func() error { rows[stream] = entry; return nil }); err != nil {
			return fmt.Errorf("read the entries of rows: %w", err)
		}
	}
	var begun, begunIn, names, in []string
	var positions, changed []int64
	added := map[string][]tlog.Hash{}
	last := map[string]int64{}
	for i, c := range concerns {
		if of, known := rows[c.Row]; known {
			c.Entry = of
		} else if c.Row != "" && c.Entry != "" {
			rows[c.Row] = c.Entry
			begun, begunIn = append(begun, c.Row), append(begunIn, c.Entry)
		}
		if c.Entry == "" {
			continue
		}
		if added[c.Entry] == nil {
			names = append(names, c.Entry)
		}
		added[c.Entry], last[c.Entry] = append(added[c.Entry], leaves[i]), int64(events[i].Position)
		in, positions = append(in, c.Entry), append(positions, last[c.Entry])
	}
	if len(names) == 0 {
		return nil
	}
	found, _ := tx.Query(ctx, `select entry, size, hashes from entry where entry = any($1)`, names)
	entries, err := compacts(found)
	if err != nil {
		return err
	}
	var sizes []int64
	var hashes [][]byte
	for _, name := range names {
		e := entries[name]
		for _, leaf := range added[name] {
			e.Append(leaf)
		}
		sizes, hashes, changed = append(sizes, int64(e.Size)), append(hashes, joined(e.Hashes)), append(changed, last[name])
	}
	batch.Queue(`
		insert into entry (entry, size, hashes, changed) select * from unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[])
		on conflict (entry) do update set size = excluded.size, hashes = excluded.hashes, changed = excluded.changed`,
		names, sizes, hashes, changed)
	batch.Queue(`insert into entry_event (entry, position) select * from unnest($1::text[], $2::bigint[])`, in, positions)
	if len(begun) > 0 {
		batch.Queue(`insert into entry_row (stream, entry) select * from unnest($1::text[], $2::text[])`, begun, begunIn)
	}
	return nil
}

// compacts returns the entries that were read, by name.
func compacts(rows pgx.Rows) (map[string]tlog.Compact, error) {
	entries := map[string]tlog.Compact{}
	var name string
	var size int64
	var hashes []byte
	_, err := pgx.ForEachRow(rows, []any{&name, &size, &hashes}, func() error {
		entries[name] = tlog.Compact{Size: uint64(size), Hashes: split(hashes)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read entries of the map: %w", err)
	}
	return entries, nil
}
