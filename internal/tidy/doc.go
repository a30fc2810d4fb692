// Package tidy has the rules of this repository that a program can check; the checks are its tests. Each check has a test with a bad
// sample: a check that never finds anything is useless.
//
// A linter's plug-in was turned down: it needs a separate build, and a rule here is ten readable lines.
package tidy
