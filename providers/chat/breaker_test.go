package chat

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
	"bahi/providers/breaker"
)

func TestANetworkThatDoesNotAnswerRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBreakers()
		calls := 0
		call := func(channel int64, failed *network.Failure) *network.Failure {
			return b.call(channel, func() *network.Failure { calls++; return failed })
		}
		away := &network.Failure{Reason: network.Unreached}
		for range breaker.Failures - 1 {
			require.Equal(t, away, call(3, away))
		}
		require.NotNil(t, call(3, &network.Failure{Reason: network.Recipient}))
		for range breaker.Failures {
			call(3, &network.Failure{Reason: network.Unknown})
		}
		require.Equal(t, 2*breaker.Failures, calls, "a response restarts the count")
		require.Equal(t, &network.Failure{Reason: network.Unreached, After: restFor}, call(3, nil))
		require.Equal(t, 2*breaker.Failures, calls)
		require.Nil(t, call(4, nil), "other channels continue")
		time.Sleep(restFor + 1)
		require.Nil(t, b.call(3, func() *network.Failure {
			require.NotNil(t, call(3, nil), "others wait for the one call that tries")
			return nil
		}))
		require.Nil(t, call(3, nil))
	})
}
