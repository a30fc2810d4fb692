// Package readmodels reads the tables of projections. A view is an SQL statement and the rows that it returns.
//
// The SQL names a table as projection.table (books.row_version). The [Reader] replaces each projection that [Reader.From] lists by the
// schema of its live generation. Each read is one batch in one snapshot, which also has the positions of the projections and the log's
// head. So a response never mixes generations, and reports its freshness correctly. [At] has the freshness that a read requires.
//
// A read waits until the tables contain every write that any node acknowledged before the read. The wait is bounded. After it, as when a
// projection is parked or slow, the response is marked stale. Every view takes the caller's workspace, and a test checks the SQL of all
// views for it.
//
// Reads of many callers are not combined into one statement, and responses are not cached: in the benchmark, neither made a mix of reads
// and writes faster.
package readmodels
