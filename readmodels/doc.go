// Package readmodels reads the tables of projections. A view is an SQL statement and the rows that it returns.
//
// The SQL names a table as projection.table (books.row_version), and [Reader.From] lists the projections; the [Reader] replaces each by the
// schema of its live generation. Each read is one batch in one snapshot, which also has the positions of the projections and the log's
// head. So a response never mixes generations, and what it reports about its own freshness is true. [At] says how fresh a read must be.
//
// A read waits until the tables contain every write acknowledged before it, on every node. If a projection is parked or slow, the wait
// is bounded and the response is marked stale. Every view takes the caller's workspace, and a test checks the SQL of all views for it.
//
// Reads of many callers are not gathered into one statement, and answers are not kept: by the benchmark, neither made a mix of reads and
// writes faster.
package readmodels
