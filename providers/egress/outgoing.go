// Package egress makes HTTP clients for addresses that users enter. Their requests reach only public addresses, on the web's ports; an
// operator lists exceptions (CONTRACT.md N5, B7).
//
// A check of names alone would not suffice, because a name may resolve to another address when it is called. So the dialer checks the
// address that it is about to connect to. The library safeurl does that too, but its exceptions cover a host or a port anywhere, not one
// target.
package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNotAllowed is the error of a call to an address or port that is neither public nor an exception.
var ErrNotAllowed = errors.New("address not allowed")

const (
	connectTimeout = 5 * time.Second
	idleFor        = 30 * time.Second
	maxIdle        = 4 // connections to one server
	maxHeader      = 64 << 10
)

// Allowlist has the targets that are exempt from the rules on address and port.
type Allowlist struct {
	hosts     []string // host:port
	addresses []netip.AddrPort
	networks  []netip.Prefix
}

// Parse reads exceptions: host:port, ip:port, or a network in CIDR form.
func Parse(list []string) (e Allowlist, err error) {
	for _, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil {
			e.networks = append(e.networks, p)
			continue
		}
		if a, err := netip.ParseAddrPort(text); err == nil {
			e.addresses = append(e.addresses, a)
			continue
		}
		host, port, err := net.SplitHostPort(text)
		if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || host == "" || wrong != nil {
			return e, fmt.Errorf("%q: expected host:port, ip:port or a network such as 10.0.0.0/8", text)
		}
		e.hosts = append(e.hosts, text)
	}
	return e, nil
}

// special are the networks in IANA's current and former registries of special purposes (RFC 6890). Package netip does not distinguish them
// from public networks.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("100:0:0:1::/64"),
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
}

// allows reports whether a connection to a resolved address may be made.
func (e Allowlist) allows(at netip.AddrPort) bool {
	addr := at.Addr().Unmap().WithZone("")
	within := func(p netip.Prefix) bool { return p.Contains(addr) }
	if slices.Contains(e.addresses, netip.AddrPortFrom(addr, at.Port())) || slices.ContainsFunc(e.networks, within) {
		return true
	}
	public := addr.IsGlobalUnicast() && !addr.IsPrivate() && !slices.ContainsFunc(special, within)
	return public && (at.Port() == 443 || at.Port() == 80)
}

// Check returns an error for a URL with an address that no call may reach. Names are resolved when they are called.
func (e Allowlist) Check(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil //nolint:nilerr // the caller reads the URL
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	target := net.JoinHostPort(u.Hostname(), port)
	at, err := netip.ParseAddrPort(strings.Replace(target, "localhost:", "127.0.0.1:", 1))
	if err != nil || slices.Contains(e.hosts, target) || e.allows(at) {
		return nil //nolint:nilerr // a name
	}
	return fmt.Errorf("%s is not a public address on port 80 or 443: list it in BAHI_FETCH_ALLOW", target)
}

// Client returns a client that enforces the rules. It follows no redirect, because a request may have credentials.
func (e Allowlist) Client() *http.Client { return e.ClientBy(nil) }

// ClientBy is [Allowlist.Client] with a resolver of names; nil: the machine's.
func (e Allowlist) ClientBy(names *net.Resolver) *http.Client {
	checked := &net.Dialer{Timeout: connectTimeout, Resolver: names,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !e.allows(at) {
				return ErrNotAllowed
			}
			return nil
		}}
	free := &net.Dialer{Timeout: connectTimeout, Resolver: names}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if slices.Contains(e.hosts, address) {
					return free.DialContext(ctx, network, address)
				}
				return checked.DialContext(ctx, network, address)
			},
			TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: idleFor, MaxIdleConnsPerHost: maxIdle, MaxResponseHeaderBytes: maxHeader,
			ForceAttemptHTTP2: true,
		},
	}
}
