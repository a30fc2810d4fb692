// Package book has the common parts of the five ledgers: accounts, rows with an IN and an OUT side, the rules for them, and the stored
// names. A ledger's own package (bank, karigar …) has only its entry types and the effect of an entry in each unit.
//
// Each account has a stream (bank-12), and each row has its own stream (bankrow-812). So posts to one busy account never conflict, and no
// command loads more as a ledger grows. The rules "no row for a deleted account" and "no row in a locked period" span streams (see
// [PostingContext]). A command that changes a row reads the account and the lock, and its append checks that neither has changed.
//
// The alternative, one stream per account with its rows, was rejected: all posts to an account would conflict, and long streams would need
// snapshots.
package book
