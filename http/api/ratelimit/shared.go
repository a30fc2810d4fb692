package ratelimit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Shared counts in Redis, and by itself while Redis does not answer, so that the limits never stop the service. Neither knows the
// counts of the other: with Redis away, every process allows the whole limit.
type Shared struct {
	redis *Redis
	own   *Memory
	log   *slog.Logger
	now   func() time.Time

	away   atomic.Int64 // Redis is not asked until then, in Unix nanoseconds
	silent atomic.Int64 // nothing is logged until then
}

const (
	// rest is how long Redis is not asked after a failure. Without it each request would wait for it.
	rest = time.Second

	// silence is the least time between warnings.
	silence = time.Minute
)

// NewShared makes a Shared. The Redis stays the caller's to close.
func NewShared(r *Redis, log *slog.Logger, now func() time.Time) *Shared {
	return &Shared{redis: r, own: NewMemory(now, 0), log: log, now: now}
}

// Take is like [Memory.Take]. A request counts even if its client is gone.
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

// asked reports whether Redis has answered.
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
		s.log.WarnContext(ctx, "rate limits are counted in this process only", "error", err)
	}
	return false
}
