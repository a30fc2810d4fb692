package app_test

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

func TestKilledServerLosesNothingThatItAnswered(t *testing.T) {
	t.Parallel()
	losesNothingWhenKilled(t, 2) // the server alone, and with Postgres
}

// losesNothingWhenKilled kills bahi under load again and again, and every second time Postgres with it. environment is that of its
// processes.
func losesNothingWhenKilled(t *testing.T, rounds int, environment ...string) {
	t.Helper()
	data := pgtest.Dir(t)
	apptest.EndCluster(t, data)
	random := rand.New(rand.NewPCG(2, 9))
	program := func(args ...string) *apptest.Cmd {
		cmd := apptest.Program(t, data, args...)
		cmd.Env = append(append(cmd.Env, apptest.AreasSettings()...), environment...)
		return cmd
	}
	p := apptest.Serve(t, program("serve"))
	// each start follows a kill at once, and needs the port of the one before
	environment = append(environment, "BAHI_ADDR="+strings.TrimPrefix(p.URL, "http://"))
	p.Ready()
	l := apptest.NewLoad(t, p.URL, 1)
	l.AllAreas()
	for round := range apptest.Rounds(t, rounds) {
		ctx, cancel := context.WithCancel(t.Context())
		go l.After(ctx, 20+random.Int64N(600), func() {
			if pid := apptest.Postmaster(data); round%2 == 1 && pid != 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			_ = p.Cmd.Process.Kill()
			cancel()
		})
		l.Run(ctx)
		cancel()
		if random.IntN(2) == 0 { // a kill during the start
			starting := apptest.Launch(t, program("serve", "--log-level", "DEBUG"))
			lines := random.IntN(6)
			starting.Until(func(said, url string) bool { return strings.Count(said, "\n") >= lines || url != "" })
			starting.Kill()
		}
		p = apptest.Serve(t, program("serve"))
		l.At(p.URL)
		p.Ready()
		l.Verify()
	}
	t.Logf("%d writes were acknowledged", l.Answered.Load())
	apptest.Healthy(t, program("doctor"))
	p.Stop()
}

func TestKilledPostgresComesBackUnderLoad(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	apptest.EndCluster(t, data)
	random := rand.New(rand.NewPCG(3, 9))
	cmd := apptest.Command(t, data, "serve")
	cmd.Env = append(cmd.Env, apptest.AreasSettings()...)
	p := apptest.Serve(t, cmd)
	p.Ready()
	l := apptest.NewLoad(t, p.URL, 2)
	l.AllAreas()
	for round := range apptest.Rounds(t, 2) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		go l.After(ctx, 20+random.Int64N(300), func() {
			victim := apptest.Postmaster(data)
			if round%2 == 1 { // killing one of its processes is enough: the others end with it
				if children := childrenOf(victim); len(children) > 0 {
					victim = children[random.IntN(len(children))]
				}
			}
			_ = syscall.Kill(victim, syscall.SIGKILL)
			l.After(ctx, 200, cancel) // the server is back
		})
		l.Run(ctx)
		require.ErrorIs(t, ctx.Err(), context.Canceled, "the server recovered under load")
		cancel()
		p.Ready()
		l.Verify()
	}
	t.Logf("%d writes were acknowledged, the server was unavailable %d times", l.Answered.Load(), l.Away.Load())
	require.NotZero(t, l.Away.Load())
	for line := range strings.Lines(p.Text()) {
		// whose 503 is a 500, by SPEC.txt
		require.False(t, strings.Contains(line, "status=500") && !strings.Contains(line, "operation=create-enquiry"), line)
	}
	apptest.Healthy(t, apptest.Command(t, data, "doctor"))
	p.Stop()
}

// childrenOf returns the child processes of a process.
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
