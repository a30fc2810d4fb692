// Package progress shows progress and times on a terminal.
package progress

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

func Moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// patience is the delay before progress is shown.
const patience = time.Second

// lineInterval is the interval of progress lines without a terminal.
const lineInterval = 5 * time.Second

// barWidth is the width of a bar with its texts.
const barWidth = 110

// Bars shows the progress of several tasks: a bar for each on a terminal, otherwise lines.
type Bars struct {
	unit  string
	began time.Time
	tty   bool
	out   io.Writer

	mu   sync.Mutex
	bars *mpb.Progress // nil until the first bar
	all  map[string]*worked
}

// worked is one task.
type worked struct {
	name  string
	began time.Time
	at    int64     // done when it was first shown
	last  time.Time // time of the last line
	then  time.Duration
	bar   *mpb.Bar
}

// NewBars returns bars on out (nil: standard error). They are shown after a second.
func NewBars(out io.Writer, unit string) *Bars {
	if out == nil {
		out = os.Stderr
	}
	file, isFile := out.(*os.File)
	return &Bars{unit: unit, began: time.Now(), tty: isFile && term.IsTerminal(int(file.Fd())), out: out, all: map[string]*worked{}}
}

// Show updates the task with a key: done of total is done. name is its current name. The parameter then is the estimated duration of the
// work after the task.
func (p *Bars) Show(key, name string, done, total int64, then time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	w := p.all[key]
	if w == nil {
		w = &worked{began: now, at: done, last: now}
		p.all[key] = w
	}
	w.name, w.then = name, then
	switch {
	case now.Sub(p.began) < patience || total <= 0:
	case p.tty:
		if w.bar == nil {
			w.bar = p.newBar(w, total)
		}
		w.bar.SetTotal(max(total, done), false)
		w.bar.SetCurrent(done)
	case now.Sub(w.last) >= lineInterval:
		w.last = now
		fmt.Fprintf(p.out, "%s: %d of %d %s (%d %%), %.0f a second\n", name, done, total, p.unit, 100*done/total, w.rate(done, now))
	}
}

// Say prints a line above the bars.
func (p *Bars) Say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bars != nil {
		_, _ = p.bars.Write([]byte(line + "\n")) // a closed terminal is no failure
		return
	}
	fmt.Fprintln(p.out, line)
}

// rate returns the work per second since the task was first shown.
func (w *worked) rate(done int64, now time.Time) float64 {
	if took := now.Sub(w.began).Seconds(); took > 0 {
		return float64(done-w.at) / took
	}
	return 0
}

func (p *Bars) newBar(w *worked, total int64) *mpb.Bar {
	if p.bars == nil {
		p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(barWidth))
	}
	return p.bars.AddBar(total, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return w.name
		}, decor.WCSyncSpaceR), decor.CountersNoUnit("%d / %d", decor.WCSyncSpace)),
		mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.Any(func(s decor.Statistics) string {
			now := time.Now()
			rate := w.rate(s.Current, now)
			left := "?"
			if rate > 0 {
				p.mu.Lock()
				then := w.then
				p.mu.Unlock()
				left = (time.Duration(float64(s.Total-s.Current)/rate*float64(time.Second)) + then).Round(time.Second).String()
			}
			return fmt.Sprintf("%.0f %s/s, %s left", rate, p.unit, left)
		}, decor.WCSyncSpace)),
	)
}

// Done removes the bar of a task.
func (p *Bars) Done(key string) {
	p.mu.Lock()
	var bar *mpb.Bar
	if w := p.all[key]; w != nil {
		bar, w.bar = w.bar, nil
	}
	p.mu.Unlock()
	if bar != nil {
		bar.Abort(true)
	}
}

// End removes all bars.
func (p *Bars) End() {
	p.mu.Lock()
	keys := slices.Collect(maps.Keys(p.all))
	p.mu.Unlock()
	for _, key := range keys {
		p.Done(key)
	}
	if p.bars != nil {
		p.bars.Wait()
	}
}

// Bar shows the progress of one task.
type Bar struct {
	name string
	all  *Bars
}

// NewBar is [NewBars] for one task.
func NewBar(out io.Writer, name, unit string) *Bar {
	return &Bar{name: name, all: NewBars(out, unit)}
}

// Show reports that done of total is done.
func (p *Bar) Show(done, total int64) { p.all.Show(p.name, p.name, done, total, 0) }

// End removes the bar.
func (p *Bar) End() { p.all.End() }
