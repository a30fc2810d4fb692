// Package credentials keeps what sign-in depends on: passwords, sessions with their tokens, and mailed tokens. It knows
// people by their ids only; their data are in the log.
//
// These are tables and not events, and nothing here is replayed. A log keeps everything for ever, which must not happen to a
// hash of a password or an ended session; and the answer to "is this session alive" has to be the newest one, not a
// projection's. Facts that belong in events (a user signed in, a password was changed) are appended by the callers.
//
// # How tokens are signed
//
// HS256 (RFC 7518, section 3.2) with keys of 256 random bits. The deployment that verifies a token has also issued it, and all
// nodes share their keys through the vault; a public key would have no reader, and its signatures take some fifty times
// as long to verify, which every request does. Ed25519 was turned down for that. The kid of a token names its key; it
// is looked up in a table before the vault, so a forged kid makes no key.
//
// Tokens have no aud: one deployment issues and accepts them, and iss names it, so that the copy of a deployment, keys
// included, accepts none of its tokens. The typ claim tells access from refresh.
//
// # What nodes know of one another
//
// A node trusts its last read of a session or of the signing keys for [Fresh]. So the node that revokes refuses from the
// moment of its answer, and the others at most that much later. Notices by LISTEN were turned down: they get lost with their
// connection, so the bound would be the same, with more to go wrong.
package credentials
