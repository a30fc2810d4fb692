package pages_test

import (
	"testing"

	"bahi/internal/app/apptest"
)

func TestPagesOfTheBooksFit(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	account := karigar(o)
	clerk := o.Clerk(apptest.Home)
	clerk.With("Bahi-Reason", "mended").PUT("/karigar-ledger/1",
		`{"id":1,"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99}],
		"in_entries":[{"item_name":"payal","pure_weight":20,"fine_percent":92,"other":1234567.5}]}`).Status(200)
	clerk.POST("/karigar-ledger/1", `{"date":"2025-03-02","in_entries":[{"item_name":"kada","fine_weight":3}]}`).Status(201)
	clerk.With("Bahi-Reason", "twice").POST("/karigar-ledger/1/row/2/reverse", `{"date":"2025-03-02"}`).Status(201)
	book(o, clerk, 2)
	clerk.PUT("/books/lock", `{"locked_through":"2025-01-31"}`).Status(200)
	waiting(o)
	p := enter(o, `{"ledger":"write","audit":"read","messaging":"read","marketplace":"read"}`)
	for _, lang := range []string{"en", "gu"} {
		p.Speak(lang)
		for _, path := range []string{
			"/app/", "/app/?as_of=2025-03-01", account, account + "?settle=1", account + "/rows/1",
			"/app/daybook?from=2025-03-01&to=2025-03-02", "/app/audit", "/app/find?q=ra",
		} {
			for _, width := range []int64{360, 1280} {
				fits(t, p, path, width, lang == "gu", lang)
			}
		}
	}
}
