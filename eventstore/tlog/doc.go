// Package tlog proves the content of a log: a Merkle tree over its events (RFC 6962), signed checkpoints of that tree
// (C2SP tlog-checkpoint), proofs that the tree has an event (C2SP tlog-proof), and a verifier that compares a log with
// kept evidence. docs/audit-format.md specifies every byte for authors of other verifiers.
//
// The package needs neither a database nor a network, so the verifier is a small program and a page in a browser. The proofs of a hash
// chain would be as long as the log; a tree's are a few lines.
package tlog
