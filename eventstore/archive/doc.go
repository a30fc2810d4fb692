// Package archive is the log as a folder of files that need no database and no Bahi to be read: compressed
// text, a line an event, and a manifest with what the text must hash to. docs/archive-format.md describes
// it for a stranger.
//
// A line has one form, to the byte, so that the same log gives the same text, in every program and at any time.
// A dump of the database was turned down: only Postgres reads it, and two dumps of one log need not be equal.
package archive
