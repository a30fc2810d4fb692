package main

import (
	"context"
	"fmt"

	"bahi/domain/event"
	"bahi/domain/ledger/replay"
	"bahi/eventstore/archive"
)

// booksResult is the result of a replay, and of the comparison of a text with it.
type booksResult struct {
	Verdict    string             `json:"verdict,omitempty"` // result of a comparison
	Position   event.Position     `json:"position"`
	Difference *replay.Difference `json:"difference,omitempty"`
	Sentences  []string           `json:"sentences"`       // the comparison, broken rules, and events that cannot be read
	Books      []string           `json:"books,omitempty"` // the lines of the text, without a comparison
}

// The verdicts of a comparison.
const (
	booksEqual     = "equal"
	booksDifferent = "different"
	booksUndecided = "undecided"
)

// replayed replays an archive up to a position; 0: all of it.
func replayed(ctx context.Context, a *archive.Archive, until event.Position, progress func(events int64)) (*replay.Books, error) {
	b := replay.New(until)
	for e, err := range a.Events(ctx) {
		if err != nil {
			return nil, err
		}
		if !b.Add(e) {
			break
		}
		if e.Position%4096 == 0 {
			progress(int64(e.Position))
		}
	}
	return b, nil
}

// resultOf returns the result of a replay, and compares the books with a text unless it is nil.
func resultOf(b *replay.Books, text *replay.Text) (r booksResult, err error) {
	r.Position = b.Position
	switch {
	case text == nil:
	case b.Position < text.Position:
		r.Verdict = booksUndecided
		r.say("CANNOT TELL. The archive ends at position %d, and the file has the books at position %d.", b.Position, text.Position)
	default:
		if r.Difference, err = b.Compare(text); err != nil {
			return r, err
		}
		switch {
		case r.Difference != nil:
			r.Verdict = booksDifferent
			r.say("DIFFERENT. The first difference of the file from the archive: %s.", r.Difference)
		case len(b.Doubts) > 0:
			r.Verdict = booksUndecided
			r.say("CANNOT TELL. All other accounts of the file are equal to the archive's at position %d.", text.Position)
		default:
			r.Verdict = booksEqual
			r.say("EQUAL. The books of the file are those of the archive at position %d.", text.Position)
		}
	}
	r.Sentences = append(r.Sentences, b.Findings()...)
	return r, nil
}

func (r *booksResult) say(format string, args ...any) {
	r.Sentences = append(r.Sentences, fmt.Sprintf(format, args...))
}
