package egress_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"bahi/internal/test/worktest"
	"bahi/providers/egress"
)

// specials are all networks that are not public, by IANA's registries of special purposes, with multicast.
var specials = strings.Fields(`
	0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 ` +
	`198.18.0.0/15
	198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32
	::/128 ::1/128 ::/96 ::ffff:10.0.0.0/104 ::ffff:127.0.0.0/104 ::ffff:169.254.0.0/112 64:ff9b::/96 64:ff9b:1::/48 100::/64 ` +
	`100:0:0:1::/64 2001::/32 2001:2::/48
	2001:10::/28 2001:20::/28 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8`)

// last returns the last address of a network.
func last(p netip.Prefix) netip.Addr {
	at := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(at); bit++ {
		at[bit/8] |= 1 << (7 - bit%8)
	}
	addr, _ := netip.AddrFromSlice(at)
	return addr
}

func TestNoAddressOfASpecialNetworkIsCalled(t *testing.T) {
	t.Parallel()
	c := client(t)
	for _, text := range specials {
		p := netip.MustParsePrefix(text)
		for _, at := range []netip.Addr{p.Addr(), last(p)} {
			for _, port := range []string{"80", "443"} {
				_, err := get(t, c, "http://"+net.JoinHostPort(at.String(), port))
				require.ErrorIs(t, err, egress.ErrNotAllowed, "%s of %s", at, text)
			}
		}
	}
	for _, name := range []string{"localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1"} { // as some resolvers read them
		_, err := get(t, c, "http://"+name)
		require.Error(t, err, name)
	}
}

// names is a name server. It returns its addresses one after another and then repeats the last.
type names struct {
	mu      sync.Mutex
	answers [][]netip.Addr
}

func (n *names) next() []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.answers[0]
	if len(n.answers) > 1 {
		n.answers = n.answers[1:]
	}
	return now
}

// resolver serves the names over UDP on loopback.
func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		packet := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			var asked dnsmessage.Message
			if asked.Unpack(packet[:size]) != nil || len(asked.Questions) != 1 {
				continue
			}
			q := asked.Questions[0]
			said := dnsmessage.Message{Header: dnsmessage.Header{ID: asked.ID, Response: true, Authoritative: true}, Questions: asked.Questions}
			if q.Type == dnsmessage.TypeA {
				for _, at := range n.next() {
					said.Answers = append(said.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: at.As4()},
					})
				}
			}
			if text, err := said.Pack(); err == nil {
				_, _ = conn.WriteTo(text, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestANameThatMovesToAnAddressInsideIsNotFollowed(t *testing.T) {
	t.Parallel()
	called := false
	outside := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // so that the name is resolved again
		_, _ = io.WriteString(w, "outside")
	}))
	at, err := url.Parse(outside.URL)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.2:"+at.Port()) // inside, on the same port
	require.NoError(t, err)
	inside := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	_ = inside.Listener.Close()
	inside.Listener = listener
	inside.Start()
	t.Cleanup(inside.Close)

	good, bad := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	n := &names{answers: [][]netip.Addr{{good}, {bad}, {bad, good}, {netip.MustParseAddr("169.254.169.254")}}}
	e, err := egress.Parse([]string{at.Host}) // it represents a public address
	require.NoError(t, err)
	c := e.ClientBy(n.resolver(t))
	address := "http://shop.example:" + at.Port()
	text, err := get(t, c, address)
	require.NoError(t, err)
	require.Equal(t, "200 OK outside", text)
	_, err = get(t, c, address)
	require.ErrorIs(t, err, egress.ErrNotAllowed, "the name resolves to another address now")
	text, err = get(t, c, address)
	require.NoError(t, err)
	require.Equal(t, "200 OK outside", text, "of several addresses the allowed one is called")
	_, err = get(t, c, address)
	require.ErrorIs(t, err, egress.ErrNotAllowed)
	require.False(t, called)
}
