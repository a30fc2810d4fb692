package main

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHandWrittenLedgerChecksRows(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 100 {
		var given givenRow
		require.NoError(t, json.Unmarshal([]byte(rowBody(random)), &given))
		row, err := given.check()
		require.NoError(t, err)
		require.Contains(t, []string{"in", "out"}, row.Kind)
	}
	for _, bad := range []string{
		`{}`, `{"date":"2026-05-04"}`, `{"date":"4 May","in_entries":[{"amount":1}]}`, `{"date":"2026-05-04","in_entries":[{"amount":0}]}`,
		`{"date":"2026-05-04","in_entries":[{"amount":1.001}]}`, `{"date":"2026-05-04","in_entries":[{"amount":1e3}]}`,
		`{"date":"2026-05-04","in_entries":[{"amount":10000000000000}]}`,
		`{"date":"2026-05-04","in_entries":[{"amount":1}],"out_entries":[{"amount":1}]}`,
	} {
		var given givenRow
		require.NoError(t, json.Unmarshal([]byte(bad), &given))
		_, err := given.check()
		require.Error(t, err, bad)
	}
}
