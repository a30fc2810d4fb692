package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/replay"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
)

// finding is the reason why a statement is not verified.
type finding struct {
	verdict tlog.Verdict
	why     string
}

func tampered(format string, args ...any) *finding {
	return &finding{tlog.Tampered, "TAMPERED. " + fmt.Sprintf(format, args...)}
}

func undecided(format string, args ...any) *finding {
	return &finding{tlog.Undecided, "CANNOT TELL. " + fmt.Sprintf(format, args...)}
}

// examineStatement verifies a statement with its proof. It compares the statement with the code on its print unless code is empty.
func examineStatement(file []byte, g archive.Given, code string) (a archive.Report, err error) {
	var x examination
	if x.Statement, err = tlog.ReadStatement(file); err != nil {
		return a, err
	}
	var on *tlog.StatementCode
	if code != "" {
		c, err := tlog.ParseStatementCode(code)
		if err != nil {
			return a, err
		}
		on = &c
	}
	var found *finding
	if found, err = x.examine(g, on); err != nil {
		return a, err
	}
	a = archive.Report{Verdict: tlog.Verified, Log: x.checkpoint.Origin, Statement: &x.Statement}
	if found != nil {
		a.Verdict, a.Sentences = found.verdict, []string{found.why}
		return a, nil
	}
	a.Sentences = x.sentences(on)
	return a, nil
}

// examination is the verification of a statement.
type examination struct {
	tlog.Statement

	checkpoint      tlog.Checkpoint
	by              []tlog.Signature
	account, common []event.Stored // events of the account, and common events of the workspace
	books           replay.Statement
}

// examine returns nil if the statement is proven and its figures follow from its events.
func (x *examination) examine(g archive.Given, on *tlog.StatementCode) (found *finding, err error) {
	var signed error
	x.checkpoint, x.by, signed = g.Keys.Open([]byte(x.Checkpoint))
	if signed != nil && !errors.Is(signed, tlog.ErrNotSigned) {
		return tampered("The checkpoint is not as it was signed: %s.", signed), nil
	}
	if x.checkpoint.Map == (tlog.Hash{}) {
		return undecided("The checkpoint has no map of accounts: an earlier version signed it."), nil
	}
	for _, check := range []func() *finding{x.sort, x.streams, x.entries, x.figures} {
		if found := check(); found != nil {
			return found, nil
		}
	}
	if on != nil {
		if found := x.compare(on); found != nil {
			return found, nil
		}
	}
	return x.trust(g, signed)
}

// sort separates the account's events from the common ones, and checks that all belong here and are in the log's order.
func (x *examination) sort() *finding {
	mine, common := tlog.AccountEntry(x.Account), tlog.CommonEntry(x.Workspace)
	rows := map[string]string{}
	for i := range x.Events {
		e := &x.Events[i]
		c := tlog.ConcernOf(e)
		if c.Row != "" && rows[c.Row] == "" {
			if rows[c.Row] = c.Entry; c.Entry == "" { // the row's first event is missing, see streams
				rows[c.Row] = mine
			}
		}
		list := &x.account
		switch of := c.Entry; {
		case c.Row != "" && rows[c.Row] == mine, of == mine:
		case c.Row == "" && of == common:
			list = &x.common
		default:
			return tampered("It has an event of another party: %s is not of account %d.", shown(e), x.Account)
		}
		if n := len(*list); n > 0 {
			switch before := (*list)[n-1].Position; {
			case before == e.Position:
				return tampered("An event was added: %s occurs twice.", shown(e))
			case before > e.Position:
				return tampered("The events are in another order: %s comes after position %d.", shown(e), before)
			}
		}
		*list = append(*list, *e)
	}
	return nil
}

// streams checks that no event is missing between those of a stream, and that the checkpoint covers them.
func (x *examination) streams() *finding {
	next := map[string]int64{}
	for _, e := range append(slices.Clip(x.account), x.common...) {
		switch revision := next[e.Stream]; {
		case e.Revision > revision:
			return tampered("An event is missing before %s: the file has no revision %d of that stream.", shown(&e), revision)
		case e.Revision < revision:
			return tampered("An event was added: %s is a second revision %d of its stream.", shown(&e), e.Revision)
		case e.Position > x.checkpoint.Position:
			return tampered("The checkpoint is an old one: it ends at position %d, before %s.", x.checkpoint.Position, shown(&e))
		}
		next[e.Stream]++
	}
	return nil
}

// entries checks that the events match the entries, and that the signed map has the entries.
func (x *examination) entries() *finding {
	for _, one := range []struct {
		name, words string
		entry       tlog.StatementEntry
		events      []event.Stored
	}{
		{tlog.AccountEntry(x.Account), fmt.Sprintf("of account %d", x.Account), x.Entry, x.account},
		{tlog.CommonEntry(x.Workspace), "common to all accounts", x.Common, x.common},
	} {
		if err := one.entry.Verify(one.name, x.checkpoint.Map); err != nil {
			return tampered("The entry of the events %s is not in the map of accounts that was signed, or its path was changed: %s.",
				one.words, err)
		}
		size := uint64(len(one.events))
		switch root := rootOf(one.events); {
		case size < one.entry.Size:
			return tampered("Events are missing: of %d events %s the file has %d. The newest were cut off, or whole rows.", one.entry.Size,
				one.words, size)
		case size > one.entry.Size:
			return tampered("Events were added: there are %d events %s, and the file has %d.", one.entry.Size, one.words, size)
		case size > 0 && root != one.entry.Root:
			return tampered("An event was changed: the %d events %s do not lead to the root in the map.", size, one.words)
		}
	}
	return nil
}

func rootOf(events []event.Stored) tlog.Hash {
	var tree tlog.Tree
	var hasher tlog.Hasher
	for _, e := range events {
		tree.Append(hasher.Leaf(e))
	}
	return tree.Root()
}

// figures compares the figures of the file with those computed from the account's events.
func (x *examination) figures() (found *finding) {
	if x.books, found = x.fold(x.checkpoint.Position, x.From, x.To); found != nil {
		return found
	}
	if of := x.books.Workspace.String(); of != x.Workspace {
		return tampered("The account belongs to the workspace %s, and the common events to %s.", of, printable(x.Workspace))
	}
	return differ("the file", x.Stated, x.books)
}

// differ returns the first figure that differs from the one computed from the events.
func differ(where string, stated tlog.Stated, real replay.Statement) *finding {
	opening, closing := figures(real.Opening), figures(real.Closing)
	for _, one := range []struct{ name, stated, real string }{
		{"opening cash", stated.Opening.Cash, opening.Cash}, {"opening fine weight", stated.Opening.Fine, opening.Fine},
		{"closing cash", stated.Closing.Cash, closing.Cash}, {"closing fine weight", stated.Closing.Fine, closing.Fine},
	} {
		if one.stated != one.real {
			return tampered("The %s is %s by %s, and %s by the events.", one.name, printable(one.stated), where, one.real)
		}
	}
	return nil
}

// compare compares the figures on paper with those computed from the events up to the paper's position.
func (x *examination) compare(on *tlog.StatementCode) *finding {
	switch {
	case on.Account != tlog.MapKey(tlog.AccountEntry(x.Account)):
		return tampered("The statement on paper is of another account than %d.", x.Account)
	case on.Position > x.checkpoint.Position:
		return undecided("The file is older than the statement on paper: it ends at position %d, before %d. Ask for a newer one.",
			x.checkpoint.Position, on.Position)
	}
	real, found := x.fold(on.Position, on.From, on.To)
	if found != nil {
		return found
	}
	return differ("the statement on paper", on.Stated, real)
}

// trust checks that a trusted key signed the checkpoint, or that it equals a kept one.
func (x *examination) trust(g archive.Given, signed error) (*finding, error) {
	kept, err := g.Kept(x.checkpoint.Origin)
	if err != nil {
		return nil, err
	}
	for _, k := range kept {
		switch {
		case k.Size != x.checkpoint.Size:
		case k.Root == x.checkpoint.Root && k.Map == x.checkpoint.Map:
			signed = nil
		default:
			return tampered("%s has another root than the checkpoint of the file: two histories were signed.", k), nil
		}
	}
	if signed != nil {
		//nolint:nilerr // it is the finding
		return undecided("The file is consistent, but no key that you trust signed its checkpoint. "+
			"Provide the log's public key, or a checkpoint of "+
			"%d events that was kept elsewhere.", x.checkpoint.Size), nil
	}
	return nil, nil //nolint:nilnil // it is proven
}

func (x *examination) sentences(on *tlog.StatementCode) []string {
	span := "from its first row to its last"
	if x.From != "" || x.To != "" {
		span = strings.TrimSpace(strings.Join([]string{word("from", x.From), word("to", x.To)}, " "))
	}
	l := ledger.Named(x.books.Ledger)
	all := []string{
		fmt.Sprintf("VERIFIED. Account %d, %s, %s ledger, %s: opening %s, closing %s.", x.Account, printable(x.books.Name), l.Title, span,
			words(l, x.Opening), words(l, x.Closing)),
		fmt.Sprintf("These are all %d events that the log %s has of the account in its first %d events, up to position %d, %s.", len(x.account),
			x.checkpoint.Origin, x.checkpoint.Size, x.checkpoint.Position, archive.SignedBy(x.by)),
	}
	if x.books.Locked != nil {
		all = append(all, fmt.Sprintf("The books are locked through %s.", x.books.Locked))
	}
	if on != nil {
		all = append(all, fmt.Sprintf("The figures on paper are those of the events up to position %d.", on.Position))
		if on.Checkpoint != tlog.CheckpointHash([]byte(x.Checkpoint)) {
			all = append(all, "The paper was printed at another checkpoint than that of the file.")
		}
	}
	return all
}

func word(before, day string) string {
	if day == "" {
		return ""
	}
	return before + " " + day
}

func shown(e *event.Stored) string {
	return fmt.Sprintf("the event at position %d (%s %s@%d)", e.Position, printable(e.Type), printable(e.Stream), e.Revision)
}

// printable replaces control characters, which could control a terminal. The text is untrusted.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
