// Package api has the common parts of all HTTP operations. [Handle] registers an operation with an [Op]. The Op states the checks before
// the handler: the caller and the permission, the headers, the body. Every response has a request id and a log position, and every refusal
// the same form. Every request has a log line, a metric and a span.
//
// An operation is an [Op] and a function from a typed request to a typed response. The alternative, a middleware per check, was rejected:
// an operation could omit a check.
//
// The package uses huma and gorilla/mux. It replaces two features of huma. Huma's validation checks a copy of the body in which numbers are
// floats, and uses the last of two equal keys. [decoder] reads a body exactly, by the same schemas, and lists every wrong field. Huma's
// documentation page loads scripts from other hosts. Package pages serves another one instead.
package api
