package auditproj

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// mapSince returns the root of the stored map, and the position of the last event in the map, which is the position of the last checkpoint.
// The position is 0 if the stored map differs from the signed one and must be rebuilt.
func (s *Signer) mapSince(ctx context.Context, tx pgx.Tx, last *Signed) (root tlog.Hash, since event.Position, err error) {
	if last == nil {
		return root, 0, nil
	}
	c, err := tlog.ParseCheckpoint([]byte(last.Note))
	if err != nil || c.Map == (tlog.Hash{}) {
		return root, 0, nil //nolint:nilerr // another check compares the note with its row
	}
	_, err = tlog.LoadMap(ctx, s.Tables.MapNodes(tx), c.Map, nil)
	if errors.Is(err, tlog.ErrMapBroken) {
		return root, 0, nil
	}
	return c.Map, last.Position, err
}

// growMap sets entries in the stored map with the given root, or in an empty map for a zero root. It returns the new root.
func (s *Signer) growMap(ctx context.Context, tx pgx.Tx, root tlog.Hash, entries map[string]tlog.Compact) (tlog.Hash, error) {
	m := &tlog.Map{}
	if root == (tlog.Hash{}) {
		if _, err := tx.Exec(ctx, `delete from audit.map_node`); err != nil {
			return root, fmt.Errorf("clear the map: %w", err)
		}
	} else {
		keys := make([]tlog.Hash, 0, len(entries))
		for name := range entries {
			keys = append(keys, tlog.MapKey(name))
		}
		var err error
		if m, err = tlog.LoadMap(ctx, s.Tables.MapNodes(tx), root, keys); errors.Is(err, tlog.ErrMapBroken) {
			_, emptying := s.DB.Exec(ctx, `delete from audit.map_node`)
			return root, errors.Join(fmt.Errorf("clearing the stored map until the next checkpoint: %w", err), emptying)
		}
		if err != nil {
			return root, err
		}
	}
	for name, e := range entries {
		m.Set(tlog.MapKey(name), e.Value())
	}
	changed, root := m.Settle()
	var paths, keys, hashes [][]byte
	for _, n := range changed {
		var key []byte
		if n.Leaf {
			key = n.Key[:]
		}
		paths, keys, hashes = append(paths, n.Path), append(keys, key), append(hashes, n.Hash[:])
	}
	_, err := tx.Exec(ctx, `insert into audit.map_node (path, key, hash) select * from unnest($1::bytea[], $2::bytea[], $3::bytea[])
		on conflict (path) do update set key = excluded.key, hash = excluded.hash`, paths, keys, hashes)
	if err != nil {
		return root, fmt.Errorf("store %d nodes of the map: %w", len(changed), err)
	}
	return root, nil
}
