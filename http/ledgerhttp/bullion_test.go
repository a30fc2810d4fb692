package ledgerhttp_test

import (
	"fmt"
	"testing"

	"bahi/internal/test/apptest"
)

// The example of CONTRACT.md 6.3: what was metal becomes money, and stays so whatever is sent back.
func TestARateCutMakesMoneyOfMetal(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	var dealer, row shown
	clerk.POST("/bullion", `{"name":"Zaveri Bazaar"}`).Status(201).JSON(&dealer)
	ledger := fmt.Sprint("/bullion-ledger/", dealer.ID)
	clerk.POST(ledger, `{"date":"2025-03-01","in_entries":[{"weight":100,"touch":100}]}`).Status(201)
	clerk.POST(ledger, `{"date":"2025-03-02","out_entries":[{"kind":"rate_cut","fine_weight":100,"rate":7000}]}`).Status(201).JSON(&row)
	one := fmt.Sprint(ledger, "/row/", row.ID)
	const cut = `{"kind":"rate_cut","fine_weight":100,"rate":7000,"rate_unit":"per_gram","amount":700000,"computed":["amount"]}`
	read := clerk.GET(one).Status(200)
	read.Body(fmt.Sprintf(`{"id":%d,"date":"2025-03-02","in_entries":[{"kind":"rate_cut","amount":700000,"counter":true}],"out_entries":[%s],
		"cash_balance":700000,"crystal_balance":0,"cash_position":"we_owe","crystal_position":"settled","revision":0}`, row.ID, cut))
	clerk.PUT(ledger, read.Text).Status(200).Body(fmt.Sprintf(`{"id":%d,"date":"2025-03-02","in_entries":[{"kind":"rate_cut",`+
		`"amount":700000,"counter":true}],"out_entries":[%s],"revision":0}`, row.ID, cut))
	clerk.PUT(ledger, fmt.Sprintf(`{"id":%d,"in_entries":[{"kind":"rate_cut","amount":1,"counter":true}]}`, row.ID)).
		Problem(422, "Validation error", "in_entries[0].counter", "take `counter` out to set it yourself")
	clerk.POST(ledger+"/rows", `{"rows":[{"date":"2025-03-02","out_entries":[{"kind":"rate_cut","fine_weight":1}]}]}`).
		Problem(422, "Validation error", "rows[0].out_entries[0].rate", "is required unless the row has the counter entry")

	clerk.With("Bahi-Reason", "wrong rate").POST(one+"/reverse", `{"date":"2025-03-03"}`).Status(201)
	clerk.GET(fmt.Sprint("/bullion/",
		dealer.ID)).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"Zaveri Bazaar","cash_balance":0,"crystal_balance":100,
		"cash_position":"settled","crystal_position":"we_owe","revision":0}`, dealer.ID))
}
