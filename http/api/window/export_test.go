package window

import "time"

// NewPatientRedis makes one that waits longer, for tests on a machine that is busy.
func NewPatientRedis(url string) (*Redis, error) { return newRedis(url, 10*time.Second) }

// Keys returns how many keys it holds.
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
