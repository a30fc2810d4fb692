package replay_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/replay"
	"bahi/domain/unit"
	"bahi/internal/test/python"
	"bahi/internal/test/worktest"
)

var update = flag.Bool("update", false, "write the test vectors")

const (
	vectorsFile = "testdata/books.ndjson"
	vectors     = 200
)

// vector is a small book with the digest of its text.
type vector struct {
	Seed    uint64         `json:"seed"`
	AsOf    *unit.Date     `json:"as_of,omitempty"`
	KnownAt event.Position `json:"known_at,omitempty"`
	Events  [][4]string    `json:"events"` // stream, type, data and metadata of the events from position 1 on
	SHA256  string         `json:"sha256"` // of the text with rows
}

// text returns the text of the books.
func (v vector) text(t *testing.T) string {
	t.Helper()
	b := v.books()
	var text bytes.Buffer
	require.NoError(t, b.Write(replay.Header{Position: b.Position, AsOf: v.AsOf, KnownAt: v.KnownAt},
		func(l replay.Line) error { return l.Print(&text, true) }))
	return text.String()
}

func (v vector) books() *replay.Books {
	b := replay.New(v.KnownAt)
	for i, e := range v.Events {
		if !b.Add(event.Stored{Position: event.Position(i + 1), Stream: e[0], Type: e[1], Data: []byte(e[2]), Meta: []byte(e[3])}) {
			break
		}
	}
	return b
}

func TestVectors(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	lines := json.NewEncoder(&all)
	lines.SetEscapeHTML(false)
	for seed := uint64(1); seed <= vectors; seed++ {
		v := randomBook(seed)
		sum := sha256.Sum256([]byte(v.text(t)))
		v.SHA256 = hex.EncodeToString(sum[:])
		require.NoError(t, lines.Encode(v))
	}
	if *update {
		require.NoError(t, os.WriteFile(vectorsFile, all.Bytes(), 0o600))
	}
	stored := worktest.File(t, vectorsFile)
	require.Equal(t, len(stored), all.Len(), "go test -update writes the vectors")
	require.True(t, bytes.Equal(stored, all.Bytes()), "go test -update writes the vectors")
	require.Less(t, len(stored), 2_000_000)
}

func TestPythonHasTheSameBooks(t *testing.T) {
	t.Parallel()
	python.Need(t)
	out, err := exec.CommandContext(t.Context(), "python3", "../../../docs/replay.py", "--vectors", vectorsFile).CombinedOutput()
	require.NoError(t, err, "%.2000s", out)
	require.Equal(t, fmt.Sprintf("%d of %d books have the digests of the vectors.\n", vectors, vectors), string(out))
	program := worktest.File(t, "../../../docs/replay.py")
	require.LessOrEqual(t, bytes.Count(program, []byte("\n")), 500)
}

// maker makes the events of a random book.
type maker struct {
	*rand.Rand

	vector

	workspaces []uuid.UUID
	accounts   []made
	rows       []madeRow
	orders     []made
	takadas    int
}

type made struct {
	id        int
	ledger    string
	workspace uuid.UUID
}

type madeRow struct {
	made

	account int
}

var prefixes = map[string]string{"bank": "BankAccount", "bullion": "BullionAccount", "client": "Client", "karigar": "Karigar",
	"polisher": "Polisher"}

// event adds an event that more follow in its transaction.
func (m *maker) event(stream, kind, data string, workspace uuid.UUID, more int) {
	meta := fmt.Sprintf(`{"schema":1,"workspace":%q}`, workspace)
	if more > 0 {
		meta = fmt.Sprintf(`{"schema":1,"workspace":%q,"more":%d}`, workspace, more)
	}
	m.Events = append(m.Events, [4]string{stream, kind, data, meta})
}

func (m *maker) pick(words string) string {
	all := strings.Fields(words)
	return all[m.IntN(len(all))]
}

func (m *maker) day() string {
	return unit.Date(20_000 + m.IntN(900)).String() // from 2024-10-04
}

// number returns a decimal number with up to so many places.
func (m *maker) number(places int) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.*f", m.IntN(places+1), m.Float64()*1e4+1), "0"), ".")
}

// entries returns a side, whose fields need not make sense together.
func (m *maker) entries(ledger string) string {
	var all []string
	for range m.IntN(4) {
		e := []string{}
		field := func(name, value string) {
			if m.IntN(3) > 0 {
				e = append(e, fmt.Sprintf("%q:%s", name, value))
			}
		}
		if ledger == "bullion" {
			field("kind", m.pick(`"metal" "cash" "rate_cut" "rate_cut"`))
		}
		field("description", m.pick(`"rent" "चांदी" "a\u0026b" "\"x\\" "a\u0000b" "\\u0000" "é" "\u00e9"`))
		for _, weight := range []string{"weight", "fine_weight", "wastage_weight", "loss_weight"} {
			field(weight, m.number(3))
		}
		if m.IntN(4) == 0 {
			field("rate", m.number(2))
			field("metal", m.pick(`"gold" "silver"`))
		}
		for _, amount := range []string{"amount", "making_charge", "other"} {
			field(amount, m.pick(m.number(2)+" "+m.number(2)+" null 0 9999999999999.99"))
		}
		all = append(all, "{"+strings.Join(e, ",")+"}")
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (m *maker) open(ledger string, workspace uuid.UUID) {
	a := made{len(m.accounts) + 1, ledger, workspace}
	m.accounts = append(m.accounts, a)
	m.event(fmt.Sprint(ledger, "-", a.id), prefixes[ledger]+"Opened", `{"name":"A"}`, workspace, 0)
}

// row adds a row to an account.
func (m *maker) row(a made, more int, rest string) madeRow {
	r := madeRow{made{len(m.rows)*3 + 5, a.ledger, a.workspace}, a.id}
	m.rows = append(m.rows, r)
	m.change(r, "Added", fmt.Sprintf(`{"account":%d,"date":%q,"in_entries":%s,"out_entries":%s%s}`, a.id, m.day(), m.entries(a.ledger),
		m.entries(a.ledger), rest), more)
	return r
}

func (m *maker) change(r madeRow, kind, data string, more int) {
	m.event(fmt.Sprint(r.ledger, "row-", r.id), strings.TrimSuffix(prefixes[r.ledger], "Account")+"Row"+kind, data, r.workspace, more)
}

// step adds the events of one change.
func (m *maker) step() {
	r, other := m.rows[m.IntN(len(m.rows))], m.rows[m.IntN(len(m.rows))]
	workspace := m.workspaces[m.IntN(len(m.workspaces))]
	switch m.IntN(22) {
	case 0:
		m.change(r, "Edited", fmt.Sprintf(`{"date":%q}`, m.day()), 0)
	case 1:
		m.change(r, "Edited", fmt.Sprintf(`{"%s":%s}`, m.pick("in_entries out_entries"), m.entries(r.ledger)), 0)
	case 2:
		m.change(r, "Edited", fmt.Sprintf(`{ "out_entries" : %s, "in_entries":null,"date":%q }`, m.entries(r.ledger), m.day()), 0)
	case 3:
		m.change(r, "Deleted", `{}`, 0)
	case 4:
		m.change(r, "Voided", `{}`, 0)
	case 5, 6:
		by := m.row(m.accounts[r.account-1], 1, fmt.Sprintf(`,"reverses":%d`, r.id))
		m.change(r, "Reversed", fmt.Sprintf(`{"by":%d}`, by.id), 0)
	case 7:
		m.change(r, "Paired", fmt.Sprintf(`{"with":%d,"account":%d}`, other.id, other.account), 1)
		m.change(other, "Paired", fmt.Sprintf(`{"with":%d,"account":%d}`, r.id, r.account), 0)
	case 8:
		m.change(r, "Unpaired", `{}`, 0)
	case 9:
		m.event("bookslock-"+workspace.String(), "BooksLockMoved", `{"from":null,"to":`+m.pick(`null "2025-03-31" "2024-12-31"`)+`}`,
			workspace, 0)
	case 10:
		from := unit.Date(20_000 + m.IntN(400))
		m.event("period-"+workspace.String(), "PeriodClosed", fmt.Sprintf(`{"from":%q,"through":%q,"digest":"ab"}`, from,
			from+unit.Date(m.IntN(200))), workspace, 0)
	case 11:
		o := made{len(m.orders) + 1, "clientorder", workspace}
		m.orders = append(m.orders, o)
		m.event(fmt.Sprint("clientorder-", o.id), "ClientOrderAdded", fmt.Sprintf(
			`{"client_id":%d,"date":%q,"items":[{"weight":%s},{"weight":1.5}]}`, 1+m.IntN(len(m.accounts)), m.day(), m.number(3)), workspace, 0)
	case 12, 13:
		if len(m.orders) > 0 {
			m.takadas++
			m.event(fmt.Sprint("takada-", m.takadas), "TakadaAdded", fmt.Sprintf(
				`{"client_order_id":%d,"date":%q,"items":[{"weight":%s,"karigar_id":%d},{"weight":2,"karigar_id":null}]}`,
				1+m.IntN(len(m.orders)), m.day(), m.number(3), 1+m.IntN(len(m.accounts))), workspace, 0)
		}
	case 14:
		if len(m.orders) > 0 && m.takadas > 0 {
			m.event(fmt.Sprint("clientorder-", 1+m.IntN(len(m.orders))), m.pick("ClientOrderEdited ClientOrderDeleted"),
				`{"slip_number":null}`, workspace, 1)
			m.event(fmt.Sprint("takada-", 1+m.IntN(m.takadas)), m.pick("TakadaEdited TakadaDeleted"), `{"items":[{"weight":3}]}`,
				workspace, 0)
		}
	case 15:
		if a := m.accounts[m.IntN(len(m.accounts))]; m.IntN(4) == 0 {
			m.event(fmt.Sprint(a.ledger, "-", a.id), prefixes[a.ledger]+"Deleted", `{}`, a.workspace, 0)
		}
	case 17:
		if a := m.accounts[m.IntN(len(m.accounts))]; a.ledger != "bank" {
			m.event(fmt.Sprint(a.ledger, "-", a.id), prefixes[a.ledger]+"MetalChanged", `{"from":"","to":"`+m.pick("gold platinum")+`"}`,
				a.workspace, 0)
		}
	case 18:
		m.event("booksmetal-"+workspace.String(), "BooksMetalSet", `{"from":"silver","to":"gold"}`, workspace, 0)
	case 16:
		m.event("message-1", "MessageSent2", `{"text":1}`, workspace, 0)
	default:
		m.row(m.accounts[m.IntN(len(m.accounts))], 0, "")
	}
}

// doubt adds an event that cannot be read.
func (m *maker) doubt() {
	r := m.rows[m.IntN(len(m.rows))]
	switch m.IntN(5) {
	case 0:
		m.change(r, "Split", `{}`, 0)
	case 1:
		m.event(fmt.Sprint(r.ledger, "row-", 999), "Unheard", `{}`, r.workspace, 0)
	case 2:
		m.event("memo-1", "MemoWritten", `{}`, r.workspace, 0)
	case 3:
		m.change(r, "Edited", `{"in_entries":[{"amount":"7"}]}`, 0)
	default:
		m.change(r, "Edited", `{"date":"2025-02-01"}`, 0)
		m.Events[len(m.Events)-1][3] = fmt.Sprintf(`{"schema":2,"workspace":%q}`, r.workspace)
	}
}

// randomBook returns a book without its digest.
func randomBook(seed uint64) vector {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 42)), vector: vector{Seed: seed}}
	for i := range 1 + m.IntN(2) {
		m.workspaces = append(m.workspaces, uuid.UUID{0: byte(7 - i), 6: 0x40, 8: 0x80, 15: byte(seed)})
	}
	for range 2 + m.IntN(4) {
		m.open(m.pick("bank bullion client karigar polisher"), m.workspaces[m.IntN(len(m.workspaces))])
	}
	m.row(m.accounts[0], 0, "")
	for range 10 + m.IntN(25) {
		m.step()
	}
	if seed%8 == 0 {
		m.doubt()
		m.step()
	}
	if seed%3 == 0 {
		m.KnownAt = event.Position(5 + m.IntN(len(m.Events)))
	}
	if seed%5 == 0 {
		m.AsOf = new(unit.Date(20_000 + m.IntN(900)))
	}
	return m.vector
}
