package tlog

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"bahi/domain/event"
)

// Kind is the way in which a log was changed.
type Kind string

// The kinds of findings.
const (
	Changed   Kind = "changed"   // an event is not the signed one; a second copy shows what differs
	Reordered Kind = "reordered" // events are in another order
	Removed   Kind = "removed"   // events between others are missing
	Inserted  Kind = "inserted"  // events were added between others
	Truncated Kind = "truncated" // the log ends too early
	Rewritten Kind = "rewritten" // any of the above, in a range that the evidence does not narrow down
)

// Event identifies an event for people.
type Event struct {
	Position event.Position `json:"position"`
	Stream   string         `json:"stream"`
	Revision int64          `json:"revision"`
	ID       uuid.UUID      `json:"id"`
	Type     string         `json:"type"`
	At       time.Time      `json:"recorded_at"`
}

// Of returns the identification of a stored event.
func Of(e event.Stored) Event {
	return Event{Position: e.Position, Stream: e.Stream, Revision: e.Revision, ID: e.ID, Type: e.Type, At: e.At}
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s@%d (id %s)", shown(e.Type), shown(e.Stream), e.Revision, e.ID)
}

// shown quotes text from a log on one line: a forger's text must not look like another sentence.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// Finding is the first fault of a log. Events are numbered from 1; the number is the position if positions are dense. First and Last are 0
// if every event is good but a signed checkpoint is bad.
type Finding struct {
	Kind       Kind                `json:"kind"`
	Proven     uint64              `json:"proven"`               // number of leading events that are proven
	First      uint64              `json:"first_bad"`            // number of the earliest possible first bad event …
	Last       uint64              `json:"first_bad_at_latest"`  // … and of the latest
	Event      *Event              `json:"event,omitempty"`      // the log's event there, if it was read
	Checkpoint *RetainedCheckpoint `json:"checkpoint,omitempty"` // the checkpoint that contradicts the log
	Reason     string              `json:"why"`                  // a sentence
}

func (f Finding) String() string {
	if f.Last == 0 {
		return f.Reason
	}
	where := fmt.Sprintf("The first bad event is event %d", f.First)
	if f.First < f.Last {
		where = fmt.Sprintf("The first bad event is one of the events %d to %d", f.First, f.Last)
	}
	if f.Event != nil {
		where += ": " + f.Event.String()
	}
	if f.First > f.Proven+1 {
		where += fmt.Sprintf(". Earlier ones may be bad too: no checkpoint confirms the events %d to %d", f.Proven+1, f.First-1)
	}
	return where + ". " + f.Reason
}

// finding returns the fault of the log that was read, to its end (toTheEnd) or to an unreadable event.
func (v *verifier) finding(toTheEnd bool) *Finding {
	f := v.first(toTheEnd)
	if f != nil && v.refuted != nil {
		f.Reason += v.contradiction()
	}
	return f
}

// contradiction returns a sentence about a checkpoint that contradicts the refuting one.
func (v *verifier) contradiction() string {
	for _, k := range v.kept {
		if k.Size == v.refuted.Size && k.Root != v.refuted.Root {
			return fmt.Sprintf(" No log leads to both it and %s: two histories were signed. Unless the log continued after a restore that lost "+
				"its tail, its operator must explain this.", k)
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
			Reason: fmt.Sprintf("The log does not lead to %s%s.%s", v.refuted, v.upTo(v.refuted), v.hint),
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
			Reason: fmt.Sprintf("The log has %d events, and had %d by %s%s. If no earlier event was changed, those from %d on were removed.",
				n, k.Size, k, v.upTo(k), n+1),
		})
	}
	proven := v.atMost(v.before(), k)
	if clue := v.order.clue(func(c Finding) bool { return c.Last > proven }); clue != nil {
		clue.Proven, clue.First = proven, max(clue.First, proven+1)
		return clue
	}
	return nil
}

// atMost limits proven to the size of an unreached checkpoint, if that is trusted more than those that proved it.
func (v *verifier) atMost(proven uint64, unreached *RetainedCheckpoint) uint64 {
	if unreached == nil {
		return proven
	}
	return min(proven, v.led[unreached.Trust])
}

// narrowed returns the finding, narrowed down by faults of the order.
func (v *verifier) narrowed(f *Finding) *Finding {
	if clue := v.order.clue(func(c Finding) bool { return c.First <= f.Last && c.Last >= f.First }); clue != nil {
		f.Kind, f.First, f.Last, f.Event = clue.Kind, max(f.First, clue.First), min(f.Last, clue.Last), clue.Event
		f.Reason = clue.Reason + " " + f.Reason
	}
	return f
}

// unreached returns the most trusted checkpoint that is larger than the log.
func (v *verifier) unreached() (k *RetainedCheckpoint) {
	for i := v.next; i < len(v.kept); i++ {
		if k == nil || v.kept[i].Trust < k.Trust {
			k = &v.kept[i]
		}
	}
	return k
}

// before returns the number of events that trusted checkpoints cover. Without a trusted checkpoint, it counts what any checkpoint covers.
func (v *verifier) before() uint64 {
	if slices.ContainsFunc(v.kept, func(k RetainedCheckpoint) bool { return k.Trust < Untrusted }) {
		return v.led[SignedByKey]
	}
	return v.led[Untrusted]
}

// upTo returns a clause for a sentence: how many first events are confirmed by checkpoints of this trust or more.
func (v *verifier) upTo(k *RetainedCheckpoint) string {
	if v.led[k.Trust] == 0 {
		return ""
	}
	return fmt.Sprintf(", while its first %s as they were signed", events(v.led[k.Trust], "is", "are"))
}
