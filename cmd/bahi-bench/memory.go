package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"bahi/domain/ledger/bank"
	"bahi/internal/bench"
)

const (
	statementRows  = 100_000
	statementsOnce = 20
	slowRows       = 40_000
	slowReaders    = 40
	slowFor        = 10 * time.Second
	slowChunk      = 8 << 10 // bytes, each slowPause
	slowPause      = 200 * time.Millisecond
)

// memory measures what long answers take of the server's memory, beside what it has when nobody asks.
func (b *benchmark) memory(ctx context.Context) error {
	url, err := b.database(ctx, "memory")
	if err != nil {
		return err
	}
	l := ledgers{long: 1001, short: 1002}
	if err := b.makeLong(ctx, url, l); err != nil {
		return err
	}
	for _, of := range []struct {
		name, title string
		ask         func(context.Context, *server) error
	}{
		{
			"statements_memory", fmt.Sprintf("memory for %d statements of %d rows, asked for at once", statementsOnce, min(statementRows, b.Rows)),
			func(ctx context.Context, s *server) error { return s.statements(ctx, l.long) },
		},
		{
			"slow_memory", fmt.Sprintf("memory for %d clients that read %d rows slowly", slowReaders, min(slowRows, b.Rows)),
			func(ctx context.Context, s *server) error { return s.slowly(ctx, l.short) },
		},
	} {
		b.sayf("%s", of.title)
		most, err := b.onFreshServer(ctx, url, of.ask)
		if err != nil {
			return err
		}
		b.conclude(bench.Figure{Name: of.name, Title: of.title, Unit: "MB", Goal: bench.AtMost(memoryBound)}, []float64{most}, "", nil)
	}
	return nil
}

// makeLong makes the two ledgers and folds them, with the server stopped.
func (b *benchmark) makeLong(ctx context.Context, url string, l ledgers) error {
	sys, err := b.system(ctx, url)
	if err != nil {
		return err
	}
	defer sys.Close()
	statements, slow := min(statementRows, b.Rows), min(slowRows, b.Rows) // as many as are asked for at most
	m, err := newLogMaker(ctx, sys, statements+slow)
	if err != nil {
		return err
	}
	nobody := func(int64, int64) {}
	if _, err = m.ledger(ctx, bank.Ledger, l.long, statements, false, nobody); err == nil {
		_, err = m.ledger(ctx, bank.Ledger, l.short, slow, false, nobody)
	}
	if err != nil {
		return err
	}
	if err := m.end(); err != nil {
		return err
	}
	_, err = b.fold(ctx, sys)
	return err
}

// onFreshServer returns by how many MB the server's memory grew at most while it was asked.
func (b *benchmark) onFreshServer(ctx context.Context, url string, ask func(context.Context, *server) error) (most float64, err error) {
	s, err := b.serve(ctx, url, b.process(url))
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := s.stop(); err == nil {
			err = stopErr
		}
	}()
	return s.growth(func() error { return ask(ctx, s) })
}

// growth returns by how many MB the server's memory grew at most while something was done.
func (s *server) growth(do func() error) (float64, error) {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0); err != nil { // forget the most that it had, proc(5)
		return 0, err
	}
	idle := mostMemory(s.pid)
	err := do()
	return mostMemory(s.pid) - idle, err
}

// statements asks for statements at once.
func (s *server) statements(ctx context.Context, account int64) error {
	return atOnce(statementsOnce, func() error {
		_, err := s.download(ctx, fmt.Sprintf("/bank-ledger/%d/statement.pdf", account))
		return err
	})
}

// download reads a document, and returns how long its first byte took. Who is refused for now asks again.
func (s *server) download(ctx context.Context, path string) (first time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	for {
		began := time.Now()
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		_, err = io.ReadFull(answer.Body, make([]byte, 1))
		first = time.Since(began)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		_ = answer.Body.Close() // it was read
		switch {
		case err != nil || answer.StatusCode == http.StatusOK:
			return first, err
		case answer.StatusCode != http.StatusServiceUnavailable:
			return 0, fmt.Errorf("a document was answered with %s", answer.Status)
		}
	}
}

// slowly reads an account's rows by many clients, each a little now and then, until the answer is whole or slowFor is over.
func (s *server) slowly(ctx context.Context, account int64) error {
	request := bench.Request("GET", fmt.Sprintf("/bank-ledger/%d", account), s.key, "")
	return atOnce(slowReaders, func() error {
		conn, rows, err := s.begin(ctx, request)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // it is given up
		chunk := make([]byte, slowChunk)
		for began := time.Now(); time.Since(began) < slowFor; time.Sleep(slowPause) {
			if _, err := rows.Read(chunk); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("read slowly: %w", err)
			}
		}
		return nil
	})
}

// begin sends a request until it is answered, and returns its connection and the answer's body.
func (s *server) begin(ctx context.Context, request []byte) (net.Conn, io.Reader, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
		if err != nil {
			return nil, nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(slowChunk) // so that the kernel does not read in our place
		}
		var answer *http.Response
		if _, err = conn.Write(request); err == nil {
			answer, err = http.ReadResponse(bufio.NewReaderSize(conn, slowChunk), nil) //nolint:bodyclose // the connection is closed
		}
		if err == nil && answer.StatusCode == http.StatusOK {
			return conn, answer.Body, nil
		}
		_ = conn.Close() // it is given up
		if err != nil {
			return nil, nil, fmt.Errorf("ask for rows: %w", err)
		}
		if answer.StatusCode != http.StatusServiceUnavailable {
			return nil, nil, fmt.Errorf("rows were answered with %s", answer.Status)
		}
	}
}

// atOnce does the same so many times at once, and returns one of the errors.
func atOnce(times int, do func() error) error {
	var doing sync.WaitGroup
	errs := make(chan error, times)
	for range times {
		doing.Go(func() { errs <- do() })
	}
	doing.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
