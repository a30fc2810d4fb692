package ratelimit

import "time"

// NewPatientRedis makes a Redis that waits longer, for tests on a busy machine.
func NewPatientRedis(url string) (*Redis, error) { return newRedis(url, 10*time.Second) }

// Keys returns the number of keys.
func (m *Memory) Keys() (n int) {
	for _, half := range []*[shards]shard{&m.callers, &m.addresses} {
		for i := range half {
			half[i].mu.Lock()
			n += half[i].logs.Len()
			half[i].mu.Unlock()
		}
	}
	return n
}
