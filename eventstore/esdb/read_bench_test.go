package esdb_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/eventstore"
	"bahi/eventstore/esdb/esdbtest"
)

// BenchmarkRead reads a long log, server included.
func BenchmarkRead(b *testing.B) {
	c := esdbtest.Start(b, 1)
	store := vendor(b, c.URL())
	const count = 60_000
	var requests []eventstore.Transaction
	for i := range count {
		e := fresh()
		e.ID = uuid.New()
		e.Data = fmt.Appendf(nil, `{"account":%d,"date":"2025-03-01","in_entries":[{"description":"Mahavir Jewellers, invoice %d","amount":1250.50}]}`, i%1000, i)
		requests = append(requests, eventstore.To(fmt.Sprintf("bankrow-%d", i), eventstore.NoStream, e))
	}
	b.Run("append each", func(b *testing.B) {
		for _, r := range store.AppendEach(b.Context(), requests) {
			require.NoError(b, r.Err)
		}
		b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			for _, err := range store.ReadAll(b.Context(), 0, eventstore.Forwards) {
				require.NoError(b, err)
			}
		}
		b.ReportMetric(float64(count*b.N)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("follow", func(b *testing.B) {
		batches := 0
		for b.Loop() {
			seen := 0
			for batch, err := range store.Subscribe(b.Context(), 0) {
				require.NoError(b, err)
				batches++
				if seen += len(batch.Events); seen >= count {
					break
				}
			}
		}
		b.ReportMetric(float64(count*b.N)/b.Elapsed().Seconds(), "events/s")
		b.ReportMetric(float64(count*b.N)/float64(batches), "events/batch")
	})
}
