// Package vault keeps the keys of everything that is stored encrypted.
//
// What must not be lost is the log, the vault's tables and the master key: all else is folded from
// them. The tables are in Postgres, so that several nodes agree; the master key wraps what is in them and
// is outside of it, so that a copy of the database alone opens nothing.
//
// Personal and secret values in events are sealed with a data key of their subject. [Vault.Erase]
// destroys that key: the log and its proofs stay as they are, and the values are gone on every node. So
// that this holds from the moment when it is answered, no node keeps a data key in memory: each batch
// of values reads its keys, which is one query by primary key. A cache with a lifetime, or one that
// is told by NOTIFY, was turned down: a projection could then open a value a moment after the erasure
// had blanked its tables.
//
// Destroyed keys stay in what was written before: dead rows until a VACUUM, the write-ahead log,
// backups. Whoever erases a person sees to the first two, and restoring a backup wants
// [Vault.ApplyErasures] with a list that was kept elsewhere ([Vault.Erasures]).
//
// # The stored forms
//
// Every ciphertext is AES-256-GCM as RFC 5116 has it: 12 random bytes of nonce, the ciphertext, 16 bytes
// of tag; Tink makes it, with a bare 32-byte key and no prefix. The associated data are a list of
// texts, each with its length before it in 8 bytes, big-endian:
//
//	a sealed value        "bahi value 1", class, subject, version of the data key in decimal
//	a wrapped data key    "bahi data key 1", subject, version in decimal
//	a wrapped named key   "bahi named key 1", name
//
// So a ciphertext opens only as what it was made for. The id of a master key is HKDF-SHA256 of it,
// without salt, info "bahi master key id", 16 bytes in hex. The JSON around a sealed value is in
// docs/events.md.
package vault
