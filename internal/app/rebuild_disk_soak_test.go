//go:build soak

package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/readmodels/opsview"
)

func TestRebuildOnAFullDiskFailsAndResumes(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	smallDisk(t, data, "400m")
	apptest.EndCluster(t, data)
	p := apptest.Serve(t, apptest.Command(t, data, "serve"))
	p.Ready()
	account := apptest.Open(p.Client(), "HDFC")
	rows := make([]json.RawMessage, 1000)
	for i := range rows {
		rows[i] = json.RawMessage(apptest.Deposit("2025-03-01", "1"))
	}
	const bulks = 20
	for range bulks {
		p.Client().POST(apptest.Ledger(account, "/rows"), map[string]any{"rows": rows}).Status(201)
	}
	ballast := filepath.Join(data, "ballast")
	books := func() (now opsview.Projection) {
		if a := p.Client().GET("/ops/projections/books"); a.Response.StatusCode == http.StatusOK {
			a.JSON(&now)
		}
		return now
	}
	for round := range apptest.Rounds(t, 2) {
		shell := apptest.Launch(t, apptest.Command(t, data, "projections", "rebuild", "books", "--throttle", "5000", "--keep", "0s"))
		var now opsview.Projection
		require.Eventually(t, func() bool { now = books(); return now.Build != nil && now.Build.Done > 1000 }, time.Minute, 5*time.Millisecond)
		for ended := false; !ended; { // Postgres frees space; fill it again
			require.NoError(t, fillDisk(ballast))
			select {
			case <-shell.Done:
				ended = true
			case <-time.After(20 * time.Millisecond):
			}
		}
		require.Equal(t, 1, shell.Status, shell.Text())
		require.Contains(t, shell.Text(), "the build so far remains: a serving process continues it, or this command, when repeated")
		require.NoError(t, os.Remove(ballast))
		require.Eventually(t, func() bool { return books().Generation == now.Build.Generation }, time.Minute, 10*time.Millisecond,
			"the same build continues")
		require.Equal(t, strconv.Itoa(bulks*1000), apptest.ClerkBanks(p.Client().GET("/banks").Status(200))[0].Balance.String(), "round %d",
			round)
	}
	apptest.Healthy(t, apptest.Command(t, data, "doctor"))
	p.Stop()
}
