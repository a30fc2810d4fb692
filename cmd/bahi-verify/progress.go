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

// patience is how long it may take before progress is shown, and how often a line tells of it where there is no terminal.
const (
	patience  = time.Second
	lineEvery = 5 * time.Second
)

// progress shows how far it has come: a bar on a terminal, else lines, on standard error.
type progress struct {
	total uint64
	tty   bool
	began time.Time
	last  time.Time

	what string
	bars *mpb.Progress // nil until something is shown
	bar  *mpb.Bar
}

func newProgress(total uint64) *progress {
	now := time.Now()
	return &progress{total: total, tty: term.IsTerminal(int(os.Stderr.Fd())), began: now, last: now}
}

// show tells that so many events are done of what is being done.
func (p *progress) show(what string, events uint64) {
	if p.what != what {
		p.end()
		p.what, p.began = what, time.Now()
	}
	now := time.Now()
	switch {
	case now.Sub(p.began) < patience || p.total == 0:
	case !p.tty:
		if now.Sub(p.last) >= lineEvery {
			p.last = now
			fmt.Fprintf(os.Stderr, "%s: %d of %d events\n", what, events, p.total)
		}
	default:
		if p.bar == nil {
			p.bars = mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(100))
			p.bar = p.bars.AddBar(int64(p.total), mpb.BarRemoveOnComplete(),
				mpb.PrependDecorators(decor.Name(what, decor.WCSyncSpaceR), decor.CountersNoUnit("%d / %d", decor.WCSyncSpace)),
				mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.AverageSpeed(0, "%.0f events/s", decor.WCSyncSpace), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))
		}
		p.bar.SetCurrent(int64(events))
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
		p.bar = nil
	}
}
