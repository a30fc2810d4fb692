package app

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent lets the heap grow further between collections than Go's default: the heap is small, and collections took a tenth of the
	// total time.
	gcPercent = 300

	// gcLeast is Go's default, which applies to a large heap.
	gcLeast = 100

	// gcGrowth is the maximum growth of a heap between two collections at more than Go's default. Without it, thousands of readers that
	// hold 40 kB each would take four times as much.
	gcGrowth = 96 << 20
)

// TuneCollector sets how often this process collects garbage, and adapts that to its memory in use, unless GOGC sets it.
func TuneCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	now := gcLeast
	go func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for range time.Tick(time.Second) {
			metrics.Read(live)
			if percent := GCPercentOf(live[0].Value.Uint64()); percent != now {
				now = percent
				debug.SetGCPercent(now)
			}
		}
	}()
}

// GCPercentOf returns the growth, in percent of the memory in use, after which to collect. It has steps of
// 25, because each change stops the process for a moment.
func GCPercentOf(live uint64) int {
	const step = 25
	return max(gcLeast, min(gcPercent, int(gcGrowth*100/max(live, 1))/step*step))
}
