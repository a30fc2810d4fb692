package api

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func asking(peer string, headers ...string) *http.Request {
	r := &http.Request{RemoteAddr: peer, Header: http.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func proxies(t testing.TB, list ...string) []netip.Prefix {
	t.Helper()
	p, err := ParseProxies(list)
	require.NoError(t, err)
	return p
}

func TestAClientIsThePeerUnlessTrustedProxiesNameAnother(t *testing.T) {
	t.Parallel()
	trusting := proxies(t, "10.0.0.0/8", "2001:db8:ffff::/48", "192.0.2.1")
	const old, standard = "X-Forwarded-For", "Forwarded"
	for _, c := range []struct {
		name, want string
		r          *http.Request
	}{
		{"the peer", "203.0.113.9", asking("203.0.113.9:4711")},
		{"IPv4 in IPv6", "203.0.113.9", asking("[::ffff:203.0.113.9]:4711")},
		{"the network of IPv6", "2001:db8:1:2::", asking("[2001:db8:1:2:3:4:5:6]:4711")},
		{"a zone is the network card's", "fe80::", asking("[fe80::1%eth0]:4711")},
		{"an untrusted peer's header", "203.0.113.9", asking("203.0.113.9:1", old, "198.51.100.1", standard, "for=198.51.100.1")},
		{"a proxy's header", "198.51.100.1", asking("10.1.2.3:1", old, "198.51.100.1")},
		{"a proxy in IPv6's form", "198.51.100.1", asking("[::ffff:10.1.2.3]:1", old, "198.51.100.1")},
		{"a proxy without a header", "10.1.2.3", asking("10.1.2.3:1")},
		{"hops to the left are invented", "198.51.100.1", asking("10.1.2.3:1", old, "127.0.0.1, 198.51.100.1")},
		{"a chain", "198.51.100.1", asking("10.1.2.3:1", old, "8.8.8.8, 198.51.100.1, 192.0.2.1", old, "10.9.9.9")},
		{"proxies all the way", "10.0.0.7", asking("10.1.2.3:1", old, "10.0.0.7, 10.0.0.8")},
		{"with a port", "198.51.100.1", asking("10.1.2.3:1", old, "198.51.100.1:5000")},
		{"with brackets", "2001:db8:1:2::", asking("10.1.2.3:1", old, "[2001:db8:1:2::5]")},
		{"a hop that is not an address", "10.1.2.3", asking("10.1.2.3:1", old, "198.51.100.1, unknown")},
		{"nothing behind a comma", "10.1.2.3", asking("10.1.2.3:1", old, "198.51.100.1,")},
		{"nothing", "10.1.2.3", asking("10.1.2.3:1", old, "")},
		{"the standard header", "2001:db8:1:2::",
			asking("[2001:db8:ffff::1]:1", standard, `proto=https;For="[2001:db8:1:2::5]:4711";by=10.0.0.1`)},
		{"the standard's chain", "198.51.100.1",
			asking("10.1.2.3:1", standard, `for="_x,y", for=198.51.100.1;host="a;b,c"`, standard, "for=10.0.0.2")},
		{"an obfuscated one", "10.1.2.3", asking("10.1.2.3:1", standard, "for=198.51.100.1, for=_hidden")},
		{"an element without one", "10.1.2.3", asking("10.1.2.3:1", standard, "for=198.51.100.1, by=10.0.0.1")},
		{"a quote that would swallow the proxy's element", "10.1.2.3", asking("10.1.2.3:1", standard, `for=8.8.8.8;a=", for=198.51.100.1`)},
		{"both, and they agree", "198.51.100.1", asking("10.1.2.3:1", old, "198.51.100.1", standard, "for=198.51.100.1")},
		{"one of them from the client", "10.1.2.3", asking("10.1.2.3:1", old, "198.51.100.1", standard, "for=8.8.8.8")},
		{"no address at all", "invalid IP", asking("@", old, "198.51.100.1")},
	} {
		require.Equal(t, c.want, clientAddress(c.r, trusting).String(), c.name)
	}
}

func TestProxiesAreAddressesAndNetworks(t *testing.T) {
	t.Parallel()
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"),
		netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("10.0.0.0/8")},
		proxies(t, " 10.1.2.3/8", "192.0.2.1", "2001:db8::1/32 ", "::ffff:10.1.2.3/104"))
	require.Empty(t, proxies(t))
	for _, text := range []string{"", "proxy", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "10.0.0.0/8,"} {
		_, err := ParseProxies([]string{text})
		require.ErrorContains(t, err, "expected an address or a network")
	}
}

// FuzzClientAddress tries headers: a client counts as itself or as the proxy, never as an address of its choice.
func FuzzClientAddress(f *testing.F) {
	for _, sent := range []string{"", "8.8.8.8", "10.0.0.1,", `for=8.8.8.8`, `for="`, `for=8.8.8.8;a="\`, `for=8.8.8.8,for="[2001:db8::1]`,
		`a=",`, "unknown, [::1", "fe80::1%x"} {
		f.Add(sent, sent)
	}
	trusting := proxies(f, "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, old, standard string) {
		const me, proxy = "198.51.100.1", "10.1.2.3"
		add := func(before, own string) string { return strings.TrimPrefix(before+", "+own, ", ") }
		for _, quoted := range []string{"for=" + me, `for="` + me + `:80"`, "proto=http;for=" + me} {
			kept := asking(proxy+":1", "Forwarded", add(standard, quoted))
			require.Contains(t, []string{me, proxy}, clientAddress(kept, trusting).String())
			kept.Header["X-Forwarded-For"] = []string{old}
			require.Contains(t, []string{me, proxy}, clientAddress(kept, trusting).String())
		}
		kept := asking(proxy+":1", "X-Forwarded-For", add(old, me))
		require.Equal(t, me, clientAddress(kept, trusting).String())
		kept.Header["Forwarded"] = []string{standard}
		require.Contains(t, []string{me, proxy}, clientAddress(kept, trusting).String())
	})
}
