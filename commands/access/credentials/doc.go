// Package credentials keeps what sign-in leans on: passwords, sessions with their tokens, and the
// tokens that are mailed. It knows people by their ids only; who they are is in the log.
//
// These are tables and not events, and nothing here is replayed. A log keeps for ever what a hash of a
// password, or a session that ended, must not be kept for; and the answer to "is this session alive" has
// to be the newest one, not a projection's. What is told in events (a user signed in, a password was
// changed) is told by those who call.
//
// # How tokens are signed
//
// HS256 (RFC 7518, section 3.2) with keys of 256 random bits. The one who verifies a token here is who issued
// it, and all nodes share their keys through the vault; a public key would have no reader, and its
// signatures take some fifty times as long to verify, which every request does. Ed25519 was turned down for that.
// A key is named by the kid of the tokens that it signed; the kid is looked up in a table before the vault
// is asked, so a forged one makes no key.
//
// Tokens have no aud: one deployment issues and takes them, and iss names it, so that the copy of a
// deployment, keys included, takes none of its tokens. The typ claim tells access from refresh.
//
// # What nodes know of one another
//
// A node believes for [Fresh] what it read of a session or of the signing keys. So what one node
// revokes is refused there from the moment of the answer, and on the others at most that much later. Notices by
// LISTEN were turned down: they get lost with their connection, so the bound would be the same, with more to go wrong.
package credentials
