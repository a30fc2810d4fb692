// Package readmodels reads the projections' tables. A view is an SQL statement and the rows that it returns.
//
// The SQL names a table as projection.table (books.row_version), and [Reader.From] lists the projections; the reader puts in their place
// the schemas of the live generations. Each read is one batch in one snapshot: how far the projections are, where the log's head is, and
// the rows. So an answer never mixes generations, and what it says of its own freshness is true (DESIGN.md, Fresh reads). [At] says how
// fresh a read must be.
//
// Reads of many callers are not gathered into one statement, and answers are not kept. Both were measured: without them, a mix of reads and
// writes got faster, and pages of rows that nobody changes slower.
package readmodels
