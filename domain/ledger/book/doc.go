// Package book is what the five ledgers share: accounts, rows with an IN and an OUT side, and the
// rules that hold between them. A ledger's own package (bank, karigar …) has its entry types, how an
// entry counts in each unit, and its stored names; nothing else.
//
// An account's stream (bank-12) holds its life, each row is a stream of its own (bankrow-812). So
// posting to one busy account never conflicts, and no command loads more as a ledger grows. "No row for a
// deleted account" and "no row in a locked period" span streams (see [PostingContext]): a command that changes a
// row has the append check the account and the lock that it has read.
//
// One stream per account with the rows inside was turned down: it makes every posting conflict with
// every other and needs snapshots.
package book
