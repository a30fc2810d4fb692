package history

import (
	"io"
	"net"
	"sync"
	"time"
)

// proxy forwards connections to an address. It can cut, slow or stop them.
type proxy struct {
	network, target string
	listener        net.Listener

	mu    sync.Mutex
	open  map[net.Conn]bool
	delay time.Duration
	away  bool // refuses new connections
}

func newProxy(network, target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{network: network, target: target, listener: listener, open: map[net.Conn]bool{}}
	go p.serve()
	return p, nil
}

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		network, target, away := p.network, p.target, p.away
		p.mu.Unlock()
		out, err := net.Dial(network, target)
		if err != nil || away {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		p.mu.Lock()
		p.open[in], p.open[out] = true, true
		p.mu.Unlock()
		go p.pass(in, out)
		go p.pass(out, in)
	}
}

// pass copies from one side to the other until one ends.
func (p *proxy) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		time.Sleep(delay)
		if n > 0 {
			if _, wrong := to.Write(buffer[:n]); wrong != nil {
				err = wrong
			}
		}
		if err != nil {
			break
		}
	}
	p.close(to, from)
}

func (p *proxy) close(all ...io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // it may be closed already
		delete(p.open, c.(net.Conn))
	}
}

// cut closes all connections, and refuses new ones while it is away.
func (p *proxy) cut(away bool) {
	p.mu.Lock()
	p.away = away
	all := make([]io.Closer, 0, len(p.open))
	for c := range p.open {
		all = append(all, c)
	}
	p.mu.Unlock()
	p.close(all...)
}

// slow delays each piece in both directions.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

func (p *proxy) stop() {
	_ = p.listener.Close()
	p.cut(true)
}
