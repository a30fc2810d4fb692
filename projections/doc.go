// Package projections folds the log into tables for reading, which can be dropped and rebuilt.
//
// A projection declares its name, its version, the DDL of its own schema, and how it folds events. The runner gives it batches of
// events, through a Watermill router, and writes the result in one transaction with the new position. So each event takes effect
// exactly once, despite crashes. Those transactions do not wait for the disk: the log is the source of truth, and after a crash a
// projection continues from its own position.
//
// Each generation of a projection's tables has its own schema, and a row of projection.generation says which one is live. Tables are
// never renamed under a reader: that was tried first, and a reader in a REPEATABLE READ transaction then saw no rows.
//
// Watermill carries batches to handlers and isolates handlers from each other. It decides neither order nor positions; its own Postgres
// subscriber was turned down because it skips events that commit late.
package projections
