// Package archive stores the log as a folder of files that are readable without a database and without Bahi: compressed text, one line
// per event, and a manifest with the hashes of the text. docs/archive-format.md specifies it.
//
<<<<<<< HEAD
// A line has one form, to the byte, so that the same log gives the same text, in every program and at any time.
// A dump of the database was turned down: only Postgres reads it, and two dumps of one log need not be equal.
=======
// Lines are canonical to the byte, so that the same log always gives the same text. A dump of the database was turned down: only Postgres
// reads it, and two dumps of one log may differ.
>>>>>>> c0b3780 (eventstore/gateway, eventstore/archive, migrations: comments and test names in plain English)
package archive
