package ratelimit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Shared counts in Redis, and in memory while Redis does not respond, so that the limits never stop the service. The two counts are
// separate: without Redis, every process allows the whole limit.
type Shared struct {
	redis *Redis
	own   *Memory
	log   *slog.Logger
	now   func() time.Time

	away   atomic.Int64 // end of the time without calls of Redis, in Unix nanoseconds
	silent atomic.Int64 // end of the time without log messages
}

const (
	// rest is the time after a failure in which Redis is not called, because each request would wait for the timeout.
	rest = time.Second

	// silence is the minimum interval between warnings.
	silence = time.Minute
)

// NewShared returns a Shared. The caller must close the Redis.
func NewShared(r *Redis, log *slog.Logger, now func() time.Time) *Shared {
	return &Shared{redis: r, own: NewMemory(now, 0), log: log, now: now}
}

// Take is like [Memory.Take]. It counts a request even if the client has disconnected.
func (s *Shared) Take(ctx context.Context, key Key, limit Limit) (d Decision) {
	if !s.asked(ctx, func(ctx context.Context) (err error) { d, err = s.redis.Take(ctx, key, limit); return err }) {
		return s.own.Take(ctx, key, limit)
	}
	return d
}

// Return is like [Memory.Return].
func (s *Shared) Return(ctx context.Context, key Key) {
	if !s.asked(ctx, func(ctx context.Context) error { return s.redis.Return(ctx, key) }) {
		s.own.Return(ctx, key)
	}
}

// asked reports whether Redis has responded.
func (s *Shared) asked(ctx context.Context, ask func(context.Context) error) bool {
	now := s.now()
	if now.UnixNano() < s.away.Load() {
		return false
	}
	err := ask(context.WithoutCancel(ctx))
	if err == nil {
		return true
	}
	s.away.Store(now.Add(rest).UnixNano())
	if until := s.silent.Load(); now.UnixNano() >= until && s.silent.CompareAndSwap(until, now.Add(silence).UnixNano()) {
		s.log.WarnContext(ctx, "Redis failed; counting rate limits in this process only", "error", err)
	}
	return false
}
