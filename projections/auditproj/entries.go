package auditproj

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// growEntries queues the additions to the entries of the map. It reads the entries to which the events belong.
func growEntries(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, events []event.Stored, leaves []tlog.Hash) error {
	concerns := make([]tlog.Concern, len(events))
	var begun []string // streams of rows that this batch may create
	for i := range events {
		concerns[i] = tlog.ConcernOf(&events[i])
		if row := concerns[i].Row; row != "" && events[i].Revision > 0 {
			begun = append(begun, row)
		}
	}
	rows, err := entriesOf(ctx, tx, begun, events[0].Position)
	if err != nil {
		return err
	}
	var names []string
	added, last := map[string][]tlog.Hash{}, map[string]int64{}
	for i, c := range concerns {
		if of, known := rows[c.Row]; known {
			c.Entry = of
		}
		if c.Entry == "" {
			continue
		}
		if c.Row != "" {
			rows[c.Row] = c.Entry
		}
		if added[c.Entry] == nil {
			names = append(names, c.Entry)
		}
		added[c.Entry], last[c.Entry] = append(added[c.Entry], leaves[i]), int64(events[i].Position)
	}
	if len(names) == 0 {
		return nil
	}
	found, _ := tx.Query(ctx, `select entry, size, hashes from entry where entry = any($1)`, names)
	entries, err := compacts(found)
	if err != nil {
		return err
	}
	var sizes, changed []int64
	var hashes [][]byte
	for _, name := range names {
		e := entries[name]
		for _, leaf := range added[name] {
			e.Append(leaf)
		}
		sizes, hashes, changed = append(sizes, int64(e.Size)), append(hashes, joined(e.Hashes)), append(changed, last[name])
	}
	batch.Queue(`
		insert into entry (entry, size, hashes, changed, span)
		select e, s, h, c, c >> 13 from unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[]) t (e, s, h, c)
		on conflict (entry) do update set size = excluded.size, hashes = excluded.hashes, changed = excluded.changed, span = excluded.span`,
		names, sizes, hashes, changed)
	return nil
}

// entriesOf returns the map entries of rows by the rows' streams. It reads the log before a position.
func entriesOf(ctx context.Context, tx pgx.Tx, streams []string, before event.Position) (map[string]string, error) {
	entries := map[string]string{}
	if len(streams) == 0 {
		return entries, nil
	}
	found, _ := tx.Query(ctx, `
		select s.stream, e.type, e.data::text from (select distinct unnest($1::text[])) s (stream), lateral (
			select type, data from log.event where stream = s.stream and position < $2 and type = any($3)
				and (data -> 'account')::text ~ '^[1-9][0-9]*$' order by revision limit 1) e`, streams, int64(before), tlog.RowBegins())
	var e event.Stored
	_, err := pgx.ForEachRow(found, []any{&e.Stream, &e.Type, &e.Data}, func() error {
		entries[e.Stream] = tlog.ConcernOf(&e).Entry
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the accounts of rows: %w", err)
	}
	return entries, nil
}

// compacts returns the entries by name.
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
