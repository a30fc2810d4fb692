package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"bahi/internal/bench"
)

const (
	followersAll  = 2000
	followersEach = 10  // streams of one key
	followedRate  = 100 // messages a second
	followSenders = 16
	followedWait  = time.Minute // for the last messages
	comeAgain     = time.Second // between two tries of a reader who was cut off
	kilobytes     = 1024
)

// follower reads a live stream of messages. Where the server ends it, the follower comes again as a browser does, after what it has seen.
type follower struct {
	open  func(last string) (net.Conn, *bufio.Reader, error)
	seen  []time.Duration // by message, after the run began; 0: not yet
	twice int
	again int   // how often it came again
	err   error // of the last try to come again

	mu    sync.Mutex
	conn  net.Conn
	ended bool
}

// end ends the follower.
func (f *follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	_ = f.conn.Close() // it is given up
}

// come opens the stream after the last event that was seen, unless the follower has ended.
func (f *follower) come(last string) (in *bufio.Reader, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, net.ErrClosed
	}
	conn, in, err := f.open(last)
	if err == nil {
		f.conn = conn
	}
	return in, err
}

// textMark begins the text of a message that is counted.
var textMark = []byte(`"text":"n `)

// read notes when each message comes, until the follower ends.
func (f *follower) read(in *bufio.Reader, began time.Time, done func()) {
	last := ""
	for left := len(f.seen); ; {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			opened, err := f.come(last)
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // as a browser does, it tries later
				f.err = err
				time.Sleep(comeAgain)
			default:
				in = opened
				f.again++
			}
			continue
		}
		if id, is := bytes.CutPrefix(line, []byte("id: ")); is {
			last = string(bytes.TrimSpace(id))
			continue
		}
		_, rest, found := bytes.Cut(line, textMark)
		end := bytes.IndexByte(rest, '"')
		if !found || end < 0 {
			continue
		}
		n, err := strconv.Atoi(string(rest[:end]))
		switch {
		case err != nil || n >= len(f.seen):
		case f.seen[n] != 0:
			f.twice++
		default:
			f.seen[n] = time.Since(began)
			if left--; left == 0 {
				done()
			}
		}
	}
}

// followers measures how soon messages are seen: by one reader, and by many of one workspace.
func (b *benchmark) followers(ctx context.Context, s *server, t *talk) error {
	lags, _, _, err := b.followed(ctx, s, t, 1)
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "inbound_seen", Title: fmt.Sprintf("%d messages a second: p99 of the time from the answer to the sender until a reader has the message", followedRate), Unit: "ms", Goal: bench.AtMost(1000)},
		[]float64{lags}, "", nil)
	lags, memory, again, err := b.followed(ctx, s, t, followersAll)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("%d messages a second, %d readers", followedRate, followersAll)
	b.conclude(bench.Figure{Name: "followers", Title: title + ", each has each once: p99 of the time until a reader has it", Unit: "ms", Goal: bench.AtMost(1000)}, []float64{lags}, "", nil)
	b.conclude(bench.Figure{Name: "followers_again", Title: title + ": how often one of them was cut off and came again", Unit: "times"}, []float64{again}, "", nil)
	b.conclude(bench.Figure{Name: "followers_memory", Title: title + ": memory a reader", Unit: "kB", Goal: bench.AtMost(100)}, []float64{memory}, "", nil)
	return nil
}

// followed sends messages for a while to so many readers. It returns the 99th percentile of their lag in milliseconds, the kilobytes by which the server's
// memory grew for each of them, and how often one of them came again. It fails where one of them does not get each message once.
func (b *benchmark) followed(ctx context.Context, s *server, t *talk, readers int) (lag, memory, again float64, err error) {
	b.sayf("%d readers of %d messages a second", readers, followedRate)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0); err != nil { // forget the most that it had, proc(5)
		return 0, 0, 0, err
	}
	idle, count := mostMemory(s.pid), int(b.Sustain.Seconds()/2)*followedRate
	var (
		all     []*follower
		reading sync.WaitGroup
		missing sync.WaitGroup
		key     string
	)
	defer reading.Wait()
	defer func() {
		for _, f := range all {
			f.end()
		}
	}()
	began := time.Now()
	for i := range readers {
		if i%followersEach == 0 {
			if key, err = s.makeKey(ctx, `{"messaging":"read"}`); err != nil {
				return 0, 0, 0, err
			}
		}
		key := key
		f := &follower{seen: make([]time.Duration, count), open: func(last string) (net.Conn, *bufio.Reader, error) {
			var headers []string
			if last != "" {
				headers = append(headers, "Last-Event-ID: "+last)
			}
			return s.open(ctx, bench.Request("GET", "/api/messages/stream", key, "", headers...))
		}}
		in, err := f.come("")
		if err != nil {
			return 0, 0, 0, err
		}
		all = append(all, f)
		missing.Add(1)
		reading.Go(func() { f.read(in, began, missing.Done) })
	}
	answered, err := t.paced(ctx, s, began, count)
	if err != nil {
		return 0, 0, 0, err
	}
	whole := make(chan struct{})
	go func() { missing.Wait(); close(whole) }()
	select {
	case <-whole:
	case <-time.After(followedWait):
	}
	most := mostMemory(s.pid)
	for _, f := range all {
		f.end()
	}
	reading.Wait()
	var lags []time.Duration
	for i, f := range all {
		again += float64(f.again)
		if f.twice > 0 {
			return 0, 0, 0, fmt.Errorf("reader %d got %d messages twice", i, f.twice)
		}
		for n, at := range f.seen {
			if at == 0 {
				return 0, 0, 0, fmt.Errorf("reader %d of %d did not get message %d of %d: %w", i, readers, n, count, f.err)
			}
			lags = append(lags, max(0, at-answered[n]))
		}
	}
	return bench.Lag(bench.Sample{Lag: bench.P99Of(lags)}), (most - idle) * kilobytes / float64(readers), again, nil
}

// paced plays so many messages at an even rate, and returns when each was answered.
func (t *talk) paced(ctx context.Context, s *server, began time.Time, count int) ([]time.Duration, error) {
	answered, next, failed := make([]time.Duration, count), make(chan int), make(chan error, followSenders)
	prefix := strconv.FormatInt(began.UnixNano(), 36)
	var sending sync.WaitGroup
	for range followSenders {
		c, err := bench.Dial(ctx, s.address)
		if err != nil {
			return nil, err
		}
		defer c.Close() //nolint:errcheck,gocritic // the connections are discarded when all has been sent
		sending.Go(func() {
			for n := range next {
				a, err := c.Do(t.cameIn(fmt.Sprintf("%s-%d", prefix, n), fmt.Sprintf("n %d", n), n))
				if err == nil && a.Status != 200 {
					err = fmt.Errorf("a message was answered with status %d: %s", a.Status, a.Body)
				}
				if err != nil {
					failed <- err
					return
				}
				answered[n] = a.At.Sub(began)
			}
		})
	}
	ticker := time.NewTicker(time.Second / followedRate)
	defer ticker.Stop()
	var err error
	for n := 0; n < count && err == nil; n++ {
		<-ticker.C
		select {
		case next <- n:
		case err = <-failed:
		}
	}
	close(next)
	sending.Wait()
	select {
	case err = <-failed:
	default:
	}
	return answered, err
}
