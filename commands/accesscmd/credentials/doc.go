// Package credentials stores what sign-in requires: passwords, sessions with their tokens, and mailed tokens. It knows people by their ids
// only; their data are in the log.
//
// These are tables and not events, so nothing here is replayed. A log keeps everything for ever, which must not happen to a password's hash
// or an ended session. Whether a session is valid must be read from the newest state, not from a projection. Callers append events for
// sign-ins and changed passwords.
//
// # How tokens are signed
//
// HS256 (RFC 7518, section 3.2) with keys of 256 random bits. The deployment that verifies a token has also issued it, and all nodes share
// their keys through the vault. So no public key is needed, and verifying Ed25519, which every request does, takes about fifty times as
// long. The kid of a token names its key. Verification looks it up in a table before the vault, so a forged kid creates no key.
//
// Tokens have no aud: one deployment issues and accepts them. iss names it, so a copy of a deployment, keys included, accepts none of its
// tokens. The typ claim distinguishes access from refresh.
//
// # How nodes learn of changes
//
// A node trusts its last read of a session or of the signing keys for [Fresh]. So the node that revokes refuses at once, and the others at
// most that much later. Notices by LISTEN would not improve that bound: they get lost with their connection.
package credentials
