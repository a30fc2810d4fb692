// Package signal has a broadcast that notifies goroutines of a change, and a sleep that a context ends.
package signal

import (
	"context"
	"sync"
	"time"
)

// Signal wakes all goroutines that wait for the next change. The zero value is ready for use.
type Signal struct {
	mu   sync.Mutex
	next chan struct{} // nil: no caller waits
}

// Wait returns a channel that the next Notify closes.
func (s *Signal) Wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Notify closes the channels that Wait has returned since the last Notify.
func (s *Signal) Notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// Sleep waits for a time, or until the context ends, and then returns its error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
