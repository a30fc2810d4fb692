package ledgerhttp_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestARowIsTakenBackByOneThatMirrorsIt(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	today, clerk := apptest.TodayIn(t, o), o.Clerk(o.Home)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, `{"date":"2025-03-01","in_entries":[{"description":"sale","amount":12.5}],`+
		`"out_entries":[{"amount":2},{"amount":0.25}]}`)
	because := clerk.With("Bahi-Reason", "%E0%A4%97%E0%A4%B2%E0%A4%A4")
	because.POST(apptest.At(account, row.ID, "/reverse"), `{"date":"2025-02-01"}`).Status(422)
	require.Equal(t, `"0"`, clerk.GET(apptest.At(account, row.ID)).Header("ETag"), "a refused reversal changes no row")
	a := because.With("If-Match", `"0"`).POST(apptest.At(account, row.ID, "/reverse"), nil).Status(201)
	back := apitest.Read[apptest.BankRow](a)
	a.Body(fmt.Sprintf(`{"id":%d,"date":%q,"in_entries":[{"amount":2},{"amount":0.25}],"out_entries":[{"description":"sale",`+
		`"amount":12.5}],"revision":0,"reverses":%d}`,
		back.ID, today, row.ID))
	require.Equal(t, `"0"`, a.Header("ETag"))

	require.Equal(t, `"1"`, clerk.GET(apptest.At(account, row.ID)).Contains(`"reversed_by"`).Header("ETag"))
	clerk.GET(apptest.At(account, back.ID)).Status(200).JSON(&back)
	require.Equal(t, "0", back.Balance.String())
	require.Equal(t, row.ID, back.Reverses)
	rows := apitest.Read[[]apptest.BankRow](clerk.GET(apptest.Ledger(account)).Status(200))
	require.Len(t, rows, 2)
	require.Equal(t, back.ID, rows[0].ReversedBy)
	require.Equal(t, "10.25", rows[0].Balance.String(), "its own day stays as it was")

	h := apitest.Read[[]apptest.Change](clerk.GET(apptest.At(account, row.ID, "/history")).Status(200))
	require.Equal(t, []string{"added", "reversed"}, []string{h[0].Change, h[1].Change})
	require.Equal(t, "गलत", h[1].Reason)
	require.Equal(t, back.ID, h[1].After.ReversedBy)
	require.Zero(t, h[1].Before.ReversedBy)
	require.Equal(t, a.Header("Bahi-Position"), strconv.FormatInt(h[1].Position, 10))
	position := h[1].Position
	h = nil
	clerk.GET(apptest.At(account, back.ID, "/history")).Status(200).JSON(&h)
	require.Len(t, h, 1)
	require.Equal(t, apptest.Change{Position: position - 1, At: h[0].At, Actor: h[0].Actor, Reason: "गलत", Change: "added",
		After: h[0].After}, h[0])
	require.Equal(t, row.ID, h[0].After.Reverses)

	already := fmt.Sprintf("The row is reversed by row %d already", back.ID)
	refused := because.POST(apptest.At(account, row.ID, "/reverse"), nil).Problem(409, already, "reversed_by", already)
	require.Contains(t, refused.Text, fmt.Sprintf(`"id":%d}]`, back.ID), "the other row's id")
}

func TestACorrectionWantsAReasonADateThatMayBeAndARow(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	account := apptest.Open(clerk, "HDFC")
	row := apptest.Post(clerk, account, apptest.Deposit("2025-03-10", "1"))
	reverse, void := apptest.At(account, row.ID, "/reverse"), apptest.At(account, row.ID, "/void")
	many := apptest.Ledger(account, "/rows/reverse")
	for _, c := range []struct{ path, body, field, why string }{
		{reverse, ``, "reason", "is required, here or in the header Bahi-Reason"},
		{void, ``, "reason", "is required, here or in the header Bahi-Reason"},
		{reverse, `{"reason":"  "}`, "reason", "is required, here or in the header Bahi-Reason"},
		{reverse, `{"reason":"a\u0007"}`, "reason", "control characters are not allowed"},
		{many, `{"reason":"x","rows":[]}`, "rows", "at least one row is needed"},
		{many, fmt.Sprintf(`{"reason":"x","rows":[%d,%d]}`, row.ID, row.ID), "rows[1]", "is named twice"},
	} {
		clerk.POST(c.path, c.body).Problem(422, "Validation error", c.field, c.why)
	}
	clerk.With("Bahi-Reason", "y").POST(reverse, `{"reason":"x"}`).Problem(422, "Validation error", "reason",
		"differs from the header Bahi-Reason")
}
