// Package tidy holds the rules of this repository that a program can check; the checks are its tests. Each check has a test of its own
// that gives it a bad sample: a check that finds nothing anywhere is not one.
//
// A linter's plug-in was turned down: it needs a build of its own, and a rule here is ten lines that anybody may read.
package tidy
