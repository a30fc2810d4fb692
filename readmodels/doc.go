// Package readmodels reads the tables of projections. A view is an SQL statement and the row that it returns.
//
// The SQL names a table as projection.table (books.row_version); the [Reader] replaces the projection by the schema of its live
// generation. Each read runs in one snapshot, which also has the positions of the projections and the log's head. So a response never mixes
// generations, and what it reports about its own freshness is true.
//
// A read waits until the tables contain every write acknowledged before it, on every node. If a projection is parked or slow, the wait
// is bounded and the response is marked stale. Every view takes the caller's workspace, and a test checks the SQL of all views for it.
package readmodels
