package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/unit"
)

// version is the first word of the text of books.
const version = "bahi-books/v1"

// closingVersion is the first line of the text of closing balances.
const closingVersion = "bahi-closing/v1\n"

// Header describes the books of a text.
type Header struct {
	Position event.Position // position of the last event that was read
	AsOf     *unit.Date     // rows with later dates are left out
	KnownAt  event.Position // the requested position; 0: none
}

// Now reports whether the text has the current state of all rows. Only such a text has locks, orders and takadas.
func (h Header) Now() bool { return h.KnownAt == 0 && h.AsOf == nil }

// Line is a line of the text and the record that it describes. The text is valid until the next line.
type Line struct {
	Text         []byte // with the line break; nil: any number of lines that the events do not determine
	Word         string // the first word
	Account, Row int64
	Position     event.Position // position of the newest event that determines the line
}

// Seal is a closed period.
type Seal struct {
	From, Through unit.Date
	Position      event.Position
	Digest        string
}

// Writer writes the text of books (docs/replay.md). The accounts of a workspace follow it by number. The rows of an account follow it by
// date and number.
type Writer struct {
	header Header
	yield  func(Line) error
	text   []byte

	seals      []Seal
	metal      string               // metal of the workspace
	incomplete bool                 // some lines of the workspace are not determined
	money      map[string]*trial    // by ledger
	metals     map[[2]string]*trial // by ledger and metal
	loss       map[string]int64     // by metal
	all        hash.Hash            // digest of the closing balances

	about  Line // the current account
	ledger string
	period period
	net    Amount
	fine   map[string]unit.Grams // net, by metal
}

// trial has the debits and credits of a ledger's accounts, both as positive sums.
type trial struct{ debit, credit int64 }

// add adds the net of an account.
func (t *trial) add(ledger string, net int64) *trial {
	if t == nil {
		t = &trial{}
	}
	if ledger == "bank" { // a bank balance is an asset
		net = -net
	}
	return &trial{t.debit + max(0, -net), t.credit + max(0, net)}
}

// NewWriter returns a Writer that has written the first line.
func NewWriter(h Header, yield func(Line) error) (*Writer, error) {
	w := &Writer{header: h, yield: yield}
	known, asOf := "-", "-"
	if h.KnownAt != 0 {
		known = strconv.FormatUint(uint64(h.KnownAt), 10)
	}
	if h.AsOf != nil {
		asOf = h.AsOf.String()
	}
	return w, w.line(Line{}, version, h.Position, "as_of", asOf, "known_at", known)
}

// line yields a line of words.
func (w *Writer) line(l Line, words ...any) error {
	w.text = appendWords(w.text[:0], words...)
	l.Text, l.Word = w.text, words[0].(string) //nolint:forcetypeassert // it is the first word
	return w.yield(l)
}

// Workspace begins a workspace. Metal applies to accounts and entries that name no metal.
func (w *Writer) Workspace(id uuid.UUID, locked *unit.Date, metal string, seals []Seal) error {
	w.seals, w.metal, w.incomplete, w.all = seals, metal, false, sha256.New()
	w.money, w.metals = map[string]*trial{}, map[[2]string]*trial{}
	w.loss = map[string]int64{}
	w.all.Write([]byte(closingVersion))
	through := "-"
	if locked != nil && w.header.Now() {
		through = locked.String()
	}
	if err := w.line(Line{}, "workspace", id.String(), "locked", through, "metal", metal); err != nil {
		return err
	}
	for _, s := range seals {
		if err := w.line(Line{Position: s.Position}, "seal", s.From, s.Through, s.Digest, s.Position); err != nil {
			return err
		}
	}
	return nil
}

// Account begins an account. newest is the position of its newest event.
func (w *Writer) Account(ledger string, id int64, opened, newest event.Position) error {
	w.ledger, w.about, w.period = ledger, Line{Account: id, Position: newest}, period{}
	w.net, w.fine = Amount{}, map[string]unit.Grams{}
	return w.line(w.about, "account", ledger, id, opened)
}

// untold ends an account with undetermined lines.
func (w *Writer) untold() error {
	w.incomplete, w.about.Word = true, "account"
	return w.yield(w.about)
}

// Row writes a row of the account with the name of its metal.
func (w *Writer) Row(r *Row, metal string, loss unit.Grams) error {
	if w.period.digest == nil || r.Date > w.period.through {
		if err := w.endPeriod(); err != nil {
			return err
		}
		w.period = periodOf(w.seals, r.Date)
		w.period.digest.Write(appendWords(nil, "bahi-period/v1", w.ledger, w.about.Account, w.period.from, w.period.through))
		w.period.digest.Write(appendWords(nil, "opening", w.net))
	}
	w.net = w.net.plus(r.In).minus(r.Out)
	if r.In.Fine != 0 || r.Out.Fine != 0 {
		w.fine[cmp.Or(metal, w.metal)] += r.In.Fine - r.Out.Fine
	}
	if loss != 0 {
		w.loss[cmp.Or(metal, w.metal)] += int64(loss)
	}
	w.period.rows++
	w.text = r.append(w.text[:0])
	w.period.digest.Write(w.text)
	w.text = appendWords(append(w.text[:len(w.text)-1], ' '), r.Paired, r.Position)
	return w.yield(Line{w.text, "row", w.about.Account, r.ID, r.Position})
}

// Sum returns the sum of the account's rows so far.
func (w *Writer) Sum() Amount { return w.net }

func (w *Writer) endPeriod() error {
	p := w.period
	if p.digest == nil {
		return nil
	}
	p.digest.Write(appendWords(nil, "closing", w.net))
	return w.line(w.about, "period", p.from, p.through, p.rows, w.net, hex.EncodeToString(p.digest.Sum(nil)))
}

// Closing ends the account with its closing balance and the number of its rows.
func (w *Writer) Closing(net Amount, rows int64) error {
	if err := w.endPeriod(); err != nil {
		return err
	}
	closing := appendWords(nil, w.ledger, w.about.Account, net, rows)
	w.all.Write(closing)
	w.money[w.ledger] = w.money[w.ledger].add(w.ledger, int64(net.Cash))
	for name, fine := range w.fine {
		key := [2]string{w.ledger, name}
		w.metals[key] = w.metals[key].add(w.ledger, int64(fine))
	}
	return w.line(w.about, "closing", w.ledger, w.about.Account, net, rows)
}

// Totals writes the trial balance and the digest of the closing balances, after the last account of a workspace.
func (w *Writer) Totals() error {
	if w.incomplete {
		for _, word := range []string{"trial", "metal", "digest"} {
			if err := w.yield(Line{Word: word}); err != nil {
				return err
			}
		}
		return nil
	}
	cash, fine := int64(0), maps.Clone(w.loss) // the unpaired value: all accounts without wastage
	for _, ledger := range slices.Sorted(maps.Keys(w.money)) {
		cash += w.money[ledger].debit - w.money[ledger].credit
		if err := w.line(Line{}, "trial", ledger, w.money[ledger].debit, w.money[ledger].credit); err != nil {
			return err
		}
	}
	if err := w.line(Line{}, "trial", "unpaired", max(0, -cash), max(0, cash)); err != nil {
		return err
	}
	for key, sum := range w.metals {
		fine[key[1]] += sum.debit - sum.credit
	}
	for name, sum := range fine {
		w.metals[[2]string{"unpaired", name}] = &trial{max(0, -sum), max(0, sum)}
	}
	for name, loss := range w.loss {
		w.metals[[2]string{"loss", name}] = &trial{max(0, loss), max(0, -loss)}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.metals), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if err := w.line(Line{}, "metal", key[0], w.metals[key].debit, w.metals[key].credit, key[1]); err != nil {
			return err
		}
	}
	return w.line(Line{}, "digest", hex.EncodeToString(w.all.Sum(nil)))
}

// Order is an order with its takadas.
type Order struct {
	ID, Client        int64
	Date              unit.Date
	Weight, Delivered unit.Grams
	Takadas           int64
	Position          event.Position
}

// Order writes an order.
func (w *Writer) Order(o Order) error {
	return w.line(Line{Account: o.Client, Position: o.Position}, "order", o.ID, o.Client, o.Date, o.Weight, o.Delivered, o.Takadas)
}

// Takada is a takada of an order.
type Takada struct {
	ID, Order int64
	Date      unit.Date
	Weight    unit.Grams
	Karigars  []int64 // ascending
	Position  event.Position
}

// Takada writes a takada.
func (w *Writer) Takada(t Takada) error {
	words := []any{"takada", t.ID, t.Order, t.Date, t.Weight}
	for _, k := range t.Karigars {
		words = append(words, k)
	}
	return w.line(Line{Position: t.Position}, words...)
}

// append appends the line of a row in the form for a period's digest.
func (r *Row) append(to []byte) []byte {
	state := "-"
	if r.Void {
		state = "void"
	}
	return appendWords(to, "row", r.ID, r.Date, r.In, r.Out, state, r.Reverses, r.ReversedBy, r.InDigest, r.OutDigest)
}

// appendWords appends words with a space between them and a line break.
func appendWords(to []byte, words ...any) []byte {
	for i, word := range words {
		if i > 0 {
			to = append(to, ' ')
		}
		switch word := word.(type) {
		case string:
			to = append(to, word...)
		case int64:
			to = strconv.AppendInt(to, word, 10)
		case event.Position:
			to = strconv.AppendUint(to, uint64(word), 10)
		case unit.Grams:
			to = strconv.AppendInt(to, int64(word), 10)
		case unit.Date:
			to = word.Time().AppendFormat(to, time.DateOnly)
		case Amount:
			to = strconv.AppendInt(append(strconv.AppendInt(to, int64(word.Cash), 10), ' '), int64(word.Fine), 10)
		case [sha256.Size]byte:
			if word == ([sha256.Size]byte{}) {
				to = append(to, '-')
			} else {
				to = hex.AppendEncode(to, word[:])
			}
		default:
			panic("a word of an unknown type")
		}
	}
	return append(to, '\n')
}

// Write yields the lines of the books of all workspaces.
func (b *Books) Write(h Header, yield func(Line) error) error {
	w, err := NewWriter(h, yield)
	if err != nil {
		return err
	}
	rows, accounts := b.rowsByAccount(), map[*workspace][]*account{}
	for _, a := range b.accounts {
		if !a.deleted {
			accounts[a.workspace] = append(accounts[a.workspace], a)
		}
	}
	for _, space := range slices.SortedFunc(maps.Keys(accounts), func(a, b *workspace) int { return bytes.Compare(a.id[:], b.id[:]) }) {
		of := accounts[space]
		slices.SortFunc(of, func(a, b *account) int { return cmp.Compare(a.id, b.id) })
		if err := b.writeWorkspace(w, space, of, rows); err != nil {
			return err
		}
	}
	return nil
}

func (b *Books) writeWorkspace(w *Writer, space *workspace, accounts []*account, rows map[int64][]uint32) error {
	if err := w.Workspace(space.id, space.locked, space.metal, space.seals); err != nil {
		return err
	}
	for _, a := range accounts {
		if err := b.writeAccount(w, a, rows[a.id]); err != nil {
			return err
		}
	}
	if err := w.Totals(); err != nil || !w.header.Now() {
		return err
	}
	orders, takadas := b.ordered(space)
	for _, o := range orders {
		if err := w.Order(o.Order); err != nil {
			return err
		}
	}
	for _, t := range takadas {
		if err := w.Takada(t); err != nil {
			return err
		}
	}
	return nil
}

// writeAccount writes an account: its rows by date and number, each period with its digest, and the closing balance.
func (b *Books) writeAccount(w *Writer, a *account, rows []uint32) error {
	if err := w.Account(a.ledger, a.id, a.opened, a.last); err != nil {
		return err
	}
	if a.doubt != 0 || a.workspace.doubt != 0 {
		return w.untold()
	}
	count := int64(0)
	for _, i := range rows {
		r := b.rows.at(i)
		if w.header.AsOf != nil && r.Date > *w.header.AsOf {
			break
		}
		if err := w.Row(r, cmp.Or(b.rows.metals[r.inMetal], b.rows.metals[r.outMetal], a.metal), b.loss(w.header, r)); err != nil {
			return err
		}
		count++
	}
	return w.Closing(w.Sum(), count)
}

// loss returns the wastage of a row, or 0 if the row that reverses it is in the text.
func (b *Books) loss(h Header, r *Row) unit.Grams {
	if by, found := b.rows.find(r.ReversedBy); found && !by.Deleted && (h.AsOf == nil || by.Date <= *h.AsOf) {
		return 0
	}
	return r.Loss
}

// Statement is an account between two days.
type Statement struct {
	Ledger, Name     string
	Workspace        uuid.UUID
	Locked           *unit.Date // lock of the workspace
	Opening, Closing Amount     // before the first day and after the last; 0 if the account is deleted
}

// Statement returns the statement of an account, false if no event opens it.
func (b *Books) Statement(account int64, first, last unit.Date) (s Statement, known bool) {
	a := b.accounts[account]
	if a == nil {
		return s, false
	}
	s = Statement{Ledger: a.ledger, Name: a.name, Workspace: a.workspace.id, Locked: a.workspace.locked}
	for _, r := range b.rows.kept() {
		if r.Account == account && !a.deleted {
			if r.Date < first {
				s.Opening = s.Opening.plus(r.In).minus(r.Out)
			}
			if r.Date <= last {
				s.Closing = s.Closing.plus(r.In).minus(r.Out)
			}
		}
	}
	return s, true
}

// closings returns the digest of a workspace's closing balances at the end of a day.
func (b *Books) closings(w *workspace, through unit.Date) string {
	type sum struct {
		net  Amount
		rows int64
	}
	sums := map[int64]sum{}
	for _, r := range b.rows.kept() {
		if r.Date <= through {
			s := sums[r.Account]
			sums[r.Account] = sum{s.net.plus(r.In).minus(r.Out), s.rows + 1}
		}
	}
	all := sha256.New()
	all.Write([]byte(closingVersion))
	for _, id := range slices.Sorted(maps.Keys(b.accounts)) {
		if a := b.accounts[id]; a.workspace == w && !a.deleted {
			all.Write(appendWords(nil, a.ledger, id, sums[id].net, sums[id].rows))
		}
	}
	return hex.EncodeToString(all.Sum(nil))
}

// rowsByAccount returns the rows that are not deleted, by account, in order of date and number.
func (b *Books) rowsByAccount() map[int64][]uint32 {
	counts := map[int64]int{}
	for _, r := range b.rows.kept() {
		counts[r.Account]++
	}
	of := make(map[int64][]uint32, len(counts))
	for id, n := range counts {
		of[id] = make([]uint32, 0, n)
	}
	for i, r := range b.rows.kept() {
		of[r.Account] = append(of[r.Account], i)
	}
	for _, rows := range of {
		slices.SortFunc(rows, func(x, y uint32) int {
			a, b := b.rows.at(x), b.rows.at(y)
			return cmp.Or(cmp.Compare(a.Date, b.Date), cmp.Compare(a.ID, b.ID))
		})
	}
	return of
}

// firstDay is earlier than all rows.
var firstDay = unit.DateOf(time.Date(1900, time.January, 1, 0, 0, 0, 0, time.UTC))

// period is a span of days with one digest of its rows.
type period struct {
	from, through unit.Date
	rows          int64
	digest        hash.Hash
}

// periodOf returns the period of a day. It is the closed period with this day, or else the part of the financial year
// (April to March) between closed periods.
func periodOf(seals []Seal, day unit.Date) period {
	t := day.Time()
	year := t.Year()
	if t.Month() < time.April {
		year--
	}
	p := period{digest: sha256.New(), from: unit.DateOf(time.Date(year, time.April, 1, 0, 0, 0, 0, time.UTC)),
		through: unit.DateOf(time.Date(year+1, time.March, 31, 0, 0, 0, 0, time.UTC))}
	for _, s := range seals {
		switch {
		case s.Through < day:
			p.from = max(p.from, s.Through+1)
		case s.From > day:
			p.through = min(p.through, s.From-1)
		default:
			p.from, p.through = s.From, s.Through
			return p
		}
	}
	return p
}

// Print prints the line, or a mark in place of undetermined lines. It omits lines of rows unless rows is true.
func (l Line) Print(out io.Writer, rows bool) (err error) {
	switch {
	case l.Word == "row" && !rows:
	case l.Text == nil:
		_, err = fmt.Fprintln(out, "unknown", l.Word)
	default:
		_, err = out.Write(l.Text)
	}
	return err
}
