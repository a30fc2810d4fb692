package tlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"bahi/domain/event"
)

// Trust is the reason to believe a checkpoint. More trusted checkpoints are checked first. A less trusted one does not narrow down the
// finding of a more trusted one.
type Trust int

// The levels of trust, from the greatest to the least.
const (
	KeptElsewhere Trust = iota // the verifier kept it out of reach of the log's operator
	SignedByKey                // it came with the log, signed by a trusted key
	Untrusted                  // it came with the log, and the log's operator could have made it: it can refute the log, never prove it
)

// trustWords are the names of the levels.
var trustWords = []string{KeptElsewhere: "kept_elsewhere", SignedByKey: "signed_by_key", Untrusted: "doubtful"}

// MarshalText returns the level's name.
func (t Trust) MarshalText() ([]byte, error) { return []byte(trustWords[t]), nil }

// UnmarshalText reads a level's name.
func (t *Trust) UnmarshalText(text []byte) error {
	at := slices.Index(trustWords, string(text))
	if at < 0 {
		return fmt.Errorf("%q is not one of %s", text, strings.Join(trustWords, ", "))
	}
	*t = Trust(at)
	return nil
}

// RetainedCheckpoint is a checkpoint to compare with a log.
type RetainedCheckpoint struct {
	Checkpoint

	From string      `json:"from"`         // where it was kept, for people
	By   []Signature `json:"by,omitempty"` // its signatures by trusted keys

	Trust Trust `json:"trust"`
}

func (k RetainedCheckpoint) String() string {
	text := fmt.Sprintf("the checkpoint of %d events", k.Size)
	if !k.At.IsZero() {
		text += " made at " + k.At.Format(moment)
	}
	if k.From != "" {
		text += " (" + k.From + ")"
	}
	return text
}

// Collect reads a file of checkpoints of one log. from is the source's name. It returns an error for a checkpoint of another log and for an
// invalid signature by a trusted key. By is empty if no trusted key signed a checkpoint.
func (k Keys) Collect(origin, from string, text []byte) ([]RetainedCheckpoint, error) {
	kept, errs := k.keepEach(origin, from, SplitCheckpoints(text))
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, errs[i]
	}
	return kept, nil
}

// ParseBundled reads checkpoints that came with a log and marks them like [rankBundled]. Its error is about the first invalid one;
// [Falsified] makes a finding of it. It also returns the valid ones, which may show more.
func (k Keys) ParseBundled(origin, from string, notes [][]byte) (kept []RetainedCheckpoint, wrong error) {
	all, errs := k.keepEach(origin, from, notes)
	for i, err := range errs {
		switch {
		case err == nil:
			kept = append(kept, all[i])
		case wrong == nil:
			wrong = err
		}
	}
	return rankBundled(kept), wrong
}

// Falsified returns the finding for an invalid checkpoint in a log's files. wrong is the error of [Keys.ParseBundled].
func Falsified(wrong error) Finding {
	return Finding{Kind: Rewritten, Reason: "A signed checkpoint was changed: " + wrong.Error() + "."}
}

// keepEach reads the notes in parallel: there may be one for every second of years.
func (k Keys) keepEach(origin, from string, notes [][]byte) ([]RetainedCheckpoint, []error) {
	kept, errs := make([]RetainedCheckpoint, len(notes)), make([]error, len(notes))
	var opening errgroup.Group
	opening.SetLimit(runtime.GOMAXPROCS(0))
	const some = 256
	for first := 0; first < len(notes); first += some {
		opening.Go(func() error {
			for i := first; i < min(first+some, len(notes)); i++ {
				if kept[i], errs[i] = k.keep(origin, from, notes[i]); errs[i] != nil {
					errs[i] = fmt.Errorf("%s, checkpoint %d: %w", from, i+1, errs[i])
				}
			}
			return nil
		})
	}
	_ = opening.Wait() // the functions return no error
	return kept, errs
}

func (k Keys) keep(origin, from string, signed []byte) (RetainedCheckpoint, error) {
	c, by, err := k.Open(signed)
	switch {
	case err != nil && !errors.Is(err, ErrNotSigned):
		return RetainedCheckpoint{}, err
	case c.Origin != origin:
		return RetainedCheckpoint{}, fmt.Errorf("it is of the log %s, and this is the log %s", c.Origin, origin)
	case err != nil:
		by = nil // a witness alone does not confirm the log
	}
	return RetainedCheckpoint{Checkpoint: c, From: from, By: by}, nil
}

// rankBundled marks checkpoints that came with the log, or from a store that its operator can write. Those with a signature by a trusted
// key become [SignedByKey], the others [Untrusted].
func rankBundled(kept []RetainedCheckpoint) []RetainedCheckpoint {
	for i := range kept {
		kept[i].Trust = SignedByKey
		if len(kept[i].By) == 0 {
			kept[i].Trust = Untrusted
		}
	}
	return kept
}

// Evidence has the checkpoints and tiles with which a log is compared.
type Evidence struct {
	Kept []RetainedCheckpoint // checkpoints of this log, in any order

	// Tiles are stored tiles of the log, or nil. They need not be trusted: a claim about an event counts only if it leads to a checkpoint.
	Tiles Tiles

	Progress func(events uint64) // called regularly by Verify's goroutine; may be nil
}

// Result is the result of a verification.
type Result struct {
	Events  uint64         `json:"events"` // number of events read
	Last    event.Position `json:"last_position"`
	Root    Hash           `json:"root"`           // root of the tree over them; not set with a finding
	Agreed  int            `json:"agreed"`         // number of checkpoints that agree …
	Trusted int            `json:"trusted"`        // … and how many of them are not [Untrusted]
	Maps    int            `json:"maps,omitempty"` // how many of those that agree have a root of the map, which was recomputed
	Proven  uint64         `json:"proven"`         // number of leading events that checkpoints other than [Untrusted] ones confirm
	// events that report a restore that lost the log's tail: older checkpoints may cover lost events
	Restores []Event  `json:"restores,omitempty"`
	Unsigned *Event   `json:"unsigned,omitempty"` // the first event after all checkpoints, if a server should have signed it long ago
	Unlisted []string `json:"unlisted,omitempty"` // files among an archive's segments that the manifest does not list; not read
	Finding  *Finding `json:"finding,omitempty"`  // the first fault; nil if there is none
}

const (
	// blockEvents is the number of events that are hashed at a time: a tile's.
	blockEvents = TileWidth

	// maxHeld limits the bytes of events in a block. Further events are hashed as they are read: a small untrusted archive may unpack to
	// events of many megabytes.
	maxHeld = 1 << 20
)

// block is a run of events that the verifier processes at a time. Blocks are reused.
type block struct {
	first   uint64         // index of the first event
	events  []event.Stored // without a position if its leaf has been hashed
	held    int            // bytes
	leaves  [blockEvents]Hash
	about   [blockEvents]Concern // set if the evidence has a root of the map
	perfect bool                 // root is the root of all leaves
	root    Hash
	hashed  chan struct{}
}

// Verify compares a log, read from its beginning, with evidence. An error means that the log became unreadable; the result then covers the
// events before. Verify hashes events on all processors without allocation, so their bytes must not change after they were yielded. If it
// finds a fault and there are tiles, it reads the log a second time.
func Verify(ctx context.Context, events iter.Seq2[event.Stored, error], evidence Evidence) (Result, error) {
	v := newVerifier(evidence)
	err := v.read(ctx, events)
	r := Result{Events: v.order.count, Last: v.order.last.Position, Root: v.tree.Root(), Agreed: v.agreed, Trusted: v.trusted,
		Maps: v.maps, Proven: v.led[SignedByKey], Restores: v.order.restores}
	r.Finding = v.finding(err == nil)
	if v.remap != nil {
		r = r.Also(Finding{Kind: Rewritten, Proven: r.Proven, Reason: fmt.Sprintf(
			"The map of accounts that %s signed is not that of the log: a statement's proof against it is worth nothing.", v.remap)})
	}
	if r.Finding != nil && evidence.Tiles != nil {
		if exact := v.locate(ctx, events, r.Finding.Checkpoint); exact != nil {
			r.Finding = exact
		}
	}
	return r, err
}

type verifier struct {
	Evidence

	kept      []RetainedCheckpoint // by size
	strongest Trust                // the greatest trust among kept
	inside    map[uint64]bool      // first indexes of blocks that have the end of a checkpoint inside
	mapped    bool                 // a checkpoint has a root of the map
	order     order

	// The fields of the goroutine that joins the blocks.
	tree    Tree
	books   Accounts
	next    int // index in kept
	agreed  int
	trusted int
	maps    int                   // checkpoints that agree and have a root of the map
	led     [Untrusted + 1]uint64 // number of events that checkpoints of that trust, or more, confirm
	refuted *RetainedCheckpoint   // the checkpoint that contradicts the log
	remap   *RetainedCheckpoint   // the first that agrees with the log and has another root of the map
	hint    string                // finding of a less trusted checkpoint
	failed  atomic.Bool
}

func newVerifier(e Evidence) *verifier {
	v := &verifier{Evidence: e, kept: slices.Clone(e.Kept), strongest: Untrusted, inside: map[uint64]bool{}}
	slices.SortStableFunc(v.kept, func(a, b RetainedCheckpoint) int { return cmp.Compare(a.Size, b.Size) })
	expected := uint64(0)
	if len(v.kept) > 0 {
		expected = v.kept[len(v.kept)-1].Size
	}
	for _, k := range v.kept {
		v.strongest = min(v.strongest, k.Trust)
		v.mapped = v.mapped || k.Map != (Hash{})
		if k.Size%blockEvents != 0 {
			v.inside[k.Size/blockEvents*blockEvents] = true
		}
	}
	v.order = newOrder(expected)
	return v
}

// read reads the log to its end and joins the hashed blocks.
func (v *verifier) read(ctx context.Context, events iter.Seq2[event.Stored, error]) error {
	workers := max(1, runtime.GOMAXPROCS(0)-1) // leaves one for reading
	free, work, queue := make(chan *block, 4*workers), make(chan *block, 4*workers), make(chan *block, 4*workers)
	for range cap(free) {
		free <- &block{events: make([]event.Stored, 0, blockEvents), hashed: make(chan struct{}, 1)}
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			var h Hasher
			for b := range work {
				if !v.failed.Load() {
					b.hash(&h, v.inside[b.first])
				}
				b.hashed <- struct{}{}
			}
		})
	}
	running.Go(func() {
		v.check() // an empty log
		for b := range queue {
			<-b.hashed
			v.join(b)
			clear(b.events)
			free <- b
		}
	})
	err := v.feed(ctx, events, func() *block { return <-free }, func(b *block) { work <- b; queue <- b })
	close(work)
	close(queue)
	running.Wait()
	return err
}

// feed reads events into blocks and checks their order.
func (v *verifier) feed(ctx context.Context, events iter.Seq2[event.Stored, error], free func() *block, send func(*block)) error {
	var h Hasher
	begin := func() *block {
		b := free()
		b.first, b.events, b.held = v.order.count, b.events[:0], 0
		return b
	}
	b := begin()
	for e, err := range events {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			send(b)
			return err
		}
		if !v.order.add(&e) {
			break
		}
		if v.mapped {
			b.about[len(b.events)] = ConcernOf(&e)
		}
		if b.add(&e, &h); len(b.events) == blockEvents {
			send(b)
			if v.Progress != nil {
				v.Progress(v.order.count)
			}
			b = begin()
		}
	}
	send(b)
	if v.Progress != nil {
		v.Progress(v.order.count)
	}
	return nil
}

// add adds an event, or its leaf if the block is full.
func (b *block) add(e *event.Stored, h *Hasher) {
	if n := sizeOf(e); b.held+n <= maxHeld {
		b.held += n
		b.events = append(b.events, *e)
		return
	}
	b.leaves[len(b.events)] = h.Leaf(*e)
	b.events = append(b.events, event.Stored{})
}

// sizeOf returns the number of bytes of an event.
func sizeOf(e *event.Stored) int { return len(e.Stream) + len(e.Type) + len(e.Meta) + len(e.Data) }

// hash hashes the leaves, and their root if no checkpoint ends among them.
func (b *block) hash(h *Hasher, checkpointInside bool) {
	for i := range b.events {
		if b.events[i].Position > 0 {
			b.leaves[i] = h.Leaf(b.events[i])
		}
	}
	if b.perfect = len(b.events) == blockEvents && !checkpointInside; b.perfect {
		leaves := b.leaves // perfectRoot overwrites them
		b.root = perfectRoot(leaves[:])
	}
}

// join appends a block to the tree and checks the checkpoints that end in it.
func (v *verifier) join(b *block) {
	if v.failed.Load() {
		return
	}
	if b.perfect {
		for i := range b.leaves {
			v.books.Add(b.about[i], b.leaves[i])
		}
		v.tree.appendPerfect(TileHeight, b.root, nil)
		v.check()
		return
	}
	for i, leaf := range b.leaves[:len(b.events)] {
		v.tree.Append(leaf)
		v.books.Add(b.about[i], leaf)
		if v.check(); v.failed.Load() {
			return
		}
	}
}

// check compares the tree with the checkpoints of its size.
func (v *verifier) check() {
	if v.next == len(v.kept) || v.kept[v.next].Size > v.tree.Size() {
		return
	}
	root := v.tree.Root()
	for ; v.next < len(v.kept) && v.kept[v.next].Size == v.tree.Size(); v.next++ {
		if k := &v.kept[v.next]; k.Root == root {
			v.agree(k)
		} else {
			v.refute(k)
		}
	}
}

func (v *verifier) agree(k *RetainedCheckpoint) {
	if k.Map != (Hash{}) {
		if v.maps++; v.remap == nil && v.books.Root() != k.Map {
			v.remap = k
		}
	}
	v.agreed++
	if k.Trust < Untrusted {
		v.trusted++
	}
	for trust := k.Trust; trust <= Untrusted; trust++ {
		v.led[trust] = k.Size
	}
}

// refute records a checkpoint that contradicts the log. Of several, the first of the most trusted ones is the finding, and a less trusted
// one is a hint. A hint is dropped when a larger, more trusted checkpoint agrees with the log.
func (v *verifier) refute(k *RetainedCheckpoint) {
	switch {
	case v.refuted == nil || v.overruled():
		v.refuted = k
	case k.Trust < v.refuted.Trust:
		narrower := v.refuted.Size < k.Size || v.led[v.refuted.Trust] > v.led[k.Trust]
		if v.hint == "" && narrower && v.refuted.Size > v.led[v.refuted.Trust] {
			v.hint = fmt.Sprintf(" By %s, which is less trusted, it is one of the events %d to %d.", v.refuted, v.led[v.refuted.Trust]+1,
				v.refuted.Size)
		}
		v.refuted = k
	}
	if k.Trust == v.strongest {
		v.failed.Store(true) // no further checkpoint can change the result
	}
}

// overruled reports whether the log is proven beyond the checkpoint that contradicts it.
func (v *verifier) overruled() bool { return v.led[v.refuted.Trust] >= v.refuted.Size }
