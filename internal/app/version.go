package app

import (
	"os"
	"runtime/debug"
)

// Version is set by the linker.
var Version = "development"

// gcPercent lets the heap grow further between collections than Go's default: it is small, and
// collecting was a tenth of the time of everything.
const gcPercent = 300

// TuneCollector sets how often this process collects garbage, where GOGC does not.
func TuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
