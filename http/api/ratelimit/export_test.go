package ratelimit

import "time"

// NewPatientRedis returns a Redis that waits longer, for tests on a busy machine.
func NewPatientRedis(url string) (*Redis, error) { return newRedis(url, 10*time.Second) }

// Keys returns the number of keys.
func (m *Memory) Keys() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.callers.Len() + m.addresses.Len()
}
