package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/app"
	"bahi/internal/bench"
	"bahi/internal/cli/doctor"
	"bahi/projections"
	ledgertables "bahi/projections/ledger"
)

const (
	// besideClients is the number of writers, and of readers, beside a rebuild: a load that leaves the machine some capacity.
	besideClients = 8

	// throttledTo is the rate in events per second of a rebuild that clients should not notice.
	throttledTo = 5_000

	pointerMoves   = 20
	aroundMove     = 100 * time.Millisecond // reads within this time of the move count as delayed by it
	memoryBound    = 300                    // MB
	kilobytesPerMB = 1024
)

// rebuilds measures the cost of a rebuild on a running system.
func (b *benchmark) rebuilds(ctx context.Context, url string, sys *app.System) error {
	b.sayf("starting a server")
	s, err := b.serve(ctx, url, b.process(url))
	if err != nil {
		return err
	}
	err = b.besideServer(ctx, s, sys)
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

func (b *benchmark) besideServer(ctx context.Context, s *server, sys *app.System) error {
	if b.wanted("rebuild") {
		if err := b.online(ctx, s, sys); err != nil {
			return err
		}
		if err := b.throttled(ctx, s); err != nil {
			return err
		}
		if err := b.moves(ctx, s); err != nil {
			return err
		}
	}
	if b.wanted("doctor") {
		return b.doctoring(ctx, sys)
	}
	return nil
}

// online measures a rebuild beside the live tables, including its comparison with them, and the memory of the process that does it.
func (b *benchmark) online(ctx context.Context, s *server, sys *app.System) error {
	head, err := sys.Store.Head(ctx)
	if err != nil {
		return err
	}
	found, limits, err := b.besideReading(ctx, sys.Store, func() (bench.Sample, error) {
		b.sayf("rebuilding the books beside the live tables")
		began := time.Now()
		if err := s.operate(ctx, "rebuild", `{"keep_seconds":0}`); err != nil {
			return bench.Sample{}, err
		}
		err := s.rebuilt(ctx)
		return bench.Sample{Rate: float64(head) / time.Since(began).Seconds()}, err
	})
	if err != nil {
		return err
	}
	b.sayf("rebuilding the books in a separate process")
	peak, err := b.rebuildProcess(ctx, s)
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "rebuild_live", Title: "rebuild of the books beside the live ones, compared with them", Unit: "events/s", Goal: &bench.Goal{Bound: 0.4, Aim: 0.6}},
		found.By(bench.Rate), "reading and decoding the log", limits.By(bench.Rate))
	b.conclude(bench.Figure{Name: "rebuild_memory", Title: fmt.Sprintf("memory of the process that folds %d events", head), Unit: "MB", Goal: bench.AtMost(memoryBound)},
		[]float64{peak}, "", nil)
	return nil
}

// rebuildProcess runs bahi projections rebuild and returns its peak memory.
func (b *benchmark) rebuildProcess(ctx context.Context, s *server) (peak float64, err error) {
	cmd := exec.CommandContext(ctx, b.Bahi, "projections", "rebuild", ledgertables.Books.Name, "--keep", "0s") //nolint:gosec // the operator chooses it
	cmd.Env = append(os.Environ(), "BAHI_DATA="+b.data(), "DATABASE_URL="+s.url)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				return 0, fmt.Errorf("the rebuild ended with %w: %s", err, said.Bytes())
			}
			return peak, nil
		case <-time.After(lookEvery):
			peak = max(peak, mostMemory(cmd.Process.Pid))
		}
	}
}

// mostMemory returns a running process's peak memory in MB. After its end the kernel's figure would include the parent's memory before
// the exec.
func mostMemory(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); n == 1 {
			return kilobytes / kilobytesPerMB
		}
	}
	return 0
}

// operate sends an operator's request for the books.
func (s *server) operate(ctx context.Context, verb, body string) error {
	a, err := s.do(ctx, bench.Request("POST", "/ops/projections/"+ledgertables.Books.Name+"/"+verb, operatorKey, body))
	if err == nil && a.Status/100 != 2 {
		err = fmt.Errorf("%s failed with status %d: %s", verb, a.Status, a.Body)
	}
	return err
}

// building returns the state of the books.
func (s *server) building(ctx context.Context) (p struct {
	Build *struct{ Phase string }
}, err error,
) {
	a, err := s.do(ctx, bench.Request("GET", "/ops/projections/"+ledgertables.Books.Name, operatorKey, ""))
	if err == nil {
		err = json.Unmarshal(a.Body, &p)
	}
	return p, err
}

// rebuilt waits until the rebuild of the books ends.
func (s *server) rebuilt(ctx context.Context) error {
	for {
		p, err := s.building(ctx)
		if err != nil || p.Build == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * lookEvery):
		}
	}
}

// throttled measures the latency of writes and reads with a throttled rebuild and without.
func (b *benchmark) throttled(ctx context.Context, s *server) error {
	accounts := make([]int64, bankAccounts)
	for i := range accounts {
		accounts[i] = int64(1 + i)
	}
	writing := bench.Load{Address: s.address, Clients: besideClients, For: b.Round, Requests: s.postings(accounts)}
	reads := make([][]byte, len(accounts))
	for i, account := range accounts {
		reads[i] = bench.Request("GET", fmt.Sprintf("/bank-ledger/%d?page_size=%d&page=2", account, pageSize), s.key, "")
	}
	reading := bench.Load{Address: s.address, Clients: besideClients, For: b.Round, Requests: reads}
	if err := s.operate(ctx, "rebuild", fmt.Sprintf(`{"throttle":%d}`, throttledTo)); err != nil {
		return err
	}
	beside := func(load bench.Load) func() (bench.Sample, error) {
		return func() (bench.Sample, error) {
			if err := s.operate(ctx, "resume", ""); err != nil {
				return bench.Sample{}, err
			}
			time.Sleep(aroundMove)
			sample, err := load.Run(ctx)
			if err == nil {
				err = s.operate(ctx, "pause", "")
			}
			return sample, err
		}
	}
	if err := s.operate(ctx, "pause", ""); err != nil {
		return err
	}
	for _, of := range []struct {
		name, title string
		load        bench.Load
	}{
		{"beside_post", "POST of a row beside a throttled rebuild, 8 clients: p99", writing},
		{"beside_page", "a page beside a throttled rebuild, 8 clients: p99", reading},
	} {
		limit, found, err := b.interleave(ctx, of.title, func() (bench.Sample, error) { return of.load.Run(ctx) }, beside(of.load))
		if err != nil {
			return err
		}
		b.conclude(bench.Figure{Name: of.name, Title: of.title, Unit: "ms", Goal: bench.AtMost(2)}, found[0].By(bench.P99), "without it", limit.By(bench.P99))
	}
	return s.operate(ctx, "cancel", "")
}

// moves measures how long a reader waits when the pointer moves to another generation.
func (b *benchmark) moves(ctx context.Context, s *server) error {
	b.sayf("moving the pointer")
	if err := s.operate(ctx, "rebuild", `{"keep_seconds":600}`); err != nil {
		return err
	}
	if err := s.rebuilt(ctx); err != nil {
		return err
	}
	read := bench.Request("GET", fmt.Sprintf("/bank-ledger/%d?page_size=%d&page=2", 1, pageSize), s.key, "")
	var held []float64
	for range pointerMoves {
		c, err := bench.Dial(ctx, s.address)
		if err != nil {
			return err
		}
		moved := make(chan error, 1)
		go func() {
			time.Sleep(aroundMove)
			moved <- s.operate(ctx, "rollback", "")
		}()
		var (
			longest time.Duration
			until   time.Time // when reading ends after a move
		)
		for until.IsZero() || time.Now().Before(until) {
			a, err := c.Do(read)
			if err == nil && a.Status != 200 {
				err = fmt.Errorf("a read failed with status %d: %s", a.Status, a.Body)
			}
			if err != nil {
				return err
			}
			longest = max(longest, a.Took)
			select {
			case err := <-moved:
				if err != nil {
					return err
				}
				until = time.Now().Add(aroundMove)
			default:
			}
		}
		_ = c.Close() // the connection is discarded
		held = append(held, float64(longest)/float64(time.Millisecond))
	}
	b.conclude(bench.Figure{Name: "pointer_move", Title: "longest read around a move to another generation, median of 20 moves", Unit: "ms", Goal: bench.AtMost(50)}, held, "", nil)
	return nil
}

// doctoring measures the comparison of the books with the log.
func (b *benchmark) doctoring(ctx context.Context, sys *app.System) error {
	head, err := sys.Store.Head(ctx)
	if err != nil {
		return err
	}
	found, limits, err := b.besideReading(ctx, sys.Store, func() (bench.Sample, error) {
		b.sayf("comparing the books with the log")
		began := time.Now()
		err := doctor.Examine(ctx, sys, io.Discard, projections.How{}, ledgertables.Books)
		return bench.Sample{Rate: float64(head) / time.Since(began).Seconds()}, err
	})
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "doctor", Title: "doctor, of the books", Unit: "events/s", Goal: bench.AtLeast(0.3)},
		found.By(bench.Rate), "reading and decoding the log", limits.By(bench.Rate))
	return nil
}

// dropLive drops the live tables of a projection, so that the next rebuild has nothing to compare with.
func dropLive(ctx context.Context, sys *app.System, p *projections.Projection) error {
	all, err := projections.List(ctx, sys.Pool)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, sys.Pool, func(tx pgx.Tx) error {
		for _, g := range all {
			if g.Name != p.Name {
				continue
			}
			if _, err := tx.Exec(ctx, `drop schema `+projections.SchemaName(g.Name, g.Generation)+` cascade`); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `delete from projection.generation where name = $1`, p.Name)
		return err
	})
}
