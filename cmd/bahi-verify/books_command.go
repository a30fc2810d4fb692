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
	"strings"

	"bahi/domain/event"
	"bahi/domain/ledger/replay"
	"bahi/domain/unit"
	"bahi/internal/cli/progress"
)

type booksCommand struct {
	Archive string         `arg:"" help:"The archive: its folder, or a zip or tar file of it."`
	AsOf    string         `name:"as-of" placeholder:"DAY" help:"Only rows dated up to this day."`
	KnownAt event.Position `placeholder:"POSITION" help:"Only events up to this position of the log."`
	Compare string         `placeholder:"FILE" type:"existingfile" help:"Compare with a file of bahi books export, at its day and position."`
	Rows    bool           `help:"Print each row too, as bahi books export does."`
	JSON    bool           `name:"json" help:"Print the result in JSON, with the lines of the books unless they are compared."`
}

// Run prints the books, or the result of their comparison.
func (c booksCommand) Run(ctx context.Context, status *int) error {
	debug.SetGCPercent(30) // the rows have no pointers, so that a collection costs little
	h := replay.Header{KnownAt: c.KnownAt}
	if c.AsOf != "" {
		day, err := unit.ParseDate(c.AsOf)
		if err != nil {
			return fmt.Errorf("--as-of: %w", err)
		}
		h.AsOf = &day
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
	a, err := openArchive(c.Archive)
	if err != nil {
		return err
	}
	bar := progress.NewBar(os.Stderr, "replaying", "events")
	b, err := replayed(ctx, a, until, func(events int64) { bar.Show(events, int64(a.Manifest.Events)) })
	bar.End()
	if err != nil {
		return err
	}
	r, err := resultOf(b, text)
	if err != nil {
		return err
	}
	switch {
	case len(b.Breaches) > 0, r.Verdict == booksDifferent:
		*status = statusTampered
	case len(b.Doubts) > 0, r.Verdict == booksUndecided:
		*status = statusUndecided
	default:
		*status = statusVerified
	}
	h.Position = b.Position
	if c.JSON && text == nil {
		var lines strings.Builder
		if err := b.Write(h, func(l replay.Line) error { return l.Print(&lines, c.Rows) }); err != nil {
			return err
		}
		r.Books = strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n")
	}
	if c.JSON || text != nil {
		return c.print(r)
	}
	for _, sentence := range r.Sentences {
		fmt.Fprintln(os.Stderr, printable(sentence))
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	if err := b.Write(h, func(l replay.Line) error { return l.Print(out, c.Rows) }); err != nil {
		return err
	}
	return out.Flush()
}

func (c booksCommand) print(r booksResult) error {
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for _, sentence := range r.Sentences {
		fmt.Println(printable(sentence))
	}
	return nil
}
