// Package replay computes the books from the events of a log. It implements only the rules of docs/books.md and
// docs/events.md. It checks the projections and shares no code with them. docs/replay.py does the same in another
// language.
package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/unit"
)

// Books are the books of all workspaces in a log.
type Books struct {
	KnownAt  event.Position // events after this position are ignored; 0: none are ignored
	Position event.Position // position of the last event
	Breaches []breach       // the first 100
	Doubts   []doubt        // the first 100

	accounts   map[int64]*account
	rows       rows
	workspaces map[uuid.UUID]*workspace
	orders     map[int64]*order
	takadas    map[int64]*takada

	doubt event.Position // for all workspaces
	rest  int            // number of following events of the same transaction
	past  bool
}

// breach is an event that breaks an invariant.
type breach struct {
	Position     event.Position
	Account, Row int64
	Text         string
}

// doubt is an event that this program cannot read. After its position, the affected records are unknown.
type doubt struct {
	Position     event.Position
	Stream, Type string
	Account      int64     // 0: all accounts of the workspace
	Workspace    uuid.UUID // zero: all workspaces
	Reason       string
}

// maxFindings bounds the lists of breaches and doubts.
const maxFindings = 100

type workspace struct {
	id     uuid.UUID
	locked *unit.Date
	metal  string // metal of accounts and entries that name no metal
	seals  []Seal
	doubt  event.Position // 0: all events of the workspace are known
}

type account struct {
	id        int64
	name      string
	metal     string // metal of entries that name no metal; "": the metal of the workspace
	ledger    string
	workspace *workspace
	opened    event.Position
	deleted   bool
	doubt     event.Position
	last      event.Position // newest event of the account or its rows
}

// New returns empty books.
func New(knownAt event.Position) *Books {
	return &Books{KnownAt: knownAt, accounts: map[int64]*account{}, rows: rows{index: map[int64]uint32{}, metals: []string{""}},
		workspaces: map[uuid.UUID]*workspace{}, orders: map[int64]*order{}, takadas: map[int64]*takada{}}
}

// meta has the metadata of an event that the books require.
type meta struct {
	Schema    int       `json:"schema"`
	Workspace uuid.UUID `json:"workspace"`
}

// Add applies the next event of the log. It returns false if this event and all later ones are after KnownAt. The events
// of a transaction are applied together.
func (b *Books) Add(e event.Stored) bool {
	if b.KnownAt != 0 {
		if b.rest == 0 {
			b.rest = event.More(e.Meta) + 1
			b.past = b.past || e.Position+event.Position(b.rest)-1 > b.KnownAt
		}
		if b.rest--; b.past {
			return false
		}
	}
	b.Position = e.Position
	category, id := event.SplitStream(e.Stream)
	apply, known := handlers[category]
	if known && apply == nil {
		return true
	}
	var m meta
	if err := json.Unmarshal(e.Meta, &m); err != nil {
		b.doubted(e, nil, 0, "its metadata cannot be read")
		return true
	}
	w := b.workspace(m.Workspace)
	if !known {
		b.doubted(e, w, 0, "its kind of stream is unknown")
		return true
	}
	if m.Schema != 1 {
		b.doubted(e, w, b.accountOf(category, id), "its schema version "+strconv.Itoa(m.Schema)+" is unknown")
		return true
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil && ledgers[strings.TrimSuffix(category, "row")] != "" {
		b.doubted(e, w, 0, "its stream has no number")
		return true
	}
	e.Data = withoutNUL(e.Data)
	if reason := apply(b, recorded{e, w, number}); reason != "" {
		b.doubted(e, w, b.accountOf(category, id), reason)
	}
	return true
}

// recorded is an event with its workspace and the number in its stream's name.
type recorded struct {
	event.Stored

	workspace *workspace
	id        int64
}

// unknownType is the reason for a doubt about an event of an unknown type.
const unknownType = "its type is unknown"

// decoded decodes the payload. It returns the reason if the payload is invalid.
func decoded(e recorded, into any) (reason string) {
	if err := json.Unmarshal(e.Data, into); err != nil {
		return "its payload cannot be read"
	}
	return ""
}

// handlers apply the events of a category of streams, and return why they cannot. Categories with nil do not affect the
// books.
var handlers = func() map[string]func(*Books, recorded) string {
	all := map[string]func(*Books, recorded) string{"bookslock": (*Books).lock, "booksmetal": (*Books).metal,
		"period": (*Books).period, "clientorder": (*Books).order,
		"takada": (*Books).takada}
	for ledger := range ledgers {
		all[ledger] = func(b *Books, e recorded) string { return b.account(e, ledger) }
		all[ledger+"row"] = func(b *Books, e recorded) string { return b.row(e, ledger) }
	}
	for category := range strings.FieldsSeq(unrelated) {
		all[category] = nil
	}
	return all
}()

// ledgers has the first word of each ledger's event names. Events of rows have Row in place of Account.
var ledgers = map[string]string{"bank": "BankAccount", "bullion": "BullionAccount", "client": "Client", "karigar": "Karigar",
	"polisher": "Polisher"}

// unrelated are the categories of streams that do not affect the books.
const unrelated = `apikey audit bot botanswer botpage botsource botwebhook buyer campaign campaignblock channel channelidentity
	company companydomain companyslug confirmation contact contactlist contactnotice contactprimary emailclaim enquiry
	enquirynotification follower identityclaim khata message messagetemplate messagethread messagingcontact messagingphone
	messagingsender number orderdraft ordersender ordertakadas party plan plancustomer product productbatch productsku request session
	user workspace`

// accountOf returns the account of a stream, or 0 if there is none or it is unknown.
func (b *Books) accountOf(category, id string) int64 {
	number, _ := strconv.ParseInt(id, 10, 64)
	if ledgers[category] != "" {
		return number
	}
	if r, found := b.rows.find(number); found && strings.HasSuffix(category, "row") {
		return r.Account
	}
	return 0
}

func (b *Books) doubted(e event.Stored, w *workspace, of int64, reason string) {
	d := doubt{Position: e.Position, Stream: e.Stream, Type: e.Type, Reason: reason}
	mark := func(at *event.Position) {
		if *at == 0 {
			*at = e.Position
		}
	}
	switch a := b.accounts[of]; {
	case a != nil:
		d.Account, d.Workspace = of, a.workspace.id
		mark(&a.doubt)
	case w != nil:
		d.Workspace = w.id
		mark(&w.doubt)
	default:
		mark(&b.doubt)
		for _, w := range b.workspaces {
			mark(&w.doubt)
		}
	}
	if len(b.Doubts) < maxFindings {
		b.Doubts = append(b.Doubts, d)
	}
}

func (b *Books) workspace(id uuid.UUID) *workspace {
	w := b.workspaces[id]
	if w == nil {
		w = &workspace{id: id, metal: defaultMetal, doubt: b.doubt}
		b.workspaces[id] = w
	}
	return w
}

// rule records a breach if kept is false.
func (b *Books) rule(kept bool, e recorded, account, row int64, text string) {
	if !kept && len(b.Breaches) < maxFindings {
		b.Breaches = append(b.Breaches, breach{e.Position, account, row, text})
	}
}

// account applies an event of an account.
func (b *Books) account(e recorded, ledger string) string {
	a := b.accounts[e.id]
	suffix, _ := strings.CutPrefix(e.Type, ledgers[ledger])
	switch suffix {
	case "Opened":
		if a == nil {
			a = &account{id: e.id, ledger: ledger, workspace: e.workspace, opened: e.Position}
			b.accounts[e.id] = a
		}
		a.named(e)
	case "Renamed":
		a.named(e)
	case "TypeChanged":
	case "MetalChanged":
		var data metalData
		if reason := decoded(e, &data); reason != "" {
			return reason
		}
		if a != nil {
			a.metal = data.To
		}
	case "Deleted":
		var data struct {
			EarliestRow *unit.Date `json:"earliest_row"`
		}
		if reason := decoded(e, &data); reason != "" {
			return reason
		}
		b.rule(a.open(ledger, e.workspace), e, e.id, 0, "an account that is not open is deleted")
		b.rule(!e.workspace.locks(data.EarliestRow), e, e.id, 0, "an account with a row on a locked date is deleted")
		if a != nil {
			a.deleted = true
		}
	default:
		return unknownType
	}
	if a != nil {
		a.last = e.Position
	}
	return ""
}

// named applies the name in an event of the account.
func (a *account) named(e recorded) {
	var data struct{ Name, To string }
	if json.Unmarshal(e.Data, &data) == nil && a != nil {
		a.name = cmp.Or(data.To, data.Name)
	}
}

// open reports whether the account belongs to a ledger of a workspace and is not deleted.
func (a *account) open(ledger string, w *workspace) bool {
	return a != nil && !a.deleted && a.ledger == ledger && a.workspace == w
}

// locks reports whether a date is locked.
func (w *workspace) locks(date *unit.Date) bool {
	return w.locked != nil && date != nil && *date <= *w.locked
}

// lock applies an event of the lock.
func (b *Books) lock(e recorded) string {
	var data struct {
		To *unit.Date `json:"to"`
	}
	if e.Type != "BooksLockMoved" {
		return unknownType
	}
	reason := decoded(e, &data)
	if reason == "" {
		e.workspace.locked = data.To
	}
	return reason
}

// defaultMetal is the metal of workspaces that have set none.
const defaultMetal = "silver"

type metalData struct {
	To string `json:"to"`
}

// metal applies an event that sets the metal of a workspace.
func (b *Books) metal(e recorded) string {
	var data metalData
	if e.Type != "BooksMetalSet" {
		return unknownType
	}
	reason := decoded(e, &data)
	if reason == "" {
		e.workspace.metal = cmp.Or(data.To, defaultMetal)
	}
	return reason
}

// period applies an event of closed periods.
func (b *Books) period(e recorded) string {
	var data struct {
		From    *unit.Date `json:"from"`
		Through unit.Date  `json:"through"`
		Digest  string     `json:"digest"`
	}
	if reason := decoded(e, &data); reason != "" {
		return reason
	}
	from := firstDay
	if data.From != nil {
		from = *data.From
	}
	switch w := e.workspace; e.Type {
	case "PeriodClosed":
		w.seals = append(w.seals, Seal{from, data.Through, e.Position, data.Digest})
		b.rule(w.doubt != 0 || b.closings(w, data.Through) == data.Digest, e, 0, 0, "the digest of a closed period is not that of the balances")
	case "PeriodReopened":
		kept := w.seals[:0]
		for _, s := range w.seals {
			if s.Through != data.Through {
				kept = append(kept, s)
			}
		}
		w.seals = kept
	default:
		return unknownType
	}
	return ""
}

// withoutNUL removes the NULs from the texts of a payload (docs/books.md).
func withoutNUL(data []byte) []byte {
	if !strings.Contains(string(data), `\u0000`) {
		return data
	}
	kept := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		switch {
		case data[i] != '\\' || i+1 == len(data):
			kept = append(kept, data[i])
		case strings.HasPrefix(string(data[i:min(len(data), i+6)]), `\u0000`):
			i += 5
		default:
			kept = append(kept, data[i], data[i+1])
			i++
		}
	}
	return kept
}

// Findings returns a sentence for each breach and doubt.
func (b *Books) Findings() (all []string) {
	for _, f := range b.Breaches {
		all = append(all, fmt.Sprintf("RULE BROKEN at position %d%s: %s.", f.Position, about(f.Account, f.Row), f.Text))
	}
	for _, d := range b.Doubts {
		of := about(d.Account, 0)
		switch {
		case d.Account != 0:
		case d.Workspace != uuid.Nil:
			of = ", all accounts of the workspace " + d.Workspace.String()
		default:
			of = ", all accounts"
		}
		all = append(all, fmt.Sprintf("CANNOT TELL from position %d on%s: of the event %q in %q, %s.", d.Position, of, d.Type, d.Stream,
			d.Reason))
	}
	return all
}

// about returns text that names an account and a row, as far as they are known.
func about(account, row int64) (words string) {
	if account != 0 {
		words = fmt.Sprintf(", account %d", account)
	}
	if row != 0 {
		words += fmt.Sprintf(", row %d", row)
	}
	return words
}

func (d *Difference) String() string {
	words := strings.TrimPrefix(about(d.Account, d.Row), ", ")
	if d.Position != 0 {
		words += fmt.Sprintf(", newest event at position %d", d.Position)
	}
	return strings.TrimPrefix(words+": ", ": ") + d.Text
}
