// Package api has the common parts of all HTTP operations. [Handle] registers an operation with an [Op], which states what to check before
// its handler runs: the caller and the permission, the headers, the reading of the body. Every response has a request id, a log position,
// problems in one form, a log line, a metric and a span.
//
// An operation is an [Op] and a function from a typed request to a typed response. Middlewares for each operation were turned down: an
// operation could omit one.
//
// The package uses huma and gorilla/mux. It replaces two features of huma. Huma's validation checks a copy of the body in which numbers are
// floats, and takes the last of two equal keys. [decoder] reads a body exactly, by the same schemas, and names every wrong field. Huma's
// page of the documentation loads scripts from other hosts. Package pages serves it instead.
package api
