package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Redis counts for all processes that share a Redis server (5 or newer), by the server's clock in microseconds. Each request takes one
// round trip. A key is removed when its window is empty.
type Redis struct {
	pool     *redis.Pool
	patience time.Duration
}

const (
	maxConnections = 32
	keepConnection = 5 * time.Minute
)

// Patience is the timeout of a call of Redis.
const Patience = 50 * time.Millisecond

// NewRedis returns a Redis from a URL such as redis://user:password@host:6379/0, rediss:// with TLS or unix:///path. It does not connect
// yet.
func NewRedis(url string) (*Redis, error) { return newRedis(url, Patience) }

func newRedis(address string, patience time.Duration) (*Redis, error) {
	dial, err := dialer(address, patience)
	if err != nil {
		return nil, fmt.Errorf("URL of Redis: %w", err)
	}
	return &Redis{&redis.Pool{DialContext: dial, MaxIdle: maxConnections, MaxActive: maxConnections, IdleTimeout: keepConnection, Wait: true},
		patience}, nil
}

// dialer returns a function that connects to the address of a URL.
func dialer(address string, patience time.Duration) (func(context.Context) (redis.Conn, error), error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("invalid URL") // the original error contains the password
	}
	options := []redis.DialOption{redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience), redis.DialWriteTimeout(patience)}
	switch u.Scheme {
	case "redis", "rediss":
		if base := strings.Trim(u.Path, "/"); base != "" {
			if _, err := strconv.ParseUint(base, 10, 16); err != nil {
				return nil, errors.New("the database is not a number")
			}
		}
		return func(ctx context.Context) (redis.Conn, error) { return redis.DialURLContext(ctx, address, options...) }, nil
	case "unix":
		password, _ := u.User.Password()
		options = append(options, redis.DialUsername(u.User.Username()), redis.DialPassword(password))
		return func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "unix", u.Path, options...)
		}, nil
	default:
		return nil, errors.New("expected redis://, rediss:// or unix://")
	}
}

// Close closes the connections.
func (r *Redis) Close() error { return r.pool.Close() }

// take is one command for Redis, so it is atomic. A list has the times in microseconds, oldest first. They are formatted explicitly,
// because Lua's own form of such numbers has an exponent.
//
// It returns 1 for an allowed request or else 0, the number of counted requests, and the microseconds until the oldest leaves the window.
var take = redis.NewScript(1, `
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local most, per = tonumber(ARGV[1]), tonumber(ARGV[2])
local oldest = redis.call('LINDEX', KEYS[1], 0)
while oldest and tonumber(oldest) <= now - per do
  redis.call('LPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], 0)
end
local count = redis.call('LLEN', KEYS[1])
local allowed = 0
if count < most then
  allowed, count = 1, count + 1
  redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', per / 1000 + 1))
  oldest = oldest or now
end
return {allowed, count, tonumber(oldest) + per - now}
`)

// Take is like [Memory.Take]. An error means that Redis did not decide within [Patience].
func (r *Redis) Take(ctx context.Context, key Key, limit Limit) (d Decision, err error) {
	err = r.do(ctx, func(ctx context.Context, conn redis.Conn) error {
		answer, err := redis.Int64s(take.DoContext(ctx, conn, nameOf(key), limit.Requests, limit.Per.Microseconds()))
		if err == nil && len(answer) != 3 {
			err = fmt.Errorf("unexpected response %v", answer)
		}
		if err == nil {
			d = Decision{answer[0] == 1, max(0, limit.Requests-int(answer[1])), time.Duration(answer[2]) * time.Microsecond}
		}
		return err
	})
	return d, err
}

// Return is like [Memory.Return].
func (r *Redis) Return(ctx context.Context, key Key) error {
	return r.do(ctx, func(ctx context.Context, conn redis.Conn) error {
		_, err := redis.DoContext(conn, ctx, "RPOP", nameOf(key))
		return err //nolint:wrapcheck // do wraps it
	})
}

func (r *Redis) do(ctx context.Context, ask func(context.Context, redis.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	conn, err := r.pool.GetContext(ctx)
	if err == nil {
		defer conn.Close() //nolint:errcheck // returns the connection to the pool, which closes broken ones
		err = ask(ctx, conn)
	}
	if err != nil {
		return fmt.Errorf("count in Redis: %w", err)
	}
	return nil
}

func nameOf(key Key) string {
	whose := "caller:" + key.Caller
	if key.Caller == "" {
		whose = "address:" + key.Address.String()
	}
	return "bahi:limit:" + key.Group + ":" + whose
}

// Shared counts in Redis, and in memory while Redis does not respond, so that the limits never stop the service. The two counts are
// separate: without Redis, every process allows the whole limit.
type Shared struct {
	redis *Redis
	own   *Memory
	log   *slog.Logger
	now   func() time.Time

	away   atomic.Int64 // no calls of Redis before this time, in Unix nanoseconds
	silent atomic.Int64 // no log messages before this time
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
