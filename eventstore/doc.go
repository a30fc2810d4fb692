// Package eventstore defines the append-only event log. Every write of the system is an append, and every table for reading is computed
// from the log. All implementations pass the suite in postgres/suite_test.go.
//
// An append is a [Transaction]: it writes to any number of streams, all or nothing, and checks the revisions of others. So a decision's
// inputs are unchanged when its events are stored. With one append per stream and follow-up events for the others, readers would see half
// of a change.
//
// Positions are dense and assigned in commit order, so a subscriber that has processed a position has seen every event before it. Times
// never decrease with the position, so a time names a prefix of the log.
package eventstore
