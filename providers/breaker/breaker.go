// Package breaker has the circuit breaker of calls to outside services.
package breaker

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Failures is the number of calls in a row that fail before a breaker opens.
const Failures = 5

// Breaker stops calls to a service that is down.
type Breaker[T any] = gobreaker.CircuitBreaker[T]

// New returns a breaker that stays open for an interval after [Failures] errors in a row that down reports. Then one call tries. An error
// that excluded reports counts as no call; excluded may be nil.
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
