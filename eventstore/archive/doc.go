// Package archive stores the log as a folder of files that are readable without a database and without Bahi: compressed text, one line
// per event, and a manifest with the hashes of the text. docs/archive-format.md specifies it.
//
// Lines are canonical to the byte: the same log always gives the same text. A database dump would not do: only Postgres reads it, and two
// dumps of one log may differ.
package archive
