//go:build !js

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// showAfter is the delay before progress is shown, and lineEvery the interval of lines without a terminal.
const (
	showAfter    = time.Second
	lineInterval = 5 * time.Second
)

// progress shows the progress on standard error: as a bar on a terminal, otherwise as lines.
type progress struct {
	total uint64
	tty   bool
	began time.Time
	last  time.Time

	what string
	bars *mpb.Progress // nil until a bar is shown
	bar  *mpb.Bar
}

func newProgress(total uint64) *progress {
	now := time.Now()
	return &progress{total: total, tty: term.IsTerminal(int(os.Stderr.Fd())), began: now, last: now}
}

// show reports that events are done of what.
func (p *progress) show(what string, events uint64) {
	if p.what != what {
		p.end()
		p.what, p.began = what, time.Now()
	}
	now := time.Now()
	switch {
	case now.Sub(p.began) < showAfter || p.total == 0:
	case !p.tty:
		if now.Sub(p.last) >= lineInterval {
			p.last = now
			fmt.Fprintf(os.Stderr, "%s: %d of %d events\n", what, events, p.total)
		}
	default:
		if p.bar == nil {
			p.bars = mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(100))
			p.bar = p.bars.AddBar(int64(p.total), mpb.BarRemoveOnComplete(),
				mpb.PrependDecorators(decor.Name(what, decor.WCSyncSpaceR), decor.CountersNoUnit("%d / %d", decor.WCSyncSpace)),
				mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.AverageSpeed(0, "%.0f events/s", decor.WCSyncSpace),
					decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))
		}
		p.bar.SetCurrent(int64(events))
	}
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
		p.bar = nil
	}
}
