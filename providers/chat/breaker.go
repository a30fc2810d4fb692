package chat

import (
	"sync"
	"time"

	"bahi/domain/messaging/network"
)

// breaker stops the calls of a channel whose network does not answer: nobody waits for one call after the other.
type breaker struct {
	now func() time.Time

	mu sync.Mutex
	of map[int64]broken
}

// broken is how often in a row a channel's network did not answer, and until when it is not called.
type broken struct {
	times int
	until time.Time
}

const (
	mostBroken = 5
	restFor    = 30 * time.Second
)

// refuse returns the failure of a call that is not made, nil if it may be. After the rest, one call tries.
func (b *breaker) refuse(channel int64) *network.Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.of[channel]
	left := at.until.Sub(b.now())
	if at.times < mostBroken || left <= 0 {
		if at.times >= mostBroken { // others wait for this one
			b.of[channel] = broken{at.times, b.now().Add(restFor)}
		}
		return nil
	}
	return &network.Failure{Reason: network.Unreached, After: left}
}

// note counts what became of a call. An answer, whatever it says, shows that the network is there.
func (b *breaker) note(channel int64, failed *network.Failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if failed == nil || failed.Reason != network.Unreached && failed.Reason != network.Unknown {
		delete(b.of, channel)
		return
	}
	if b.of == nil {
		b.of = map[int64]broken{}
	}
	b.of[channel] = broken{b.of[channel].times + 1, b.now().Add(restFor)}
}
