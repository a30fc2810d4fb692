package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands/lease"
)

// work returns how long a task of a minute worked under a lease.
func work(t *testing.T, renew func(context.Context) (bool, error)) (worked time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, lease.While(t.Context(), began, renew, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			worked = time.Since(began)
			return nil
		}))
	})
	return worked
}

func TestALeaseIsRenewedWhileItsTaskWorks(t *testing.T) {
	t.Parallel()
	renewed := 0
	require.Equal(t, time.Minute, work(t, func(context.Context) (bool, error) {
		renewed++
		return true, nil
	}), "four times the lifetime of a lease")
	require.GreaterOrEqual(t, renewed, 4)
}

func TestATaskEndsBeforeItsLease(t *testing.T) {
	t.Parallel()
	require.Less(t, work(t, func(context.Context) (bool, error) { return false, nil }), lease.Duration, "another worker has it")
	lost := errors.New("no connection")
	require.Equal(t, lease.Duration, work(t, func(context.Context) (bool, error) { return false, lost }), "Postgres is away")
	require.Equal(t, lease.Duration, work(t, func(ctx context.Context) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	}), "Postgres does not answer")
	failures := 3
	require.Equal(t, time.Minute, work(t, func(context.Context) (bool, error) {
		if failures--; failures >= 0 {
			return false, lost
		}
		return true, nil
	}), "away for twelve seconds")
}
