// Package vault keeps the keys of all encrypted values.
//
// Three things must not be lost: the log, the vault's tables and the master key. All else is computed from them. The tables are in
// Postgres, which all nodes share. The master key wraps the keys in them. It is stored elsewhere, so a copy of the database alone opens
// nothing.
//
// Personal and secret values in events are sealed with a data key of their subject. [Vault.Erase] destroys that key: the log and its proofs
// stay, and no node can open the values any more. This holds as soon as Erase returns, because no node caches a data key: each batch of
// values reads its keys by one query on the primary key. With a cache that expires, or that NOTIFY clears, a projection could open a value
// after the erasure had blanked its tables.
//
// Destroyed keys remain in older data: dead rows until a VACUUM, the write-ahead log, backups. The
// erasure of a person cleans the first two. After a restore, call [Vault.ApplyErasures] with a list that was
// kept elsewhere ([Vault.Erasures]).
//
// # The stored forms
//
// Every ciphertext is AES-256-GCM as in RFC 5116: 12 random bytes of nonce, the ciphertext, 16 bytes of tag. Tink creates it from a bare
// 32-byte key without a prefix. The associated data are a list of texts, each preceded by its length in 8 bytes, big-endian:
//
//	a sealed value        "bahi value 1", class, subject, version of the data key in decimal
//	a wrapped data key    "bahi data key 1", subject, version in decimal
//	a wrapped named key   "bahi named key 1", name
//	an enclosed key       "bahi enclosed key 1", name of the key that wraps it, purpose
//	enclosed bytes        "bahi enclosed bytes 1", name, purpose
//
// So a ciphertext opens only for its own purpose. The id of a master key is its HKDF-SHA256 in hex: 16 bytes, without salt, info "bahi
// master key id". docs/events.md has the JSON around a sealed value.
package vault
