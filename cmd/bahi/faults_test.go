package main_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/pgtest"
)

// rounds is how often a fault test does what it does: BAHI_ROUNDS, or few.
func rounds(t *testing.T, few int) int {
	text := os.Getenv("BAHI_ROUNDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// after calls do once the load was answered so many times more.
func (l *load) after(ctx context.Context, count int64, do func()) {
	until := l.answered.Load() + count
	for l.answered.Load() < until && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	do()
}

// healthy wants the doctor to find nothing.
func healthy(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, wrong, status := execute(t, cmd)
	require.Equal(t, 0, status, "%s%s", out, wrong)
}

func TestKilledServerLosesNothingThatItAnswered(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	endCluster(t, data)
	random := rand.New(rand.NewPCG(2, 9))
	p := serve(t, command(t, data, "serve"))
	p.ready()
	l := newLoad(t, p.url, 1)
	for range rounds(t, 3) {
		ctx, cancel := context.WithCancel(t.Context())
		go l.after(ctx, 20+random.Int64N(600), func() {
			_ = p.cmd.Process.Kill()
			cancel()
		})
		l.run(ctx)
		cancel()
		<-p.done
		if random.IntN(2) == 0 { // it may also die before it serves again
			starting := launch(t, command(t, data, "serve", "--log-level", "DEBUG"))
			lines := random.IntN(6)
			starting.until(func(said, url string) bool { return strings.Count(said, "\n") >= lines || url != "" })
			starting.kill()
		}
		p = serve(t, command(t, data, "serve"))
		l.at(p.url)
		p.ready()
		l.verify()
	}
	t.Logf("%d writes were answered", l.answered.Load())
	healthy(t, command(t, data, "doctor"))
	p.stop()
}

func TestKilledPostgresComesBackUnderLoad(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	endCluster(t, data)
	random := rand.New(rand.NewPCG(3, 9))
	p := serve(t, command(t, data, "serve"))
	p.ready()
	l := newLoad(t, p.url, 2)
	for round := range rounds(t, 2) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		go l.after(ctx, 20+random.Int64N(300), func() {
			victim := postmaster(data)
			if round%2 == 1 { // one of its processes is enough: the others end with it
				if children := childrenOf(victim); len(children) > 0 {
					victim = children[random.IntN(len(children))]
				}
			}
			_ = syscall.Kill(victim, syscall.SIGKILL)
			l.after(ctx, 200, cancel) // it has come back
		})
		l.run(ctx)
		require.ErrorIs(t, ctx.Err(), context.Canceled, "the load was answered again")
		cancel()
		p.ready()
		l.verify()
	}
	t.Logf("%d writes were answered, %d times it was away", l.answered.Load(), l.away.Load())
	require.NotZero(t, l.away.Load())
	for line := range strings.Lines(p.text()) {
		require.NotContains(t, line, "status=500")
	}
	healthy(t, command(t, data, "doctor"))
	p.stop()
}

// childrenOf are the processes that a process has started.
func childrenOf(pid int) (children []int) {
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	for word := range strings.FieldsSeq(string(out)) {
		if child, err := strconv.Atoi(word); err == nil {
			children = append(children, child)
		}
	}
	return children
}
