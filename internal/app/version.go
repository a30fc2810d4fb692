package app

import (
	"os"
	"runtime/debug"
)

// Version is set by the linker.
var Version = "development"

// gcPercent lets the heap grow further between collections than Go's default: the heap is small, and
// collections took a tenth of the total time.
const gcPercent = 300

// TuneCollector sets how often this process collects garbage, unless GOGC does.
func TuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
