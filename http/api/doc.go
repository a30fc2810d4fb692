// Package api has the common parts of all HTTP operations, each done once. [Handle] registers an operation with an [Op], which
// says what to check before its handler runs: who the caller is and what they may do, which headers count, how the body
// is read. Every answer has the request id, the log position, problems in one form, a log line, a metric and a
// span.
//
// It builds on huma and gorilla/mux. Two features of huma are not used. Its validation of bodies checks a copy in which numbers are
// floats, and takes the last of two equal keys; [decoder] reads a body exactly, by the same schemas, and names every wrong
// field. Its docs page loads scripts from other hosts; the page here is in the binary.
package api
