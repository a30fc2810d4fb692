package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// Kind is what was done to a log.
type Kind string

// The kinds of what is found.
const (
	Changed   Kind = "changed"   // an event is not the one that was signed; what of it, a second copy tells
	Reordered Kind = "reordered" // events are in another order
	Removed   Kind = "removed"   // events are missing between others
	Inserted  Kind = "inserted"  // events are there that were not
	Truncated Kind = "truncated" // the log ends too early
	Rewritten Kind = "rewritten" // something of the above, in a run of events that the evidence does not narrow down
)

// Event is what names an event to people.
type Event struct {
	Position event.Position `json:"position"`
	Stream   string         `json:"stream"`
	Revision int64          `json:"revision"`
	ID       uuid.UUID      `json:"id"`
	Type     string         `json:"type"`
	At       time.Time      `json:"recorded_at"`
}

// Of names a stored event.
func Of(e event.Stored) Event {
	return Event{Position: e.Position, Stream: e.Stream, Revision: e.Revision, ID: e.ID, Type: e.Type, At: e.At}
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s@%d (id %s)", shown(e.Type), shown(e.Stream), e.Revision, e.ID)
}

// shown is a text of a log in a sentence for people. It stays on its line: a forger's text must not look like another sentence.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// Finding is the first thing that is wrong with a log. Events are counted from 1, which is their position where
// positions are dense. Both numbers are 0 if no event is wrong, but what was signed is.
type Finding struct {
	Kind       Kind   `json:"kind"`
	Proven     uint64 `json:"proven"`               // the first so many events are right
	First      uint64 `json:"first_bad"`            // the first bad event is this one at the earliest …
	Last       uint64 `json:"first_bad_at_latest"`  // … and this one at the latest
	Event      *Event `json:"event,omitempty"`      // what the log has there, if it was looked at
	Checkpoint *Kept  `json:"checkpoint,omitempty"` // that disagrees
	Why        string `json:"why"`                  // a sentence
}

func (f Finding) String() string {
	if f.Last == 0 {
		return f.Why
	}
	where := fmt.Sprintf("The first bad event is event %d", f.First)
	if f.First < f.Last {
		where = fmt.Sprintf("The first bad event is one of the events %d to %d", f.First, f.Last)
	}
	if f.Event != nil {
		where += ": " + f.Event.String()
	}
	if f.First > f.Proven+1 {
		where += fmt.Sprintf(". It is the first that can be seen: no checkpoint says that events %d to %d are right", f.Proven+1, f.First-1)
	}
	return where + ". " + f.Why
}

// finding says what is wrong, after the log was read: to its end, or up to where it could not be read.
func (v *verifier) finding(toTheEnd bool) *Finding {
	f := v.first(toTheEnd)
	if f != nil && v.refuted != nil {
		f.Why += v.contradiction()
	}
	return f
}

// contradiction tells of a checkpoint that no log can agree with beside the one that is refuted.
func (v *verifier) contradiction() string {
	for _, k := range v.kept {
		if k.Size == v.refuted.Size && k.Root != v.refuted.Root {
			return fmt.Sprintf(" Nor can any log that leads to %s: two histories were signed. Unless the log went on after a restore that lost its tail, its keeper has to explain this.", k)
		}
	}
	return ""
}

func (v *verifier) first(toTheEnd bool) *Finding {
	k := v.unreached()
	if v.refuted != nil {
		led := v.atMost(v.led[v.refuted.Trust], k)
		f := &Finding{
			Kind: Rewritten, Proven: led, First: led + 1, Last: v.refuted.Size, Checkpoint: v.refuted,
			Why: fmt.Sprintf("The log does not lead to %s%s.%s", v.refuted, v.upTo(v.refuted), v.hint),
		}
		if v.overruled() {
			f.First, f.Last = 0, 0
		}
		return v.narrowed(f)
	}
	if k != nil && toTheEnd && !v.order.torn {
		n, led := v.order.count, v.led[k.Trust]
		return v.narrowed(&Finding{
			Kind: Truncated, Proven: led, First: led + 1, Last: n + 1, Checkpoint: k,
			Why: fmt.Sprintf("The log has %d events, and had %d by %s%s. If none before was changed, those from %d on were cut off.", n, k.Size, k, v.upTo(k), n+1),
		})
	}
	proven := v.atMost(v.before(), k)
	if clue := v.order.clue(func(c Finding) bool { return c.Last > proven }); clue != nil {
		clue.Proven, clue.First = proven, max(clue.First, proven+1)
		return clue
	}
	return nil
}

// atMost bounds what is proven by what the checkpoint knows that the log did not come to: a lesser word does not stand for it.
func (v *verifier) atMost(proven uint64, unreached *Kept) uint64 {
	if unreached == nil {
		return proven
	}
	return min(proven, v.led[unreached.Trust])
}

// narrowed is the finding with what the log's order shows of it.
func (v *verifier) narrowed(f *Finding) *Finding {
	if clue := v.order.clue(func(c Finding) bool { return c.First <= f.Last && c.Last >= f.First }); clue != nil {
		f.Kind, f.First, f.Last, f.Event = clue.Kind, max(f.First, clue.First), min(f.Last, clue.Last), clue.Event
		f.Why = clue.Why + " " + f.Why
	}
	return f
}

// unreached is the checkpoint that the log is too short for; of several the one that is trusted most.
func (v *verifier) unreached() (k *Kept) {
	for i := v.next; i < len(v.kept); i++ {
		if k == nil || v.kept[i].Trust < k.Trust {
			k = &v.kept[i]
		}
	}
	return k
}

// before is how many events need not be looked at: those that trusted checkpoints cover, or if there are none, any.
func (v *verifier) before() uint64 {
	if slices.ContainsFunc(v.kept, func(k Kept) bool { return k.Trust < Doubtful }) {
		return v.led[SignedByKey]
	}
	return v.led[Doubtful]
}

// upTo says what is right, as far as whoever made the checkpoint, or is trusted more, knows.
func (v *verifier) upTo(k *Kept) string {
	if v.led[k.Trust] == 0 {
		return ""
	}
	return fmt.Sprintf(", while its first %s as they were signed", events(v.led[k.Trust], "is", "are"))
}
