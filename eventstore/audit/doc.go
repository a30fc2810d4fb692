// Package audit proves what the log held: a Merkle tree over its events (RFC 6962), signed checkpoints of that tree
// (C2SP tlog-checkpoint), proofs that an event is in it (C2SP tlog-proof), and a verifier that holds a log against what
// was kept of it. docs/audit-format.md describes every byte for somebody who writes a verifier of their own.
//
// Nothing here needs a database or a network, so that the verifier is a small program and a page in a browser. A chain
// of hashes was turned down: a proof from it is as long as the log, and a tree's is a few lines.
package audit
