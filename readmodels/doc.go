// Package readmodels answers questions from the projections' tables. A view is an SQL statement and
// the row that it answers.
//
// The SQL names a table as projection.table (books.row_version); the reader puts the schema of the
// generation in its place that is live. Each read runs in one snapshot together with the question how
// far the projections are and where the log's head is. So an answer never mixes generations, and what
// it says of its own freshness is true (DESIGN.md, Fresh reads).
package readmodels
