package window

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Redis counts for all processes that share a Redis (5 or newer), by its clock, to the microsecond. Each
// request takes one round trip. A key is removed when its window is empty.
type Redis struct {
	client   *redis.Client
	patience time.Duration
}

// Patience bounds the wait for Redis's answer.
const Patience = 50 * time.Millisecond

// NewRedis makes a Redis from a URL such as redis://user:password@host:6379/0, rediss:// with TLS or
// unix:///path. It does not connect yet.
func NewRedis(url string) (*Redis, error) { return newRedis(url, Patience) }

func newRedis(url string, patience time.Duration) (*Redis, error) {
	muteLibrary()
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("URL of Redis: %w", err)
	}
	// One attempt, within the patience: a client waits for it.
	options.ContextTimeoutEnabled = true
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DialTimeout, options.PoolTimeout = patience, patience
	// These round trips at connecting have no use here.
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &Redis{redis.NewClient(options), patience}, nil
}

// muteLibrary keeps the library from writing errors to standard error, past our log; it also returns them.
// Its logger is a global, so it is set once.
var muteLibrary = sync.OnceFunc(logging.Disable)

// Close ends its connections.
func (r *Redis) Close() error { return r.client.Close() }

// take is one step for Redis, so it is atomic. A list has the times in microseconds, oldest first; they are written out because
// Lua's own form of such numbers has an exponent.
//
// It returns 1 or 0 for allowed, the number that count, and the microseconds until the oldest leaves.
var take = redis.NewScript(`
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

// Take is like [Memory.Take]. Its error means that Redis did not decide within [Patience].
func (r *Redis) Take(ctx context.Context, key Key, limit Limit) (Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	whose := "caller:" + key.Caller
	if key.Caller == "" {
		whose = "address:" + key.Address.String()
	}
	answer, err := take.Run(ctx, r.client, []string{"bahi:limit:" + key.Group + ":" + whose}, limit.Requests, limit.Per.Microseconds()).Int64Slice()
	if err != nil {
		return Decision{}, fmt.Errorf("count in Redis: %w", err)
	}
	if len(answer) != 3 {
		return Decision{}, fmt.Errorf("count in Redis: unexpected answer %v", answer)
	}
	return Decision{
		Allowed: answer[0] == 1, Remaining: max(0, limit.Requests-int(answer[1])), Next: time.Duration(answer[2]) * time.Microsecond,
	}, nil
}
