package projections

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// One connection follows, one builds, one fills. On a slow machine one more checks for orders.
func TestFirstBuildHasFourConnectionsAtMost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := seen("seen", nil)
	r.add(t, "a", "b")
	var mu sync.Mutex
	open, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		open += n
		most = max(most, open)
	}
	runner := NewRunner(r.store, r.pool, r.log)
	dial := runner.config.DialFunc
	runner.config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		count(1)
		return &counted{conn, sync.OnceFunc(func() { count(-1) })}, nil
	}
	serving := r.running(t, runner, func(ctx context.Context) error { return runner.Run(ctx, p) })
	serving.until("seen", func(s Status) bool { return s.Ready })
	mu.Lock()
	defer mu.Unlock()
	require.LessOrEqual(t, most, 4)
}

// counted is a connection that reports its end.
type counted struct {
	net.Conn

	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}
