// Package breaker has a circuit breaker for calls to outside services.
package breaker

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Failures is the number of successive failed calls that opens a breaker.
const Failures = 5

// Breaker stops calls to a service that is down.
type Breaker[T any] = gobreaker.CircuitBreaker[T]

// New returns a breaker that opens after [Failures] successive errors for which down returns true. After an interval, one call tries again.
// An error for which excluded returns true does not count; excluded may be nil.
func New[T any](rest time.Duration, down, excluded func(error) bool) *Breaker[T] {
	return gobreaker.NewCircuitBreaker[T](gobreaker.Settings{
		Timeout:      rest,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= Failures },
		IsSuccessful: func(err error) bool { return err == nil || !down(err) },
		IsExcluded:   excluded,
	})
}

// IsOpen reports whether an error means that the breaker did not make the call.
func IsOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}
