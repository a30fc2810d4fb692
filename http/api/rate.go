package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"bahi/domain/fault"
	"bahi/http/api/ratelimit"
)

// counter counts requests for the rate limits. It MUST decide fast. If its store is unreachable, it MUST decide without the store, because
// the limits must not stop the service.
type counter interface {
	Take(ctx context.Context, key ratelimit.Key, limit ratelimit.Limit) ratelimit.Decision
	// Return removes the newest request that Take has counted.
	Return(ctx context.Context, key ratelimit.Key)
}

// Limiting configures the rate limits. The zero value limits nothing.
//
// Requests of a signed-in user are counted by the user's id, and public requests by address (IPv6 by /64), both for the group of the
// operation. Requests with an API key are counted by the key's id, over all operations together, with the limit [GroupAPIKeys].
//
// Invalid credentials are counted by address with the limit [GroupRefused]. Beyond the limit, an invalid credential gets a 429. A valid
// credential is never refused for the failures of others at its address, because keys and tokens have too many bits to be guessed. The
// limit only slows attackers. For the same reason, the tokens of operations with [Op.Proof] work beyond the limit of their group. A request
// without a credential is not counted as a guess. Each process has its own count, even with a shared Counter.
//
// Passwords can be guessed, so [Guess] counts wrong passwords by account, from all addresses together.
//
// Limits apply after authentication and before the check of permissions, so requests without permission are counted too.
type Limiting struct {
	Limits  Limits           // nil: none
	Counter counter          // nil: memory
	Proxies []netip.Prefix   // trusted proxies, which may name the client's address, see [ParseProxies]
	Guesses *AuthFailures    // nil: this API has its own count
	Now     func() time.Time // nil: time.Now
}

// limiter enforces a Limiting.
type limiter struct {
	Limiting

	warned atomic.Int64 // time of the last warning, in seconds
}

func newLimiter(config Limiting) *limiter {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Counter == nil {
		config.Counter = ratelimit.NewMemory(config.Now, 0)
	}
	if config.Guesses == nil {
		config.Guesses = NewGuesses(config.Limits, config.Now)
	}
	return &limiter{Limiting: config}
}

// of returns the limit of a group. It panics on an unknown group.
func (l *limiter) of(group string) ratelimit.Limit {
	limit, known := l.Limits[group]
	if !known && group != "" && l.Limits != nil {
		panic(fmt.Sprintf("no limit is named %q", group))
	}
	return limit
}

// AuthFailures counts a process's refused credentials by address. All listeners of the process share it, so that an attacker has no more
// tries at several listeners than at one.
type AuthFailures struct {
	refused *ratelimit.Memory
	limit   ratelimit.Limit
}

// NewGuesses returns a count with the limit of [GroupRefused].
func NewGuesses(limits Limits, now func() time.Time) *AuthFailures {
	return &AuthFailures{ratelimit.NewMemory(now, 0), limits[GroupRefused]}
}

// Refused counts a refused credential, and reports whether that exceeds the limit.
func (g *AuthFailures) Refused(from netip.Addr) (tooMany bool) {
	return !g.limit.Off() && !g.take(counted(plainAddress(from))).Allowed
}

func (g *AuthFailures) take(from netip.Addr) ratelimit.Decision {
	return g.refused.Take(context.Background(), ratelimit.Key{Group: GroupRefused, Address: from}, g.limit)
}

// guessed counts a refused credential, and returns a refusal beyond the limit. It does not count a credential if the check itself failed.
func (c *call) guessed(err error) error {
	f, refused := errors.AsType[*fault.Error](err)
	if limit := c.api.limiter.of(GroupRefused); !limit.Off() && refused && f.Kind == fault.Unauthorized {
		d := c.api.limiter.Guesses.take(c.address())
		c.setLimitHeaders(GroupRefused, limit, d)
		if !d.Allowed {
			return c.tooMany(d)
		}
	}
	return err
}

// address returns the address by which the request is counted. All clients behind an unknown proxy have the same address. address logs a
// warning about such a proxy.
func (c *call) address() netip.Addr {
	l := c.api.limiter
	client := clientAddress(c.r, l.Proxies)
	if c.r.Header["X-Forwarded-For"] == nil && c.r.Header["Forwarded"] == nil {
		return client
	}
	peer, err := netip.ParseAddrPort(c.r.RemoteAddr)
	if err != nil || trusted(plainAddress(peer.Addr()), l.Proxies) {
		return client
	}
	now := l.Now()
	if last := l.warned.Load(); now.Unix()-last >= int64(warnInterval.Seconds()) && l.warned.CompareAndSwap(last, now.Unix()) {
		c.api.config.Log.Warn("untrusted proxy; its clients count as one address (set BAHI_TRUSTED_PROXIES)",
			"proxy", peer.Addr())
	}
	return client
}

// warnInterval is the minimum interval of warnings that any client can cause.
const warnInterval = time.Minute

// limit counts the request for its caller. All reads of one page together are counted once.
func (c *call) limit() error {
	group := c.op.Limit
	if c.outer != nil && c.r.Method == http.MethodGet {
		if c.outer.counted {
			return nil
		}
		c.outer.counted, group = true, GroupPages
	}
	if c.request.Actor.Type == "api_key" {
		group = GroupAPIKeys
	}
	d, limit := c.count(group, c.request.Actor.ID)
	if limit.Off() {
		return nil
	}
	c.setLimitHeaders(group, limit, d)
	switch {
	case d.Allowed:
	case c.op.Proof:
		c.over = tooMany(d)
	default:
		return c.tooMany(d)
	}
	return nil
}

// count counts the request for a group by its subject, or else by its address.
func (c *call) count(group, about string) (d ratelimit.Decision, limit ratelimit.Limit) {
	if limit = c.api.limiter.of(group); limit.Off() {
		return ratelimit.Decision{Allowed: true}, limit
	}
	key := ratelimit.Key{Group: group, Caller: about}
	if about == "" {
		key.Address = c.address()
	}
	return c.api.limiter.Counter.Take(c.ctx, key, limit), limit
}

// Count also counts the request for another group, which only the handler can determine. Beyond the limit it returns a refusal.
func Count(ctx context.Context, group string) error { return CountFor(ctx, group, Caller(ctx).ID) }

// CountFor counts the request for a group by its subject instead of its caller. Users and keys share the count. Without a subject, its
// address counts.
func CountFor(ctx context.Context, group, about string) error {
	c := callOf(ctx)
	if c.api == nil {
		return nil
	}
	d, limit := c.count(group, about)
	if d.Allowed {
		return nil
	}
	c.setLimitHeaders(group, limit, d)
	return c.tooMany(d)
}

// Guess counts an attempt to guess a secret of an account, such as its password. It counts before the check, so that concurrent attempts
// are limited. After too many wrong attempts it refuses, by [groupWrong] and then by [groupAgain]. The caller MUST call settle with whether
// the attempt was wrong. Correct attempts are not counted.
func Guess(ctx context.Context, account string) (settle func(wrong bool), err error) {
	c := callOf(ctx)
	if c.api == nil {
		return func(bool) {}, nil
	}
	l := c.api.limiter
	wrong, again := l.Limits[groupWrong], l.Limits[groupAgain]
	if wrong.Off() || again.Off() {
		return func(bool) {}, nil
	}
	counted, slowed := ratelimit.Key{Group: groupWrong, Caller: account}, ratelimit.Key{Group: groupAgain, Caller: account}
	taken := counted
	if !l.Counter.Take(ctx, counted, wrong).Allowed {
		taken = slowed
		if d := l.Counter.Take(ctx, slowed, again); !d.Allowed {
			return nil, c.tooMany(d)
		}
	}
	return func(isWrong bool) {
		switch {
		case !isWrong:
			l.Counter.Return(ctx, taken)
		case taken == counted:
			l.Counter.Take(ctx, slowed, again) // a further try waits too
		}
	}, nil
}

// tooMany returns the refusal with Retry-After.
func (c *call) tooMany(d ratelimit.Decision) *Problem {
	p := tooMany(d)
	c.Header().Set("Retry-After", strconv.Itoa(p.after))
	return p
}

// tooMany returns the refusal (CONTRACT.md D48).
func tooMany(d ratelimit.Decision) *Problem {
	return &Problem{Detail: "Too many requests", Code: "rate_limited", Status: http.StatusTooManyRequests, after: int(max(1, seconds(d.Next)))}
}

// setLimitHeaders sets the headers of draft-ietf-httpapi-ratelimit-headers (CONTRACT.md S31): q requests in w seconds are allowed, r of
// them remain, and another one is allowed in t seconds.
func (c *call) setLimitHeaders(group string, limit ratelimit.Limit, d ratelimit.Decision) {
	c.Header().Set("RateLimit-Policy", fmt.Sprintf(`%q;q=%d;w=%d`, group, limit.Requests, int64(limit.Per.Seconds())))
	c.Header().Set("RateLimit", fmt.Sprintf(`%q;r=%d;t=%d`, group, d.Remaining, seconds(d.Next)))
}

// seconds returns a duration in seconds. It rounds up, so that a client that waits for this time is not too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Limits are the limits by group name, see [Op.Limit].
type Limits map[string]ratelimit.Limit

// Operations do not name these groups.
const (
	GroupAPIKeys = "api_keys"               // all requests of one API key
	GroupRefused = "refused_authentication" // invalid credentials from one address
	groupWrong   = "wrong_passwords"        // wrong passwords for one account, from any address
	groupAgain   = "sign_in_again"          // attempts on one account after too many wrong passwords
	GroupPages   = "pages"                  // pages of a browser: the reads of one page count once
)

// DefaultLimits returns all groups with the limits of SPEC.txt ("Limits") and of CONTRACT.md D45 to D47.
func DefaultLimits() Limits {
	limits := Limits{GroupAPIKeys: {}}
	for group, perMinute := range map[string]int{
		// SPEC.txt
		"auth":  20, // one counter for the whole group
		"users": 120, "users_picture": 10, "users_delete_request": 20,
		"enquiry_create": 60, "enquiry_verify_chat": 60, "enquiry_general": 120,
		"contact_create": 60, "contact_general": 120,
		"catalog_list_search": 120, "catalog_create_update": 120, "catalog_bulk": 10,
		// D45
		"company_read": 120, "company_write": 60, "company_check_domain": 30, "catalog_general": 120,
		// D46
		"ledger_general": 300, "ledger_khata_upload": 10, "ledger_pdf": 30,
		// Ours: links of confirmations, by address. A chat network fetches many statements, so a valid link works beyond this limit. Each link
		// also has the limit of ledger_pdf.
		"ledger_shared_statement": 1200,
		// D47
		"messaging_general": 120, "chat_send": 60, "campaign_send": 10, "bot_file": 20, "webhooks": 1200,
		// Ours: API keys, workspaces and their members.
		"marketplace_general": 120,
		// Ours: visitors of pages with the chat widget, by address, and each visitor's messages.
		"web_chat": 120, "web_chat_session": 20, "web_chat_message": 20,
		// Ours: the log, its proofs and the trail.
		"audit_general": 120,
		// GroupRefused allows an office with expired tokens behind one address, and keeps a dictionary attack slow.
		GroupRefused: 120, GroupPages: 300,
	} {
		limits[group] = ratelimit.Limit{Requests: perMinute, Per: time.Minute}
	}
	// Ours: changes of a user's address. Each change mails an address of the user's choice.
	limits["users_email"] = ratelimit.Limit{Requests: 5, Per: time.Hour}
	// R11
	limits[groupWrong], limits[groupAgain] = ratelimit.Limit{Requests: 10, Per: 15 * time.Minute},
		ratelimit.Limit{Requests: 1, Per: time.Minute}
	return limits
}

// limitSetting is the prefix of the settings. The group follows, as in BAHI_LIMIT_AUTH=20/1m.
const limitSetting = "BAHI_LIMIT_"

// ParseLimits returns the limits with the changes in the environment, which has NAME=value pairs as in os.Environ. It ignores other names.
// It returns an error for an unknown group, because a misspelt setting would have no effect.
func ParseLimits(environ []string) (Limits, error) {
	limits := DefaultLimits()
	var wrong []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		group, found := strings.CutPrefix(name, limitSetting)
		if !found {
			continue
		}
		group = strings.ToLower(group)
		if _, known := limits[group]; !known {
			wrong = append(wrong, fmt.Errorf("%s: unknown limit; known are %s", name, strings.Join(slices.Sorted(maps.Keys(limits)), ", ")))
			continue
		}
		limit, err := ratelimit.Parse(value)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
		limits[group] = limit
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return limits, nil
}
