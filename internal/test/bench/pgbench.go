package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Limits measures the limits of the machine with pgbench.
type Limits struct {
	Command func(ctx context.Context, name string, args ...string) *exec.Cmd // one of Postgres's programs
	URL     string                                                           // URL of a database for pgbench alone
	Dir     string                                                           // for scripts and logs of transactions
	Round   time.Duration                                                    // approximate duration of a measurement

	rates map[int]float64 // last rate by the number of clients
}

const (
	rowBytes  = 300
	fewEach   = 50 // transactions per client in a trial that finds how many fit into a round
	insertRow = `insert into appended (payload) values (:payload);`
)

// Prepare creates the table.
func (l *Limits) Prepare(ctx context.Context) error {
	l.rates = map[int]float64{}
	conn, err := pgx.Connect(ctx, l.URL)
	if err != nil {
		return fmt.Errorf("connect for pgbench: %w", err)
	}
	defer conn.Close(ctx) // the connection is discarded
	if _, err := conn.Exec(ctx, `create table appended (id bigserial primary key, payload text not null)`); err != nil {
		return fmt.Errorf("create the table of pgbench: %w", err)
	}
	return nil
}

// Inserts measures transactions that insert one row of 300 bytes, for about a round. It counts transactions, because pgbench's own clock
// also runs while the clients connect, which can take a second.
func (l *Limits) Inserts(ctx context.Context, clients int) (Sample, error) {
	if l.rates[clients] == 0 {
		s, err := l.each(ctx, clients, fewEach)
		if err != nil {
			return s, err
		}
		l.rates[clients] = s.Rate
	}
	s, err := l.each(ctx, clients, max(fewEach, int(l.rates[clients]*l.Round.Seconds())/clients))
	l.rates[clients] = s.Rate
	return s, err
}

// each measures a number of transactions of each client.
func (l *Limits) each(ctx context.Context, clients, transactions int) (s Sample, err error) {
	path := filepath.Join(l.Dir, "insert.sql")
	if err := os.WriteFile(path, []byte(insertRow), 0o600); err != nil {
		return s, fmt.Errorf("write pgbench's script: %w", err)
	}
	times := filepath.Join(l.Dir, "insert.times")
	cmd := l.Command(ctx, "pgbench", "--file="+path, "--no-vacuum", "--protocol=prepared", "--define=payload="+strings.Repeat("x", rowBytes),
		"--client="+strconv.Itoa(clients), "--jobs="+strconv.Itoa(min(clients, 2)), "--transactions="+strconv.Itoa(transactions),
		"--log", "--log-prefix="+times, l.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return s, fmt.Errorf("pgbench: %w: %s", err, strings.TrimSpace(string(out)))
	}
	found := rateText.FindSubmatch(out)
	if found == nil {
		return s, fmt.Errorf("pgbench reported no rate: %s", out)
	}
	took, err := takeTimes(times)
	if err != nil {
		return s, err
	}
	s = SampleOf(took, time.Second)
	s.Rate, err = strconv.ParseFloat(string(found[1]), 64)
	return s, err
}

var rateText = regexp.MustCompile(`tps = ([0-9.]+)`)

var errLine = errors.New("pgbench's log of transactions has an unknown format")

// takeTimes reads the durations of transactions, the third column in microseconds, and removes the files.
func takeTimes(prefix string) (took []time.Duration, err error) {
	files, err := filepath.Glob(prefix + ".*")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		some, err := timesIn(name)
		if err := errors.Join(err, os.Remove(name)); err != nil {
			return nil, fmt.Errorf("read pgbench's log of transactions: %w", err)
		}
		took = append(took, some...)
	}
	return took, nil
}

func timesIn(name string) (took []time.Duration, err error) {
	file, err := os.Open(name) // in our own folder
	if err != nil {
		return nil, err
	}
	defer file.Close() // read-only
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		columns := strings.SplitN(lines.Text(), " ", 4)
		if len(columns) < 4 {
			return nil, errLine
		}
		us, err := strconv.ParseInt(columns[2], 10, 64)
		if err != nil {
			return nil, errLine
		}
		took = append(took, time.Duration(us)*time.Microsecond)
	}
	return took, lines.Err()
}
