package window

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Shared counts in Redis, and by itself while Redis does not answer, so that limits take no service
// down. What one counted the other does not know: with Redis away, every process allows the whole limit.
type Shared struct {
	redis *Redis
	own   *Memory
	log   *slog.Logger
	now   func() time.Time

	away   atomic.Int64 // until this moment Redis is not asked, in Unix nanoseconds
	silent atomic.Int64 // until this moment nothing is logged
}

const (
	// rest is how long Redis is not asked when it did not answer. Without it each request would wait for it.
	rest = time.Second

	// silence is how often it is told at most that Redis does not answer.
	silence = time.Minute
)

// NewShared makes one. It closes nothing: the Redis stays the caller's.
func NewShared(r *Redis, log *slog.Logger, now func() time.Time) *Shared {
	return &Shared{redis: r, own: NewMemory(now, 0), log: log, now: now}
}

// Take is like [Memory.Take]. A request whose client is gone counts too.
func (s *Shared) Take(ctx context.Context, key Key, limit Limit) Decision {
	now := s.now()
	if now.UnixNano() < s.away.Load() {
		return s.own.Take(key, limit)
	}
	d, err := s.redis.Take(context.WithoutCancel(ctx), key, limit)
	if err == nil {
		return d
	}
	s.away.Store(now.Add(rest).UnixNano())
	if until := s.silent.Load(); now.UnixNano() >= until && s.silent.CompareAndSwap(until, now.Add(silence).UnixNano()) {
		s.log.WarnContext(ctx, "rate limits are counted in this process only", "error", err)
	}
	return s.own.Take(key, limit)
}
