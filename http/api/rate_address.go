package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// ParseProxies parses addresses and networks (CIDR) of trusted proxies. It accepts IPv4 addresses in IPv6 form.
func ParseProxies(list []string) ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for _, text := range list {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if address, bad := netip.ParseAddr(text); bad == nil && address.Zone() == "" {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if mapped := netip.MustParsePrefix("::ffff:0:0/96"); err == nil && prefix.Addr().Is4In6() && prefix.Bits() >= mapped.Bits() {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapped.Bits())
		}
		if err != nil {
			return nil, fmt.Errorf("proxy %q: expected an address or a network, such as 10.0.0.0/8", text)
		}
		proxies = append(proxies, prefix.Masked())
	}
	return proxies, nil
}

// addressBits is the prefix length for counting IPv6 clients, because the owner of one address has all 2^64 addresses of its network.
const addressBits = 64

// clientAddress returns the address by which a public request is counted: the peer of the connection, or the client that trusted proxies
// name. It cuts IPv6 to its /64, and converts IPv4 in IPv6 to IPv4. It returns the zero Addr for a peer without an address, such as at a
// Unix socket.
func clientAddress(r *http.Request, proxies []netip.Prefix) netip.Addr {
	return counted(wholeAddress(r, proxies))
}

// wholeAddress is clientAddress with all bits of an IPv6 address.
func wholeAddress(r *http.Request, proxies []netip.Prefix) netip.Addr {
	var client netip.Addr
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		client = plainAddress(peer.Addr())
	}
	if trusted(client, proxies) {
		client = forwardedFor(r.Header, client, proxies)
	}
	return client
}

// counted returns the address or network by which an address is counted.
func counted(a netip.Addr) netip.Addr {
	if a.Is6() {
		return netip.PrefixFrom(a, addressBits).Masked().Addr()
	}
	return a
}

func plainAddress(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func trusted(a netip.Addr, proxies []netip.Prefix) bool {
	return slices.ContainsFunc(proxies, func(proxy netip.Prefix) bool { return proxy.Contains(a) })
}

// forwardedFor returns the client that the proxies name. The peer is the nearest proxy. Each proxy appends the address of its own peer at
// the right. So only the hops to the right of the first untrusted one are reliable. The others may be forged. A proxy that maintains one of
// the two headers forwards the client's version of the other. If both are present and differ, forwardedFor returns the peer.
func forwardedFor(h http.Header, peer netip.Addr, proxies []netip.Prefix) netip.Addr {
	old, standard := h["X-Forwarded-For"], h["Forwarded"]
	if old == nil && standard == nil {
		return peer
	}
	byOld := walk(strings.Split(strings.Join(old, ","), ","), peer, proxies)
	byStandard := walk(forwardedHops(strings.Join(standard, ",")), peer, proxies)
	switch {
	case standard == nil:
		return byOld
	case old == nil || byOld == byStandard:
		return byStandard
	}
	return peer
}

// walk skips trusted hops from the right, and stops at an invalid hop.
func walk(hops []string, peer netip.Addr, proxies []netip.Prefix) netip.Addr {
	client := peer
	for i := len(hops) - 1; i >= 0 && trusted(client, proxies); i-- {
		hop, ok := parseHop(hops[i])
		if !ok {
			break
		}
		client = hop
	}
	return client
}

// parseHop parses 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1] and [2001:db8::1]:80.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if both, err := netip.ParseAddrPort(text); err == nil {
		return plainAddress(both.Addr()), true
	}
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		if text, bracketed = strings.CutSuffix(inner, "]"); !bracketed {
			return netip.Addr{}, false
		}
	}
	a, err := netip.ParseAddr(text)
	return plainAddress(a), err == nil
}

// Patterns of the header Forwarded (RFC 7239, section 4). forwardedForm matches a valid header. forwardedPair matches one of its pairs,
// with the separator before the pair. Strings must not contain a backslash, because no address requires one.
var (
	forwardedName = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
	forwardedText = `(?:"([^"\\]*)"|([^"\\,; \t]+))`
	forwardedForm = regexp.MustCompile(`^[ \t]*` + forwardedName + `=` + forwardedText + `(?:[ \t]*[,;][ \t]*` + forwardedName +
		`=` + forwardedText + `)*[ \t]*$`)
	forwardedPair = regexp.MustCompile(`([,;]?)[ \t]*(` + forwardedName + `)=` + forwardedText)
)

// forwardedHops returns the for= of each element of a Forwarded header, "" for an element without it. It returns nothing for an invalid
// value, because a quote of a client could make a proxy's element part of a string.
func forwardedHops(value string) (hops []string) {
	if !forwardedForm.MatchString(value) {
		return nil
	}
	for _, pair := range forwardedPair.FindAllStringSubmatch(value, -1) {
		if separator := pair[1]; separator != ";" {
			hops = append(hops, "")
		}
		if name, text := pair[2], pair[3]+pair[4]; strings.EqualFold(name, "for") {
			hops[len(hops)-1] = text
		}
	}
	return hops
}
