package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// patience is how long something may take before its progress is shown.
const patience = time.Second

// progress shows how far a long piece of work has come: a bar on a terminal, else a line every few
// seconds.
type progress struct {
	name  string
	unit  string
	began time.Time
	last  time.Time
	bar   *progressbar.ProgressBar
	out   io.Writer
}

const lineEvery = 5 * time.Second

func newProgress(name, unit string) *progress {
	return &progress{name: name, unit: unit, began: time.Now(), last: time.Now(), out: os.Stderr}
}

// show tells that done of total is done.
func (p *progress) show(done, total int64) {
	now := time.Now()
	if now.Sub(p.began) < patience {
		return
	}
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		if now.Sub(p.last) >= lineEvery && total > 0 {
			p.last = now
			rate := float64(done) / now.Sub(p.began).Seconds()
			fmt.Fprintf(p.out, "%s: %d of %d %s (%d %%), %.0f a second\n", p.name, done, total, p.unit, 100*done/total, rate)
		}
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetDescription(p.name), progressbar.OptionSetWriter(p.out), progressbar.OptionShowCount(),
			progressbar.OptionShowIts(), progressbar.OptionSetItsString(p.unit), progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		)
	}
	p.bar.ChangeMax64(total)
	_ = p.bar.Set64(done)
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
