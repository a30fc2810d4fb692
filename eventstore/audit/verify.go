package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"bahi/domain/event"
)

// Trust is why a checkpoint speaks for a log. Who vouches more is asked first: what agrees with the lesser word only does not
// narrow down what the greater one refutes.
type Trust int

// From the greatest to the least.
const (
	KeptElsewhere Trust = iota // whoever verifies kept it, where the log's keeper could not reach it
	SignedByKey                // it came with the log, and is signed by a key that is trusted: so the key's keeper vouches
	Doubtful                   // it came with the log, and the log's keeper could have made it: it can refute the log, but never prove it
)

// trustWords are how a Trust is written.
var trustWords = []string{KeptElsewhere: "kept_elsewhere", SignedByKey: "signed_by_key", Doubtful: "doubtful"}

// MarshalText writes its name.
func (t Trust) MarshalText() ([]byte, error) { return []byte(trustWords[t]), nil }

// UnmarshalText reads its name.
func (t *Trust) UnmarshalText(text []byte) error {
	at := slices.Index(trustWords, string(text))
	if at < 0 {
		return fmt.Errorf("%q is none of %s", text, strings.Join(trustWords, ", "))
	}
	*t = Trust(at)
	return nil
}

// Kept is a checkpoint that a log is held against.
type Kept struct {
	Checkpoint

	From string      `json:"from"`         // where it was kept, for people
	By   []Signature `json:"by,omitempty"` // who of those that are trusted signed it

	Trust Trust `json:"trust"`
}

func (k Kept) String() string {
	text := fmt.Sprintf("the checkpoint of %d events", k.Size)
	if !k.At.IsZero() {
		text += " made at " + k.At.Format(moment)
	}
	if k.From != "" {
		text += " (" + k.From + ")"
	}
	return text
}

// Collect reads a file of checkpoints of one log, and says where they come from. It answers an error for a checkpoint of another
// log, and for a signature by a trusted key that is wrong. Those that none of the keys signed have no By.
func (k Keys) Collect(origin, from string, text []byte) ([]Kept, error) {
	kept, errs := k.keepEach(origin, from, SplitCheckpoints(text))
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, errs[i]
	}
	return kept, nil
}

// Beside reads checkpoints that came with a log, as [BesideTheLog] marks them. Its error tells of the first that is wrong, which
// [Falsified] makes a finding. The others are answered all the same: they may tell more.
func (k Keys) Beside(origin, from string, notes [][]byte) (kept []Kept, wrong error) {
	all, errs := k.keepEach(origin, from, notes)
	for i, err := range errs {
		switch {
		case err == nil:
			kept = append(kept, all[i])
		case wrong == nil:
			wrong = err
		}
	}
	return BesideTheLog(kept), wrong
}

// Falsified is the finding that a checkpoint, which came with a log, is wrong.
func Falsified(wrong error) Finding {
	return Finding{Kind: Rewritten, Why: "What was signed was changed: " + wrong.Error() + "."}
}

// keepEach reads each of the notes: there may be one for every second of years.
func (k Keys) keepEach(origin, from string, notes [][]byte) ([]Kept, []error) {
	kept, errs := make([]Kept, len(notes)), make([]error, len(notes))
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
	_ = opening.Wait() // none of them fails
	return kept, errs
}

func (k Keys) keep(origin, from string, signed []byte) (Kept, error) {
	c, by, err := k.Open(signed)
	switch {
	case err != nil && !errors.Is(err, ErrNotSigned):
		return Kept{}, err
	case c.Origin != origin:
		return Kept{}, fmt.Errorf("it is of the log %s, and this is the log %s", c.Origin, origin)
	case err != nil:
		by = nil // a witness alone does not speak for the log
	}
	return Kept{Checkpoint: c, From: from, By: by}, nil
}

// BesideTheLog marks checkpoints that came with the log, or lie where its keeper can write: those that a trusted key signed
// count as [SignedByKey], the others are [Doubtful].
func BesideTheLog(kept []Kept) []Kept {
	for i := range kept {
		kept[i].Trust = SignedByKey
		if len(kept[i].By) == 0 {
			kept[i].Trust = Doubtful
		}
	}
	return kept
}

// Evidence is what a log is held against, and how.
type Evidence struct {
	Kept []Kept // in any order, of the log in question

	// Tiles are tiles that were kept of the log, if there are any. They need not be trusted: what they say of an event
	// counts only as far as it leads to a checkpoint.
	Tiles Tiles

	// Sparse says that positions only rise, as on EventStoreDB, where times may go back, too. Else they are 1, 2, 3 …, and so they are
	// up to a checkpoint that says it: one of those for which most vouches, whose last position is the number of its events.
	Sparse bool

	Progress func(events uint64) // called now and then by the goroutine that called Verify; may be nil
}

// Result is what became of a log that was held against evidence.
type Result struct {
	Events   uint64         `json:"events"` // that were read
	Last     event.Position `json:"last_position"`
	Root     Hash           `json:"root"`               // of the tree over them, unless something was found
	Agreed   int            `json:"agreed"`             // how many checkpoints agree …
	Trusted  int            `json:"trusted"`            // … and how many of them are not [Doubtful]
	Proven   uint64         `json:"proven"`             // the first so many events are those that were signed, by checkpoints that are not [Doubtful]
	Restores []Event        `json:"restores,omitempty"` // where the log says that a restore lost its tail: older checkpoints may be of what was lost
	Unsigned *Event         `json:"unsigned,omitempty"` // the first event behind all checkpoints, where it should have been signed long ago
	Unlisted []string       `json:"unlisted,omitempty"` // files that lie where an archive's segments do, and are none of it: they were not read
	Finding  *Finding       `json:"finding,omitempty"`  // what is wrong, first things first; nil: nothing
}

const (
	// blockEvents is how many events are hashed at a time: a tile's.
	blockEvents = TileWidth

	// mostHeld is how many bytes of events a block holds. Those that come on top are hashed as they are read: an archive
	// may be small and unpack to events of many megabytes, and whose it is, nobody knows yet.
	mostHeld = 1 << 20
)

// block is a run of events on its way through the verifier. Blocks are used again.
type block struct {
	first   uint64         // index of the first of them
	events  []event.Stored // without position: its leaf is there already
	held    int            // bytes
	leaves  [blockEvents]Hash
	perfect bool // root is the root of all
	root    Hash
	hashed  chan struct{}
}

// Verify holds a log, read from its beginning, against evidence. It answers what it found; its error says that the log
// could not be read on, and the result then tells of what was read. Events are hashed on all processors, and nothing is allocated
// for one; their bytes must stay as they are after they were yielded. If something is wrong and there are tiles, the log is read
// a second time.
func Verify(ctx context.Context, events iter.Seq2[event.Stored, error], evidence Evidence) (Result, error) {
	v := newVerifier(evidence)
	err := v.read(ctx, events)
	r := Result{Events: v.order.count, Last: v.order.last.Position, Root: v.tree.Root(), Agreed: v.agreed, Trusted: v.trusted, Proven: v.led[SignedByKey], Restores: v.order.restores}
	r.Finding = v.finding(err == nil)
	if r.Finding != nil && evidence.Tiles != nil {
		if exact := v.locate(ctx, events, r.Finding.Checkpoint); exact != nil {
			r.Finding = exact
		}
	}
	return r, err
}

type verifier struct {
	Evidence

	kept      []Kept          // by size
	strongest Trust           // of them
	inside    map[uint64]bool // blocks in which a checkpoint ends before the block does, by their first index
	order     order

	// What belongs to the goroutine that joins the blocks.
	tree    Tree
	next    int // of kept
	agreed  int
	trusted int
	led     [Doubtful + 1]uint64 // how many events are as checkpoints of so much trust, or more, have them
	refuted *Kept                // that disagrees
	hint    string               // of what a lesser one says
	failed  atomic.Bool
}

func newVerifier(e Evidence) *verifier {
	v := &verifier{Evidence: e, kept: slices.Clone(e.Kept), strongest: Doubtful, inside: map[uint64]bool{}}
	slices.SortStableFunc(v.kept, func(a, b Kept) int { return cmp.Compare(a.Size, b.Size) })
	expected := uint64(0)
	if len(v.kept) > 0 {
		expected = v.kept[len(v.kept)-1].Size
	}
	for _, k := range v.kept {
		v.strongest = min(v.strongest, k.Trust)
		if k.Size%blockEvents != 0 {
			v.inside[k.Size/blockEvents*blockEvents] = true
		}
	}
	v.order = newOrder(v.dense(), expected)
	return v
}

// dense returns how many of the first positions have no gap.
func (v *verifier) dense() (n uint64) {
	if !v.Sparse {
		return math.MaxUint64
	}
	for _, k := range v.kept {
		if k.Trust == v.strongest && k.Trust < Doubtful && uint64(k.Position) == k.Size {
			n = k.Size
		}
	}
	return n
}

// read reads the log to its end and joins what was hashed.
func (v *verifier) read(ctx context.Context, events iter.Seq2[event.Stored, error]) error {
	workers := max(1, runtime.GOMAXPROCS(0)-1) // one is busy with reading
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
		v.check() // of an empty log
		for b := range queue {
			<-b.hashed
			v.join(b)
			clear(b.events)
			free <- b
		}
	})
	err := v.feed(ctx, ahead(events), func() *block { return <-free }, func(b *block) { work <- b; queue <- b })
	close(work)
	close(queue)
	running.Wait()
	return err
}

// feed reads events into blocks, and holds their order against itself.
func (v *verifier) feed(ctx context.Context, batches iter.Seq2[[]event.Stored, error], free func() *block, send func(*block)) error {
	var h Hasher
	begin := func() *block {
		b := free()
		b.first, b.events, b.held = v.order.count, b.events[:0], 0
		return b
	}
	b := begin()
reading:
	for events, err := range batches {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			send(b)
			return err
		}
		v.order.expect(events)
		for i := range events {
			if !v.order.add(&events[i]) {
				break reading
			}
			if b.add(&events[i], &h); len(b.events) == blockEvents {
				send(b)
				if v.Progress != nil {
					v.Progress(v.order.count)
				}
				b = begin()
			}
		}
	}
	send(b)
	if v.Progress != nil {
		v.Progress(v.order.count)
	}
	return nil
}

// add takes an event, or where there is no more room its leaf.
func (b *block) add(e *event.Stored, h *Hasher) {
	if n := sizeOf(e); b.held+n <= mostHeld {
		b.held += n
		b.events = append(b.events, *e)
		return
	}
	b.leaves[len(b.events)] = h.Leaf(*e)
	b.events = append(b.events, event.Stored{})
}

// sizeOf is how many bytes an event holds.
func sizeOf(e *event.Stored) int { return len(e.Stream) + len(e.Type) + len(e.Meta) + len(e.Data) }

// hash hashes the leaves, and what is above them if no checkpoint ends among them.
func (b *block) hash(h *Hasher, checkpointInside bool) {
	for i := range b.events {
		if b.events[i].Position > 0 {
			b.leaves[i] = h.Leaf(b.events[i])
		}
	}
	if b.perfect = len(b.events) == blockEvents && !checkpointInside; b.perfect {
		b.root = perfectRoot(b.leaves[:])
	}
}

// join appends a block to the tree and holds the checkpoints that end in it against it.
func (v *verifier) join(b *block) {
	if v.failed.Load() {
		return
	}
	if b.perfect {
		v.tree.appendPerfect(TileHeight, b.root, nil)
		v.check()
		return
	}
	for _, leaf := range b.leaves[:len(b.events)] {
		v.tree.Append(leaf)
		if v.check(); v.failed.Load() {
			return
		}
	}
}

// check holds the checkpoints of the tree's size against it.
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

func (v *verifier) agree(k *Kept) {
	v.agreed++
	if k.Trust < Doubtful {
		v.trusted++
	}
	for trust := k.Trust; trust <= Doubtful; trust++ {
		v.led[trust] = k.Size
	}
}

// refute notes a checkpoint that disagrees. The first of those that are trusted most counts; of the others the first is a
// hint. One that was itself refuted by a greater word, which agrees with more of the log, does not count any more.
func (v *verifier) refute(k *Kept) {
	switch {
	case v.refuted == nil || v.overruled():
		v.refuted = k
	case k.Trust < v.refuted.Trust:
		narrower := v.refuted.Size < k.Size || v.led[v.refuted.Trust] > v.led[k.Trust]
		if v.hint == "" && narrower && v.refuted.Size > v.led[v.refuted.Trust] {
			v.hint = fmt.Sprintf(" By %s, for which less vouches, it is one of the events %d to %d.", v.refuted, v.led[v.refuted.Trust]+1, v.refuted.Size)
		}
		v.refuted = k
	}
	if k.Trust == v.strongest {
		v.failed.Store(true) // nobody can say more
	}
}

// overruled says whether the log is proven beyond the checkpoint that disagrees.
func (v *verifier) overruled() bool { return v.led[v.refuted.Trust] >= v.refuted.Size }
