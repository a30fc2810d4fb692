package chat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
)

func TestANetworkThatDoesNotAnswerRests(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	b := breaker{now: func() time.Time { return now }}
	away := &network.Failure{Reason: network.Unreached}
	for range mostBroken - 1 {
		require.Nil(t, b.refuse(3))
		b.note(3, away)
	}
	b.note(3, &network.Failure{Reason: network.Recipient})
	for range mostBroken {
		require.Nil(t, b.refuse(3), "an answer begins the count again")
		b.note(3, &network.Failure{Reason: network.Unknown})
	}
	require.Equal(t, &network.Failure{Reason: network.Unreached, After: restFor}, b.refuse(3))
	require.Nil(t, b.refuse(4), "other channels go on")
	now = now.Add(restFor)
	require.Nil(t, b.refuse(3), "one call tries")
	require.NotNil(t, b.refuse(3), "and others wait for it")
	b.note(3, nil)
	require.Nil(t, b.refuse(3))
}
