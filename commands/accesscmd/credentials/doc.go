// Package credentials stores passwords, sessions with their tokens, and mailed tokens. It has only the ids of users. Their other data are
// in the log.
//
// The data are in tables and not in events, because a log is permanent, and a password's hash or an ended session must not be. The check of
// a session must read the newest state, not a projection. Callers append events for sign-ins and changed passwords.
//
// # How tokens are signed
//
// HS256 (RFC 7518, section 3.2) with keys of 256 random bits. The deployment that verifies a token has also issued it, and all nodes share
// their keys through the vault. So no public key is needed. Every request verifies a token, and Ed25519 would take about fifty times as
// long. The kid of a token names its key. Verification finds it in a table before the vault, so a forged kid creates no key.
//
// Tokens have no aud: one deployment issues and accepts them. iss names the deployment, so a copy with another iss accepts no token of the
// original, even with the same keys. The typ claim distinguishes access from refresh.
//
// # How nodes detect changes
//
// A node trusts its last read of a session or of the signing keys for the duration [Fresh]. So the node that revokes a session refuses it
// at once, and the others after at most that time. Notifications by LISTEN would not improve that bound: they are lost with their
// connection.
package credentials
