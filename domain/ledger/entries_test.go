package ledger_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/polisher"
	"bahi/domain/unit"
	"bahi/internal/test/booktest"
	"bahi/internal/test/worktest"
)

// golden is a line of entries.ndjson: the sides of a new row, and either its stored entries with their net effect, or its faults.
type golden struct {
	What                string
	Ledger              string
	In, Out             json.RawMessage
	Faults              []string
	StoredIn, StoredOut json.RawMessage
	Warnings            json.RawMessage
	Cash                unit.Money
	Fine                unit.Grams
}

func TestLaws(t *testing.T) {
	t.Parallel()
	tests := map[*book.Ledger]func(*testing.T, *book.Ledger){
		bank.Ledger: booktest.Laws[bank.Entry, bank.Entry], bullion.Ledger: booktest.Laws[bullion.Entry, bullion.Entry],
		client.Ledger: booktest.Laws[client.In, client.Out], karigar.Ledger: booktest.Laws[karigar.In, karigar.Out],
		polisher.Ledger: booktest.Laws[polisher.In, polisher.Out],
	}
	for _, l := range ledger.All {
		require.Contains(t, tests, l, "add ledger %s to the tests", l.Name)
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			tests[l](t, l)
		})
	}
}

func TestEntriesOfEveryLedger(t *testing.T) {
	t.Parallel()
	text := worktest.File(t, "testdata/entries.ndjson")
	tried := map[string]int{}
	for line := range bytes.Lines(text) {
		var want golden
		require.NoError(t, json.Unmarshal(line, &want), "%s", line)
		tried[want.Ledger]++
		l := ledger.Named(want.Ledger)
		in, err := l.Input(&booktest.Today, side(want.In), side(want.Out))
		require.NoError(t, err, "%s", line)
		events, err := book.AddRow{Ledger: l, Account: 4, Today: booktest.Today, RowInput: in}.Decide(book.Row{})
		got := golden{What: want.What, Ledger: want.Ledger, In: want.In, Out: want.Out}
		if refused, ok := errors.AsType[*fault.Error](err); ok {
			for _, f := range refused.Fields {
				got.Faults = append(got.Faults, f.Field+": "+f.Message)
			}
			require.Equal(t, want, got)
			continue
		}
		require.NoError(t, err, "%s", line)
		added := events[0].(book.RowAdded)
		net := added.In.Effect.Minus(added.Out.Effect)
		got.StoredIn, got.StoredOut, got.Cash, got.Fine = stored(added.In), stored(added.Out), net.Cash, net.Fine
		if added.Warnings != "" {
			got.Warnings = json.RawMessage(added.Warnings)
		}
		require.Equal(t, want, got)
	}
	for _, l := range ledger.All {
		require.NotZero(t, tried[l.Name], "testdata/entries.ndjson has no line of ledger %s: add some", l.Name)
	}
}

// side returns a side of a request; "[]" for none.
func side(entries json.RawMessage) json.RawMessage {
	return json.RawMessage(cmp.Or(string(entries), "[]"))
}

// stored returns the stored entries of a side, nil for none.
func stored(s book.Side) json.RawMessage {
	if text := s.JSON(); string(text) != "[]" {
		return text
	}
	return nil
}

// A reversal exchanges the sides, in the form of the other side's entries.
func TestReversalsOfEveryLedger(t *testing.T) {
	t.Parallel()
	text := worktest.File(t, "testdata/reversals.ndjson")
	tried := map[string]bool{}
	for line := range bytes.Lines(text) {
		var row struct {
			Ledger                 string
			In, Out, NewIn, NewOut json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &row), "%s", line)
		tried[row.Ledger] = true
		newIn, newOut, err := ledger.Named(row.Ledger).Mirror(book.StoredSide(string(row.In), book.Effect{}),
			book.StoredSide(string(row.Out), book.Effect{}))
		require.NoError(t, err)
		require.Equal(t, []string{string(row.NewIn), string(row.NewOut)}, []string{string(newIn.JSON()), string(newOut.JSON())}, "%s", line)
	}
	for _, l := range ledger.All {
		require.NotZero(t, tried[l.Name], "testdata/reversals.ndjson has no line of ledger %s: add some", l.Name)
	}
}
