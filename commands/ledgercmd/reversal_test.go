package ledgercmd_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/fault"
	"bahi/domain/ledger/bank"
	"bahi/domain/ledger/book"
	"bahi/readmodels/ledgerview"
)

func (n *node) reverse(t *testing.T, req commands.Request, account int64, rows ...int64) (ledgercmd.Posted, error) {
	return ledgercmd.ReverseRows(t.Context(), req, n.Books, bank.Ledger, account, ledgercmd.Reversal{Rows: rows})
}

// balance is what the account amounts to.
func (o *office) balance(t *testing.T, account int64) string {
	t.Helper()
	a, err := o.views.Account(t.Context(), nil, ledgerview.AccountKey{Workspace: workspace, Ledger: bank.Ledger, ID: account}, ledgerview.As{})
	require.NoError(t, err)
	return a.Cash.String()
}

func TestRowsAreReversedTogetherAndKnowOfEachOther(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account := n.open(t)
	one, kept, two := n.add(t, account, today-3), n.add(t, account, today-2), n.add(t, account, today-1)
	before := o.head(t)
	out, err := n.reverse(t, as(t), account, two, one)
	require.NoError(t, err)
	require.Equal(t, []int{3, 2, 1, 0}, o.after(t, before), "one transaction")
	require.Equal(t, "1", o.balance(t, account))
	for i, old := range []int64{two, one} {
		back := o.row(t, account, out.First+int64(i))
		require.Equal(t, old, back.Reverses)
		require.Equal(t, today, back.Date)
		require.JSONEq(t, `[{"amount":1}]`, string(back.Out.JSON()))
		require.JSONEq(t, `[]`, string(back.In.JSON()))
		require.Equal(t, out.First+int64(i), o.row(t, account, old).ReversedBy)
		require.EqualValues(t, 1, o.row(t, account, old).Revision)
		require.Equal(t, []string{"BankRowAdded", "BankRowReversed"}, o.names(t, bank.Ledger.Rows.Stream(idText(old))))
		require.Equal(t, []string{"BankRowAdded"}, o.names(t, bank.Ledger.Rows.Stream(idText(out.First+int64(i)))))
	}
	require.Zero(t, o.row(t, account, kept).ReversedBy)
	o.agree(t)

	again, err := n.reverse(t, as(t), account, out.First)
	require.NoError(t, err, "a reversal can be reversed")
	require.Equal(t, "2", o.balance(t, account))
	_, err = o.node(t).reverse(t, as(t), account, kept, out.First)
	require.ErrorIs(t, err, fault.Newf(fault.Conflict, "Row %d: The row is reversed by row %d already", out.First, again.First))
	_, err = o.node(t).reverse(t, as(t), account, one)
	require.ErrorIs(t, err, fault.Newf(fault.Conflict, "The row is reversed by row %d already", out.First+1))
	require.Zero(t, o.row(t, account, kept).ReversedBy, "all or none")
	o.agree(t)
}

// Clerks take overlapping groups back at once: each row is taken back once, and each group as a whole or not at all.
func TestOverlappingReversalsAreAllOrNone(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	nodes := []*node{o.node(t), o.node(t), o.node(t)}
	account := nodes[0].open(t)
	rows := make([]int64, 6)
	for i := range rows {
		rows[i] = nodes[0].add(t, account, today)
	}
	groups := [][]int64{{rows[0], rows[1], rows[2]}, {rows[2], rows[3], rows[4]}, {rows[4], rows[5], rows[0]}}
	errs := make([]error, len(groups))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { _, errs[i] = n.reverse(t, as(t), account, groups[i]...) })
	}
	all.Wait()
	succeeded := 0
	for i := range nodes {
		if errs[i] == nil {
			succeeded++
			continue
		}
		refused := &fault.Error{}
		require.ErrorAs(t, errs[i], &refused)
		require.Contains(t, []fault.Kind{fault.Conflict, fault.Unavailable}, refused.Kind)
	}
	require.LessOrEqual(t, succeeded, 1, "any two of them share a row")
	require.Equal(t, idText(int64(len(rows)-3*succeeded)), o.balance(t, account))
	o.agree(t)
}

func TestAReversalIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	n := o.node(t)
	account, elsewhere := n.open(t), n.open(t)
	row, other, gone, void := n.add(t, account, today), n.add(t, elsewhere, today), n.add(t, account, today), n.add(t, account, today)
	_, err := ledgercmd.DeleteRow(t.Context(), as(t), n.Books, bank.Ledger, account, gone)
	require.NoError(t, err)
	_, err = ledgercmd.VoidRow(t.Context(), as(t), n.Books, bank.Ledger, account, void)
	require.NoError(t, err)
	before := o.head(t)
	stale := func(r *commands.Request) { r.IfMatch = new(int64(7)) }
	foreign := func(r *commands.Request) { r.Workspace = stranger }
	silent := func(r *commands.Request) { r.Reason = " " }
	for sentence, c := range map[string]struct {
		ctx  func(*commands.Request)
		rows []int64
		want error
	}{
		"a deleted row":          {keyed, []int64{gone}, bank.Ledger.NoRow},
		"no such row":            {keyed, []int64{999}, bank.Ledger.NoRow},
		"a void row":             {keyed, []int64{void}, book.ErrVoid},
		"another account's":      {keyed, []int64{other}, bank.Ledger.NoRow},
		"one of them":            {keyed, []int64{row, other}, fault.Newf(fault.NotFound, "Row %d: Bank ledger row not found", other)},
		"another workspace's":    {foreign, []int64{row}, bank.Ledger.NoRow},
		"a revision that is old": {stale, []int64{row}, commands.ErrStale},
		"no reason": {silent, []int64{row},
			fault.Fields(fault.Field{Field: "reason", Message: "is required, here or in the header Bahi-Reason"})},
		"no rows":                 {keyed, nil, fault.Fields(fault.Field{Field: "rows", Message: "at least one row is needed"})},
		"a row twice":             {keyed, []int64{row, row}, fault.Fields(fault.Field{Field: "rows[1]", Message: "is named twice"})},
		"a thousand and one rows": {keyed, make([]int64, 1001), fault.Fields(fault.Field{Field: "rows", Message: "at most 1000 rows"})},
	} {
		_, err := n.reverse(t, as(t, c.ctx), account, c.rows...)
		require.ErrorIs(t, err, c.want, sentence)
		require.Equal(t, before, o.head(t), sentence)
	}
	out, err := n.reverse(t, as(t, dryRun), account, row)
	require.NoError(t, err)
	require.Equal(t, ledgercmd.Posted{Rows: []book.Row{{Account: account, Date: today, Out: booked(1), Reverses: row}}}, out)
	require.Equal(t, before, o.head(t))
	_, err = n.reverse(t, as(t, func(r *commands.Request) { r.IfMatch = new(int64(0)) }), account, row)
	require.NoError(t, err)
}
