package chat

import (
	"sync"
	"time"

	"bahi/domain/messaging/network"
	"bahi/providers/breaker"
)

// breakers stop the calls of a channel while its network does not respond, so that callers do not wait one after another.
type breakers struct {
	mu sync.Mutex
	of map[int64]*breaker.Breaker[struct{}]
}

const restFor = 30 * time.Second

// call makes a call of a channel unless its breaker is open. Any response shows that the network is up.
func (b *breakers) call(channel int64, do func() *network.Failure) *network.Failure {
	_, err := b.channel(channel).Execute(func() (struct{}, error) {
		if failed := do(); failed != nil {
			return struct{}{}, failed
		}
		return struct{}{}, nil
	})
	if breaker.IsOpen(err) {
		return &network.Failure{Reason: network.Unreached, After: restFor}
	}
	return AsFailure(err)
}

func newBreakers() *breakers { return &breakers{of: map[int64]*breaker.Breaker[struct{}]{}} }

func (b *breakers) channel(id int64) *breaker.Breaker[struct{}] {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of[id]
	if one == nil {
		one = breaker.New[struct{}](restFor, func(err error) bool {
			reason := AsFailure(err).Reason
			return reason == network.Unreached || reason == network.Unknown
		}, nil)
		b.of[id] = one
	}
	return one
}
