package ledger_test

import (
	"bytes"
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

// asks returns a function that converts the sides of a row to input.
func asks[In, Out book.Entry](in, out string) (asked book.RowInput, err error) {
	ins, err := book.EntriesOf[In](book.StoredSide(in, book.Effect{}))
	outs, wrong := book.EntriesOf[Out](book.StoredSide(out, book.Effect{}))
	return book.RowInput{Date: &booktest.Today, In: book.Entries(ins), Out: book.Entries(outs)}, errors.Join(err, wrong)
}

var asked = map[string]func(in, out string) (book.RowInput, error){
	"bank": asks[bank.Entry, bank.Entry], "bullion": asks[bullion.Entry, bullion.Entry], "client": asks[client.In, client.Out],
	"karigar": asks[karigar.In, karigar.Out], "polisher": asks[polisher.In, polisher.Out],
}

func TestLaws(t *testing.T) {
	t.Parallel()
	for l, laws := range map[*book.Ledger]func(*testing.T, *book.Ledger){
		bank.Ledger: booktest.Laws[bank.Entry, bank.Entry], bullion.Ledger: booktest.Laws[bullion.Entry, bullion.Entry],
		client.Ledger: booktest.Laws[client.In, client.Out], karigar.Ledger: booktest.Laws[karigar.In, karigar.Out],
		polisher.Ledger: booktest.Laws[polisher.In, polisher.Out],
	} {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			laws(t, l)
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
		in, err := asked[want.Ledger](string(want.In), string(want.Out))
		require.NoError(t, err, "%s", line)
		l := ledger.Named(want.Ledger)
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
	require.Len(t, tried, len(ledger.All))
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
	require.Len(t, tried, len(ledger.All))
}
