package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEditOfAnOldCopyIsRefused(t *testing.T) {
	t.Parallel()
	clerk := start(t).clerk(home)
	account := open(clerk, "HDFC")
	row := post(clerk, account, deposit("2025-03-01", "1"))
	path, edit := ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, entry("2"))
	const stale = "It was changed since you read it"

	seen := clerk.GET(at(account, row.ID)).Status(200).Header("ETag")
	tag := clerk.With("If-Match", seen).PUT(path, edit).Status(200).Header("ETag")
	require.NotEqual(t, seen, tag)
	require.Equal(t, tag, clerk.GET(at(account, row.ID)).Status(200).Header("ETag"))
	old := clerk.With("If-Match", seen)
	old.PUT(path, fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, entry("3"))).Problem(412, stale)
	old.PUT(path, edit).Problem(412, stale)
	old.DELETE(at(account, row.ID)).Problem(412, stale)
	for _, never := range []string{`"x"`, `W/` + tag, `"01"`, `"-1"`, `"99999999999999999999"`} {
		clerk.With("If-Match", never).PUT(path, edit).Problem(412, stale)
	}
	for _, bad := range []string{"1", `"1`, `"1", "2"`, "", `"a"b"`} {
		if bad != "" {
			clerk.With("If-Match", bad).PUT(path, edit).Status(400)
		}
	}
	require.Equal(t, "03-01 2", balances(clerk, path))
	clerk.With("If-Match", "*").PUT(path, fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, entry("4"))).Status(200)
	clerk.PUT(path, fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, entry("5"))).Status(200) // the last write wins

	// The list carries the revision, for who has read only that.
	var rows []bankRow
	clerk.GET(path).Status(200).JSON(&rows)
	clerk.With("If-Match", fmt.Sprintf(`"%d"`, rows[0].Revision)).DELETE(at(account, row.ID)).Status(204)

	one := fmt.Sprintf("/bank/%d", account)
	opened := clerk.GET(one).Status(200).Header("ETag")
	clerk.PUT(one, `{"name":"SBI"}`).Status(200)
	clerk.With("If-Match", opened).PUT(one, `{"name":"ICICI"}`).Problem(412, stale)
	clerk.With("If-Match", opened).DELETE(fmt.Sprintf("/bank-account/%d", account)).Problem(412, stale)
	clerk.With("If-Match", clerk.GET(one).Header("ETag")).DELETE(fmt.Sprintf("/bank-account/%d", account)).Status(204)
}

func TestOfManyEditsOfOneCopyOneWins(t *testing.T) {
	t.Parallel()
	clerk := start(t).clerk(home)
	account := open(clerk, "HDFC")
	row := post(clerk, account, deposit("2025-03-01", "1"))
	for round := range 5 {
		seen := clerk.GET(at(account, row.ID)).Status(200).Header("ETag")
		var (
			all  sync.WaitGroup
			mu   sync.Mutex
			when = map[int]int{}
		)
		for i := range 8 {
			all.Go(func() {
				status := clerk.With("If-Match", seen).PUT(ledger(account), fmt.Sprintf(`{"id":%d,"in_entries":%s}`, row.ID, entry(fmt.Sprintf("%d.0%d", round+2, i)))).Response.StatusCode
				mu.Lock()
				defer mu.Unlock()
				when[status]++
			})
		}
		all.Wait()
		require.Equal(t, map[int]int{200: 1, 412: 7}, when)
	}
}
