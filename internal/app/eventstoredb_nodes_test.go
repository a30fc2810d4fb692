package app_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"bahi/eventstore/esdb/esdbtest"
	"bahi/internal/app/apptest"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

// A read sees each write that was answered before it came, whichever of the nodes answered.
func TestAWriteOnOneNodeOfAnEventStoreIsReadOnTheOther(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, pgtest.Template(t, "migrated", migrations.Up))
	with.EventStore = esdbtest.Start(t, 1).URL()
	one := apptest.StartAs(t, with)
	with.Data = t.TempDir()
	nodes := []*apptest.Office{one, apptest.StartAs(t, with)}
	key := one.Key(apptest.Home, `{"ledger":"write"}`).Key
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			account := apptest.Open(one.Bearer(key), "HDFC")
			for i := range 20 {
				writes, reads := nodes[(w+i)%2].Bearer(key), nodes[(w+i+1)%2].Bearer(key)
				apptest.Post(writes, account, apptest.Deposit("2025-03-01", "1"))
				a := reads.GET(fmt.Sprint("/bank/", account)).Status(200)
				var now apptest.BankAccount
				apptest.Lenient(t, a, &now)
				assert.Equal(t, strconv.Itoa(i+1), now.Balance.String())
				assert.Empty(t, a.Header("Bahi-Stale"))
			}
		})
	}
	writers.Wait()
}
