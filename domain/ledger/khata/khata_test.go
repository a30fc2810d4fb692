package khata_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/bullion"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
	"bahi/internal/test/eventtest"
)

const today unit.Date = 20_000

var uploaded = khata.Uploaded{Pipeline: khata.V1, Blob: "khata/a", Type: "image/png", Size: 10, Later: true}

func open(*book.Ledger, int64) bool { return false }

func lines(t *testing.T, lines ...khata.Line) []khata.Asked {
	t.Helper()
	rows, err := khata.Lines(lines)
	require.NoError(t, err)
	return rows
}

func TestUploadIsReadOnce(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, khata.Kind)
	given.Case("it begins").When(khata.Upload{Uploaded: uploaded}).Then(uploaded)
	given.And(uploaded).Case("it is there already").When(khata.Upload{Uploaded: uploaded}).ThenFails(fault.New(fault.Conflict,
		"Khata upload exists already"))
	given.And(uploaded).Case("a page is noted").When(khata.NotePage{Page: 1, Of: 2}).Then(khata.PageRead{Page: 1, Of: 2})
	given.And(uploaded, khata.PageRead{Page: 1, Of: 2}).Case("a page is noted once").When(khata.NotePage{Page: 1, Of: 2}).ThenNothing()
	read := khata.Read{Engine: "tesseract", Pages: 2, Entries: 5}
	given.And(uploaded).Case("it is read").When(khata.Finish{Read: read}).Then(read)
	given.And(uploaded).Case("it cannot be read").When(khata.Finish{Reason: "broken"}).Then(khata.Failed{Reason: "broken"})
	given.And(uploaded, read).Case("it was read").When(khata.Finish{Reason: "broken"}).ThenNothing()
	given.And(uploaded, read).Case("it is removed").When(khata.Remove{}).Then(khata.Removed{})
	given.And(uploaded, read, khata.Removed{}).Case("it is removed once").When(khata.Remove{}).ThenNothing()
	given.Case("nothing is removed where nothing was uploaded").When(khata.Remove{}).ThenNothing()
}

func TestSubmissionNamesEveryFault(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, khata.Kind)
	good := khata.Line{Ledger: "bank", Account: 3, Side: "in", Date: today, Item: "cash", Amount: new(unit.Money(100))}
	posted := khata.Submitted{First: 7, Rows: 1}
	submit := khata.Submit{Submitted: posted}
	given.Case("without an upload").When(submit).Then(posted)
	of := submit
	of.Upload = true
	given.Case("of an unknown upload").When(of).ThenFails(khata.ErrNotFound)
	given.And(uploaded).Case("of one that is not read").When(of).ThenFails(khata.ErrNotRead)
	read := khata.Read{Engine: "text", Pages: 1}
	given.And(uploaded, read).Case("of an upload").When(of).Then(posted)
	given.And(uploaded, read, posted).Case("for the second time").When(of).ThenFails(khata.ErrSubmitted)

	rows := khata.PostRows{Today: today, Rows: lines(t, good), Closed: open}
	bad := rows
	bad.Rows = lines(t, good,
		khata.Line{Ledger: "karigar", Account: 4, Side: "in", Date: today, Item: "payal", Weight: new(unit.Grams(520_000))},
		khata.Line{Ledger: "bank", Account: 5, Side: "out", Date: today + 5, Amount: new(unit.Money(1))},
		khata.Line{Ledger: "client", Account: 6, Side: "out", Date: today - 9, Item: "nothing"})
	bad.Closed = func(_ *book.Ledger, account int64) bool { return account == 5 }
	bad.LockedThrough = new(today - 9)
	_, err := bad.Decide()
	refused := err.(*fault.Error) //nolint:errorlint // a test
	require.Equal(t, fault.Invalid, refused.Kind)
	var fields []string
	for _, f := range refused.Fields {
		fields = append(fields, f.Field)
	}
	require.Equal(t, []string{"entries[1].weight", "entries[2].date", "entries[2].account_id", "entries[3]", "entries[3].date"}, fields)

	locked := rows
	locked.LockedThrough = new(today)
	_, err = locked.Decide()
	refused = err.(*fault.Error) //nolint:errorlint // a test
	require.Equal(t, fault.Conflict, refused.Kind)
	require.Equal(t, []fault.Field{{Field: "entries[0].date", Message: "Books are locked through " + today.String()}}, refused.Fields)
}

func TestLinesBecomeTheEntriesOfTheirLedgers(t *testing.T) {
	t.Parallel()
	weight, touch, amount := new(unit.Grams(10_000)), new(unit.Percent(92_000)), new(unit.Money(500))
	rows := lines(t,
		khata.Line{Ledger: "karigar", Account: 1, Side: "in", Date: today, Item: "payal", Weight: weight, Touch: touch, Amount: amount},
		khata.Line{Ledger: "bullion", Account: 2, Side: "out", Date: today, Weight: weight, Touch: touch, Amount: amount},
		khata.Line{Ledger: "karigar", Account: 1, Side: "out", Date: today, Amount: amount},
		khata.Line{Ledger: "karigar", Account: 1, Side: "out", Date: today - 1, Amount: amount})
	require.Len(t, rows, 3)
	require.Equal(t, []int{0, 2}, rows[0].Of)
	posted, err := khata.PostRows{Today: today, Rows: rows, Closed: open}.Decide()
	require.NoError(t, err)
	require.JSONEq(t, `[{"item_name":"payal","pure_weight":10,"fine_percent":92,"fine_weight":9.2,"other":5,"computed":["fine_weight"]}]`,
		string(posted[0].In.JSON()))
	require.JSONEq(t, `[{"kind":"metal","weight":10,"touch":92,"fine_weight":9.2,"computed":["fine_weight"]},{"kind":"cash","amount":5}]`,
		string(posted[1].Out.JSON()))

	_, err = khata.Lines([]khata.Line{{Ledger: "polisher", Account: 1, Side: "in", Date: today, Weight: weight, Touch: touch},
		{Ledger: "bank", Account: 1, Side: "in", Date: today, Fine: weight}})
	require.ErrorContains(t, err, "entries[0].touch")
	require.ErrorContains(t, err, "entries[1].fine_weight")
	rows, err = khata.Lines([]khata.Line{{Ledger: "gold", Side: "in", Date: today}, {Ledger: "bank", Side: "in", Date: today}})
	require.NoError(t, err)
	khata.Arrange(rows)
	require.Len(t, rows, 1, "the schema has refused the other")
	_, err = khata.Lines(nil)
	require.ErrorContains(t, err, "entries: at least one is needed")
	_, err = khata.Lines(make([]khata.Line, 1001))
	require.ErrorContains(t, err, "at most 1000")
}

func TestRowsAreProposedInTheFormOfTheirLedgers(t *testing.T) {
	t.Parallel()
	entry := func(side, item string, ledger *book.Ledger, account int64) khatapage.Entry {
		e := khatapage.Entry{Side: side, Date: new(today), Item: &item, Party: new("Imran"), Weight: new(unit.Grams(10_000)),
			Touch: new(unit.Percent(92_000))}
		if ledger != nil {
			e.Ledger, e.Account = &ledger.Name, &account
		}
		return e
	}
	rows := khata.Rows([]khatapage.Entry{
		entry("in", "payal", karigar.Ledger, 4), entry("out", "silver", karigar.Ledger, 4), entry("in", "bar", bullion.Ledger, 5),
		entry("in", "x", nil, 0),
	})
	require.Len(t, rows, 3)
	require.JSONEq(t, `[{"item_name":"payal","pure_weight":10,"fine_percent":92}]`, string(rows[0].In))
	require.JSONEq(t, `[{"item_name":"silver","weight":10,"touch":92}]`, string(rows[0].Out))
	require.JSONEq(t, `[]`, string(rows[1].Out))
	require.Nil(t, rows[2].Ledger)
	require.JSONEq(t, `[{"item_name":"x","weight":10,"touch":92}]`, string(rows[2].In))
}
