package replay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/ledger/replay"
)

var home = uuid.MustParse("11111111-1111-4111-8111-111111111111")

// book returns a maker with two bank accounts. The first one has row 5.
func book() *maker {
	m := &maker{}
	m.open("bank", home)
	m.open("bank", home)
	m.rows = append(m.rows, madeRow{made{5, "bank", home}, 1})
	m.change(m.rows[0], "Added", `{"account":1,"date":"2025-03-31","in_entries":[{"amount":12.5}]}`, 0)
	return m
}

// TestTheVectorsHaveEachCase fails when the random books become too simple.
func TestTheVectorsHaveEachCase(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for seed := uint64(1); seed <= vectors; seed++ {
		all.WriteString(randomBook(seed).text(t))
	}
	for _, text := range []string{
		" void ", "unknown account", "unknown trial", "seal ", "order ", "takada ", " gold\n", " platinum\n", "locked 2025", "account bank ",
		"account bullion ", "account client ", "account karigar ", "account polisher ", "as_of 20", "known_at 1",
	} {
		require.True(t, strings.Contains(all.String(), text), text) //nolint:testifylint // the text is long
	}
}

func TestEachKindOfStreamIsKnown(t *testing.T) {
	t.Parallel()
	for _, info := range domain.Catalogue.All() {
		m := book()
		m.event(info.Category+"-1", "Nothing", `{}`, home, 0)
		for _, found := range m.books().Findings() {
			require.NotContains(t, found, "its kind of stream is unknown",
				"add %s to unrelated in replay.go, or a ledger to ledgers", info.Category)
		}
	}
}

func TestBrokenRulesAreNamed(t *testing.T) {
	t.Parallel()
	lock := func(m *maker) {
		m.event("bookslock-"+home.String(), "BooksLockMoved", `{"from":null,"to":"2025-03-31"}`, home, 0)
	}
	row := func(m *maker, data string) {
		m.rows = append(m.rows, madeRow{made{6, "bank", home}, 1})
		m.change(m.rows[1], "Added", data, 0)
	}
	reverse := func(m *maker) {
		row(m, `{"account":1,"date":"2025-04-01","out_entries":[{"amount":12.5}],"reverses":5}`)
		m.change(m.rows[0], "Reversed", `{"by":6}`, 0)
	}
	for text, do := range map[string]func(*maker){
		"": func(m *maker) { reverse(m); lock(m) },
		"RULE BROKEN at position 5, account 1, row 6: a row on a locked date is written.": func(m *maker) {
			lock(m)
			row(m, `{"account":1,"date":"2025-03-30"}`)
		},
		"RULE BROKEN at position 5, account 1, row 5: a row on a locked date is written.": func(m *maker) {
			lock(m)
			m.change(m.rows[0], "Edited", `{"date":"2025-04-01"}`, 0)
		},
		"RULE BROKEN at position 5, account 1, row 6: a row is written on an account that is not open.": func(m *maker) {
			m.event("bank-1", "BankAccountDeleted", `{}`, home, 0)
			row(m, `{"account":1,"date":"2025-03-30"}`)
		},
		"RULE BROKEN at position 4, account 9, row 6: a row is written on an account that is not open.": func(m *maker) {
			row(m, `{"account":9,"date":"2025-03-30"}`)
		},
		"RULE BROKEN at position 6, account 1, row 5: a row that is reversed or void is reversed.": func(m *maker) {
			reverse(m)
			m.change(m.rows[0], "Reversed", `{"by":6}`, 0)
		},
		"RULE BROKEN at position 4, account 1, row 5: a row is reversed by a row that does not name it.": func(m *maker) {
			m.change(m.rows[0], "Reversed", `{"by":7}`, 0)
		},
		"RULE BROKEN at position 5, account 1, row 5: a settled row is changed.": func(m *maker) {
			m.change(m.rows[0], "Voided", `{}`, 0)
			m.change(m.rows[0], "Edited", `{"date":"2025-04-01"}`, 0)
		},
		"RULE BROKEN at position 4, account 1, row 5: a row is added twice.": func(m *maker) {
			m.change(m.rows[0], "Added", `{"account":1,"date":"2025-04-01"}`, 0)
		},
		"RULE BROKEN at position 4, row 6: a row that was never added is changed.": func(m *maker) {
			m.change(madeRow{made{6, "bank", home}, 1}, "Voided", `{}`, 0)
		},
		"RULE BROKEN at position 4, account 2, row 6: a row reverses one that is not of its account.": func(m *maker) {
			row(m, `{"account":2,"date":"2025-04-01","reverses":5}`)
		},
		"RULE BROKEN at position 4: the digest of a closed period is not that of the balances.": func(m *maker) {
			m.event("period-"+home.String(), "PeriodClosed", `{"from":null,"through":"2025-03-31","digest":"ab"}`, home, 0)
		},
		"RULE BROKEN at position 5, account 1: an account with a row on a locked date is deleted.": func(m *maker) {
			lock(m)
			m.event("bank-1", "BankAccountDeleted", `{"earliest_row":"2025-03-31"}`, home, 0)
		},
	} {
		m := book()
		do(m)
		require.Equal(t, text, strings.Join(m.books().Findings(), "\n"))
	}
}

func TestAnEventThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	for text, do := range map[string]func(*maker){
		`from position 4 on, account 1: of the event "BankRowSplit" in "bankrow-5", its type is unknown.`: func(m *maker) {
			m.change(m.rows[0], "Split", `{}`, 0)
		},
		`from position 4 on, account 2: of the event "BankAccountFrozen" in "bank-2", its type is unknown.`: func(m *maker) {
			m.event("bank-2", "BankAccountFrozen", `{}`, home, 0)
		},
		`from position 4 on, account 1: of the event "BankRowEdited" in "bankrow-5", its payload cannot be read.`: func(m *maker) {
			m.change(m.rows[0], "Edited", `{"date":7}`, 0)
		},
		`from position 4 on, account 1: of the event "BankRowEdited" in "bankrow-5", its entries cannot be read.`: func(m *maker) {
			m.change(m.rows[0], "Edited", `{"in_entries":[{"amount":1.234}]}`, 0)
		},
		`from position 4 on, all accounts of the workspace ` + home.String() + `: of the event "MemoWritten" in "memo-1", its kind of stream ` +
			`is unknown.`: func(m *maker) { m.event("memo-1", "MemoWritten", `{}`, home, 0) },
		`from position 4 on, all accounts of the workspace ` + home.String() + `: of the event "BooksLockShared" in "bookslock-1", its type ` +
			`is unknown.`: func(m *maker) { m.event("bookslock-1", "BooksLockShared", `{}`, home, 0) },
		`from position 4 on, all accounts: of the event "BankRowVoided" in "bankrow-5", its metadata cannot be read.`: func(m *maker) {
			m.change(m.rows[0], "Voided", `{}`, 0)
			m.Events[3][3] = `[]`
		},
		`from position 4 on, account 1: of the event "BankRowVoided" in "bankrow-5", its schema version 2 is unknown.`: func(m *maker) {
			m.change(m.rows[0], "Voided", `{}`, 0)
			m.Events[3][3] = strings.ReplaceAll(m.Events[3][3], `"schema":1`, `"schema":2`)
		},
	} {
		m := book()
		do(m)
		require.Equal(t, []string{"CANNOT TELL " + text}, m.books().Findings())
		require.Contains(t, m.text(t), "unknown account\n")
		m.KnownAt = 3
		require.Empty(t, m.books().Findings(), "before it, all is known")
		require.Contains(t, m.text(t), "closing bank 1 1250 0 1\n")
	}
}

func TestOtherAccountsAreComparedAllTheSame(t *testing.T) {
	t.Parallel()
	m := book()
	m.rows = append(m.rows, madeRow{made{6, "bank", home}, 2})
	m.change(m.rows[1], "Added", `{"account":2,"date":"2025-04-01","out_entries":[{"amount":1}]}`, 0)
	file := m.text(t)
	m.change(m.rows[0], "Split", `{}`, 0)
	compare := func(file string) *replay.Difference {
		text, err := replay.ReadText(strings.NewReader(file))
		require.NoError(t, err)
		d, err := m.books().Compare(text)
		require.NoError(t, err)
		return d
	}
	require.Nil(t, compare(file))
	require.Nil(t, compare(strings.ReplaceAll(file, "closing bank 1 1250", "closing bank 1 9")), "of account 1 nothing is known")
	require.EqualValues(t, 2, compare(strings.ReplaceAll(file, "closing bank 2 -100", "closing bank 2 100")).Account)
}

func TestATextThatIsCutOrTooLongDiffers(t *testing.T) {
	t.Parallel()
	m := book()
	file := m.text(t)
	for end := strings.Index(file, "\n") + 1; end < len(file); end++ {
		text, err := replay.ReadText(strings.NewReader(file[:end]))
		require.NoError(t, err)
		d, err := m.books().Compare(text)
		require.NoError(t, err)
		require.NotNil(t, d, file[:end])
	}
	for _, line := range []string{"row 7 2025-04-01\n", "x\n", "\n", "account bank 3 9\n"} {
		text, err := replay.ReadText(strings.NewReader(file + line))
		require.NoError(t, err)
		d, err := m.books().Compare(text)
		require.NoError(t, err)
		require.NotNil(t, d, line)
	}
	for _, first := range []string{"", "x", "bahi-books/v2 1 as_of - known_at -", "bahi-books/v1 x as_of - known_at -",
		"bahi-books/v1 1 as_of today known_at -", "bahi-books/v1 1 as_of - known_at x"} {
		_, err := replay.ReadText(strings.NewReader(first + "\n"))
		require.ErrorContains(t, err, "its first line", first)
	}
}

func TestATransactionIsKnownAsAWhole(t *testing.T) {
	t.Parallel()
	m := book()
	for more := 2; more >= 0; more-- {
		m.change(m.rows[0], "Edited", fmt.Sprintf(`{"in_entries":[{"amount":%d}]}`, more), more)
	}
	for known, closing := range map[event.Position]string{3: "1250", 4: "1250", 5: "1250", 6: "0"} {
		m.KnownAt = known
		require.Contains(t, m.text(t), "closing bank 1 "+closing+" 0 1\n")
	}
}

func TestRowsAreLeftOutOnRequest(t *testing.T) {
	t.Parallel()
	m := book()
	b := m.books()
	var text bytes.Buffer
	require.NoError(t, b.Write(replay.Header{Position: b.Position}, func(l replay.Line) error { return l.Print(&text, false) }))
	require.NotContains(t, text.String(), "row ")
	require.Contains(t, text.String(), "period 2024-04-01 2025-03-31 1 1250 0 ")
}
