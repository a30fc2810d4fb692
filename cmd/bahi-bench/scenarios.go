package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"

	"github.com/alecthomas/kong"
)

// scenario is a line of the table of scenarios.
type scenario struct {
	name, of string
	run      func(*benchmark, context.Context) error
}

// scenarios are in the order in which they run.
var scenarios = []scenario{
	{"store", "appends to the log", (*benchmark).appends},
	{"post", "rows, one a request", onServer((*benchmark).posts)},
	{"bulk", "rows, 100 a request", onServer((*benchmark).bulks)},
	{"beside", "rows with an Idempotency-Key, beside a lock and beside bulks", onServer((*benchmark).disturbed)},
	{"handwritten", "rows, balances and pages beside a hand-written ledger", onServer((*benchmark).handWritten)},
	{"bytes", "bytes of a row in tables and in the WAL", onServer((*benchmark).bytes)},
	{"lag", "lag of the books at 512 clients", onServer((*benchmark).lag)},
	{"idle", "memory and processor of a server without requests", onServer((*benchmark).idle)},
	{"nodes", "two nodes on one database", onServer((*benchmark).nodes)},
	{"journal", "a journal in the EventStoreDB that EVENTSTORE_TEST_URL names, or in a gateway", onServer((*benchmark).journal)},
	{"rebuild", "rebuilds of the books", (*benchmark).rebuilds},
	{"register", "registrations", onServer((*benchmark).registrations)},
	{"enquiries", "public enquiries", onServer((*benchmark).enquiries)},
	{"import", "imports of a catalog", onServer((*benchmark).catalog)},
	{"contacts", "imports of contacts, and rows of another workspace beside them", onServer((*benchmark).contacts)},
	{"send", "texts sent and messages that come in", onServer((*benchmark).messages)},
}

// scenarioNames returns the names of scenarios for the command line's help and checks.
func scenarioNames() kong.Vars {
	var names, about []string
	for _, s := range scenarios {
		names, about = append(names, s.name), append(about, s.name+": "+s.of)
	}
	return kong.Vars{"scenarios": strings.Join(names, ","), "about": strings.Join(about, "; ")}
}

// profiled runs a scenario and writes the CPU profile of this process, which has the server in it.
func profiled(path string, run func() error) error {
	file, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // pprof reports an incomplete profile
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return run()
}
