package tlog

import (
	"context"
	"fmt"
	"iter"

	"bahi/domain/event"
)

// These limit the events after the first bad one that are read to classify the change.
const (
	lookAhead      = 1000
	lookAheadBytes = 64 << 20
)

// locate reads the log again and finds the first event whose leaf differs from the tiles. It returns a finding only if it is certain: the
// log's events before that one and the kept leaf must lead to the checkpoint k through the tiles. Otherwise it returns nil.
func (v *verifier) locate(ctx context.Context, events iter.Seq2[event.Stored, error], k *RetainedCheckpoint) *Finding {
	if k == nil {
		k = v.unreached()
	}
	if k == nil {
		return nil
	}
	kept := leaves{ctx: ctx, tiles: v.Tiles, size: k.Size}
	var (
		tree   Tree
		hasher Hasher
		bad    []event.Stored // the first bad event and its successors
		held   int            // bytes of these
	)
	for e, err := range events {
		if err != nil || ctx.Err() != nil {
			return nil
		}
		if bad == nil {
			ours := hasher.Leaf(e)
			if theirs, ok := kept.at(tree.Size()); tree.Size() < k.Size && (!ok || theirs == ours) {
				if !ok {
					return nil
				}
				tree.Append(ours)
				continue
			}
		}
		bad, held = append(bad, e), held+sizeOf(&e)
		if len(bad) > lookAhead || held > lookAheadBytes {
			break
		}
	}
	index := tree.Size()
	if index >= k.Size || !v.leads(ctx, &kept, &tree, *k) {
		return nil
	}
	f := &Finding{Proven: index, First: index + 1, Last: index + 1, Checkpoint: k}
	f.Kind, f.Reason = v.classify(&kept, index, bad)
	f.Reason += fmt.Sprintf(" Kept hashes prove this: they lead to %s.", k)
	if v.refuted != nil {
		f.Reason += v.contradiction()
	}
	if len(bad) > 0 {
		there := Of(bad[0])
		f.Event = &there
	}
	return f
}

// leads reports whether the checkpoint's tree begins with our tree, followed by the kept leaf.
func (v *verifier) leads(ctx context.Context, kept *leaves, ours *Tree, k RetainedCheckpoint) bool {
	index := ours.Size()
	leaf, ok := kept.at(index)
	if !ok {
		return false
	}
	consistency, err := Consistency(ctx, v.Tiles, index, k.Size)
	if err != nil || VerifyConsistency(index, k.Size, consistency, ours.Root(), k.Root) != nil {
		return false
	}
	inclusion, err := Inclusion(ctx, v.Tiles, index, k.Size)
	return err == nil && VerifyInclusion(leaf, index, k.Size, inclusion, k.Root) == nil
}

// classify returns the kind of change at the first bad event, and a sentence. It looks for that event among the later kept leaves, and for
// the kept leaf among the log's next events.
func (v *verifier) classify(kept *leaves, index uint64, bad []event.Stored) (Kind, string) {
	if len(bad) == 0 {
		return Truncated, fmt.Sprintf("The log ends after %d events.", index)
	}
	was := func(e event.Stored, at uint64) bool { // reports whether e is the kept event at that index
		e.Position = event.Position(at + 1)
		leaf, ok := kept.at(at)
		return ok && leaf == LeafHash(e)
	}
	var removed, inserted uint64 // numbers of events
	for d := uint64(1); d <= lookAhead && removed == 0; d++ {
		if was(bad[0], index+d) {
			removed = d
		}
	}
	for d := 1; d < len(bad) && inserted == 0; d++ {
		if was(bad[d], index) {
			inserted = uint64(d)
		}
	}
	switch {
	case removed > 0 && inserted > 0:
		return Reordered, fmt.Sprintf("The event there was event %d, and the event that was there is now event %d: events were put in another "+
			"order.", index+1+removed, index+1+inserted)
	case removed > 0:
		return Removed, fmt.Sprintf("%s removed there: the event there was event %d.", events(removed, "was", "were"), index+1+removed)
	case inserted > 0:
		return Inserted, fmt.Sprintf("%s inserted there: the event that was there is now event %d.", events(inserted, "was", "were"),
			index+1+inserted)
	}
	return Changed, "It is not the event that was signed: its payload, metadata, time, type, id or stream was changed, or another event was " +
		"put in its place."
}

func events(n uint64, one, more string) string {
	if n == 1 {
		return "1 event " + one
	}
	return fmt.Sprintf("%d events %s", n, more)
}

// leaves are the leaf hashes in the tiles of a log of some size.
type leaves struct {
	ctx   context.Context //nolint:containedctx // lives for one call of locate
	tiles Tiles
	size  uint64

	index uint64 // index of the tile
	tile  []byte
}

// at returns the leaf hash at an index, if there is one.
func (l *leaves) at(index uint64) (Hash, bool) {
	if index >= l.size {
		return Hash{}, false
	}
	if tile := index / TileWidth; l.tile == nil || l.index != tile {
		read, err := l.tiles.ReadTiles(l.ctx, []TileID{{Index: tile}})
		if err != nil || len(read) != 1 || read[0] == nil {
			return Hash{}, false
		}
		l.index, l.tile = tile, read[0]
	}
	at := int(index%TileWidth) * HashSize
	if len(l.tile) < at+HashSize {
		return Hash{}, false
	}
	return Hash(l.tile[at:]), true
}
