// Package projections computes tables for reading from the log. They can be dropped and rebuilt at any time.
//
// A projection declares its name, its version, the DDL of its own schema, and a handler for each event type. The runner sends batches of
// events through a Watermill router. It writes the results in one transaction with the new position, so each event takes effect exactly
// once, despite crashes. These transactions do not wait for the disk: after a crash, a projection continues at its stored position.
//
// Each generation of a projection's tables has its own schema, and a row of projection.generation names the live one. Tables are not
// renamed instead, because a reader in a REPEATABLE READ transaction would find no rows.
//
// Watermill passes batches to handlers and isolates handlers from each other. It determines neither order nor positions. Its own Postgres
// subscriber is not used, because it skips events that commit late.
package projections
