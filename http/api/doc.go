// Package api is what all HTTP operations have in common, done once. An operation is registered with
// [Handle], which says by an [Op] what is to be asked of a request before its handler runs: who the
// caller is and what they may do, which headers count, how its body is read; and what is in every
// answer: the request id, the log position, problems in one form, a log line, a metric, a span.
//
// It is on huma and gorilla/mux. Two things of huma's are not used. Its validation of bodies decodes
// them twice, the first time into floats, and takes the last of two equal keys; bodies are read here in
// one pass, exactly, with every wrong field named ([decoder]). And its docs page loads scripts from
// other hosts; the page here is in the binary.
package api
