//go:build !js

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"bahi/domain/event"
	"bahi/domain/ledger/replay"
	"bahi/domain/unit"
	"bahi/internal/cli/progress"
)

type booksCommand struct {
	Archive string         `arg:"" help:"The archive: a folder, a zip or a tar file."`
	AsOf    string         `name:"as-of" placeholder:"DAY" help:"Only rows dated up to this day."`
	KnownAt event.Position `placeholder:"POSITION" help:"Only what was recorded up to this position of the log."`
	Compare string         `placeholder:"FILE" type:"existingfile" help:"Compare with what bahi books export wrote, of its day and position."`
	Rows    bool           `help:"Print each row too, as bahi books export does."`
	JSON    bool           `name:"json" help:"With --compare, print the result in JSON."`
}

// comparison is the result of a comparison in JSON.
type comparison struct {
	Verdict    string             `json:"verdict"` // equal, different, or undecided
	Position   event.Position     `json:"position"`
	Difference *replay.Difference `json:"difference,omitempty"`
	Findings   []string           `json:"findings"` // broken rules, and events that cannot be read
}

// Run prints the books, or the result of their comparison.
func (c booksCommand) Run(ctx context.Context, status *int) error {
	debug.SetGCPercent(30) // the rows have no pointers, so that a collection costs little
	h := replay.Header{KnownAt: c.KnownAt}
	if c.AsOf != "" {
		h.AsOf = new(unit.Date)
		if err := h.AsOf.UnmarshalText([]byte(c.AsOf)); err != nil {
			return fmt.Errorf("--as-of: %w", err)
		}
	}
	until := c.KnownAt
	var text *replay.Text
	if c.Compare != "" {
		if c.AsOf != "" || c.KnownAt != 0 || c.Rows {
			return errors.New("--compare reads the day and the position from its file: leave out --as-of, --known-at and --rows")
		}
		f, err := os.Open(c.Compare)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // read-only
		if text, err = replay.ReadText(f); err != nil {
			return fmt.Errorf("%s: %w", c.Compare, err)
		}
		until = text.Position
	}
	b, err := c.read(ctx, until)
	if err != nil {
		return err
	}
	switch {
	case len(b.Breaches) > 0:
		*status = statusTampered
	case len(b.Doubts) > 0:
		*status = statusUndecided
	default:
		*status = statusVerified
	}
	if text != nil {
		return c.compare(b, text, status)
	}
	for _, sentence := range b.Findings() {
		fmt.Fprintln(os.Stderr, printable(sentence))
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	h.Position = b.Position
	if err := b.Write(h, func(l replay.Line) error { return l.Print(out, c.Rows) }); err != nil {
		return err
	}
	return out.Flush()
}

// read replays the archive up to a position.
func (c booksCommand) read(ctx context.Context, until event.Position) (*replay.Books, error) {
	a, err := openArchive(c.Archive)
	if err != nil {
		return nil, err
	}
	bar := progress.NewBar(os.Stderr, "replaying", "events")
	defer bar.End()
	b := replay.New(until)
	for e, err := range a.Events(ctx) {
		if err != nil {
			return nil, err
		}
		if !b.Add(e) {
			break
		}
		if e.Position%4096 == 0 {
			bar.Show(int64(e.Position), int64(a.Manifest.Events))
		}
	}
	return b, nil
}

// compare prints the first difference of a text from the books.
func (c booksCommand) compare(b *replay.Books, text *replay.Text, status *int) error {
	r := comparison{Position: b.Position, Findings: b.Findings()}
	said := ""
	if b.Position < text.Position {
		*status, r.Verdict = statusUndecided, "undecided"
		said = fmt.Sprintf("CANNOT TELL. The archive ends at position %d, and the file has the books at position %d.", b.Position, text.Position)
	} else {
		var err error
		if r.Difference, err = b.Compare(text); err != nil {
			return err
		}
		switch {
		case r.Difference != nil:
			*status, r.Verdict = statusTampered, "different"
			said = fmt.Sprintf("DIFFERENT. The first difference of the file from the archive is %s.", r.Difference)
		case len(b.Doubts) > 0:
			r.Verdict = "undecided"
			said = fmt.Sprintf("CANNOT TELL. All other accounts of the file are equal to the archive's at position %d.", text.Position)
		default:
			r.Verdict = "equal"
			said = fmt.Sprintf("EQUAL. The books of the file are those of the archive at position %d.", text.Position)
		}
	}
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	fmt.Println(printable(said))
	for _, sentence := range r.Findings {
		fmt.Println(printable(sentence))
	}
	return nil
}
