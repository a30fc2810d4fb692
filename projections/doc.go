// Package projections folds the log into tables that are read, and can be thrown away and built
// again.
//
// A projection declares its name, its version, the DDL of its own schema and how it folds events.
// The runner brings it batches of events, through a Watermill router, and writes what they do in one
// transaction with the position that it then is at. So each event takes effect exactly once,
// whatever crashes. Those transactions do not wait for the disk: the log is the truth, and after a
// crash a projection goes on from its own position.
//
// Each generation of a projection's tables has its own schema, and one row of projection.generation
// says which one is read. Nothing is ever renamed under a reader: that was tried first, and a reader
// in a REPEATABLE READ transaction then sees no rows.
//
// Watermill carries batches to handlers and isolates them from one another. It is not the source of
// order or of positions; its own Postgres subscriber was turned down because it skips events that
// commit late.
package projections
