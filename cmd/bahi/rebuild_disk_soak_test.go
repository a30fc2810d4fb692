//go:build soak

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/pgtest"
	opsviews "bahi/readmodels/ops"
)

func TestARebuildOnAFullDiskIsToldAndGoesOn(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	smallDisk(t, data, "400m")
	endCluster(t, data)
	p := serve(t, command(t, data, "serve"))
	p.ready()
	account := open(p.client(), "HDFC")
	rows := make([]json.RawMessage, 1000)
	for i := range rows {
		rows[i] = json.RawMessage(deposit("2025-03-01", "1"))
	}
	const bulks = 20
	for range bulks {
		p.client().POST(ledger(account, "/rows"), map[string]any{"rows": rows}).Status(201)
	}
	ballast := filepath.Join(data, "ballast")
	books := func() (now opsviews.Projection) {
		if a := p.client().GET("/ops/projections/books"); a.Response.StatusCode == http.StatusOK {
			a.JSON(&now)
		}
		return now
	}
	for round := range rounds(t, 2) {
		shell := launch(t, command(t, data, "projections", "rebuild", "books", "--throttle", "5000", "--keep", "0s"))
		var now opsviews.Projection
		require.Eventually(t, func() bool { now = books(); return now.Build != nil && now.Build.Done > 1000 }, time.Minute, 5*time.Millisecond)
		for ended := false; !ended; { // as Postgres frees something, it is taken again
			require.NoError(t, fillDisk(ballast))
			select {
			case <-shell.done:
				ended = true
			case <-time.After(20 * time.Millisecond):
			}
		}
		require.Equal(t, 1, shell.cmd.ProcessState.ExitCode(), shell.text())
		require.Contains(t, shell.text(), "what is built so far stays: a process that serves goes on with it, or this command given again")
		require.NoError(t, os.Remove(ballast))
		require.Eventually(t, func() bool { return books().Generation == now.Build.Generation }, time.Minute, 10*time.Millisecond, "it is the same build")
		require.Equal(t, strconv.Itoa(bulks*1000), clerkBanks(p.client().GET("/banks").Status(200))[0].Balance.String(), "round %d", round)
	}
	healthy(t, command(t, data, "doctor"))
	p.stop()
}
