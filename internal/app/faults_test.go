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
	losesNothingWhenKilled(t, 3)
}

// losesNothingWhenKilled kills bahi under load, then bahi with Postgres, then Postgres alone or one of its processes, again and again.
// environment is that of its processes.
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
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		stays := round%3 == 2
		var killed time.Time
		go l.After(ctx, 20+random.Int64N(200), func() {
			if victim := apptest.Postmaster(data); round%3 > 0 && victim != 0 {
				if children := childrenOf(victim); round%2 == 1 && stays && len(children) > 0 { // the others end with it
					victim = children[random.IntN(len(children))]
				}
				_ = syscall.Kill(victim, syscall.SIGKILL)
			}
			killed = time.Now()
			if stays {
				l.After(ctx, 100, cancel) // the server is back
				return
			}
			_ = p.Cmd.Process.Kill()
			cancel()
		})
		l.Run(ctx)
		require.ErrorIs(t, ctx.Err(), context.Canceled, "the server recovered under load")
		if stays {
			require.NotZero(t, l.Away.Load())
			for line := range strings.Lines(p.Text()) {
				// create-enquiry returns 500 instead of 503, by SPEC.txt
				require.False(t, strings.Contains(line, "status=500") && !strings.Contains(line, "operation=create-enquiry"), line)
			}
		} else {
			if random.IntN(2) == 0 { // a kill during the start
				starting := apptest.Launch(t, program("serve", "--log-level", "DEBUG"))
				lines := random.IntN(6)
				starting.Until(func(said, url string) bool { return strings.Count(said, "\n") >= lines || url != "" })
				starting.Kill()
			}
			p = apptest.Serve(t, program("serve"))
			l.At(p.URL)
		}
		p.Ready()
		apptest.Cluster(t, data, func(url string) { apptest.EndLeases(t, url, killed) })
		l.Verify()
	}
	t.Logf("%d writes were answered, %d times it was away", l.Answered.Load(), l.Away.Load())
	apptest.Healthy(t, program("doctor"))
	apptest.Healthy(t, program("audit", "verify", "--store")) // kills between tiles and signatures leave one history
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
