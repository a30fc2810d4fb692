package sim

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	oneSeed  = flag.Uint64("seed", 0, "run this seed alone, and show its trace")
	seeds    = flag.Uint64("seeds", 300, "run so many seeds")
	fromSeed = flag.Uint64("from", 1, "the first seed")
)

// maxSteps limits a run: one that takes longer makes no progress.
const maxSteps = 60_000

// run runs a seed and returns the world after it.
func run(t *testing.T, seed uint64) (w *world) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, r))
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed)
		w.mu.Lock()
		for _, name := range []string{"a", "b", "c"}[:1+w.rng.IntN(3)] {
			w.nodes = append(w.nodes, w.start(name))
		}
		for i := range 1 + w.rng.IntN(4) {
			w.clients = append(w.clients, w.newClient(fmt.Sprint("client", i), 2+w.rng.IntN(8)))
		}
		for i := range w.rng.IntN(3) {
			w.clients = append(w.clients, w.newClient(fmt.Sprint("operator", i), 1+w.rng.IntN(3)))
		}
		w.mu.Unlock()
		w.play()
		w.end()
	})
	return w
}

// play runs until all operations are done and all followers have caught up. Faults end when the clients have no operations left.
func (w *world) play() {
	for w.steps < maxSteps && len(w.broken) == 0 {
		w.step()
		w.mu.Lock()
		begun := true
		for _, c := range w.clients {
			begun = begun && c.left == 0
		}
		if begun && w.rng.IntN(100) == 0 {
			w.faults = 0
			clear(w.paused)
		}
		done := w.faults == 0 && len(w.late()) == 0
		w.mu.Unlock()
		if done {
			return
		}
	}
	if len(w.broken) == 0 {
		w.wrong("no progress: %s", strings.Join(w.late(), "; "))
	}
}

// end ends all processes, and checks the final state.
func (w *world) end() {
	synctest.Wait()
	w.check()
	w.faults, w.over = 0, true
	clear(w.paused)
	for _, n := range w.nodes {
		n.stop()
	}
	for _, c := range w.clients {
		c.end()
	}
	ended := make(chan struct{})
	go func() {
		for _, n := range append(w.ended, w.nodes...) {
			n.done.Wait()
		}
		close(ended)
	}()
	for {
		select {
		case <-ended:
			synctest.Wait()
			w.mu.Lock()
			for len(w.sessions) > 0 {
				w.sessions[0].kill()
			}
			w.mu.Unlock()
			w.running.Wait()
			return
		default:
			w.step()
		}
	}
}

func failure(w *world) string {
	tail := w.trace[max(0, len(w.trace)-60):]
	return fmt.Sprintf("seed %d: %s\n%s\nrepeat it: go test ./internal/prove/sim -run Sim -seed %d",
		w.seed, strings.Join(w.broken, "\n"), strings.Join(tail, "\n"), w.seed)
}

// Under every seed, no acknowledged write is lost, nothing is done twice, and all followers catch up.
func TestSim(t *testing.T) {
	if *oneSeed > 0 {
		w := run(t, *oneSeed)
		t.Log(strings.Join(w.trace, "\n"))
		require.Empty(t, w.broken, "seed %d", *oneSeed)
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var next, steps atomic.Uint64
	next.Store(*fromSeed)
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for seed := next.Add(1) - 1; seed < *fromSeed+*seeds && !t.Failed(); seed = next.Add(1) - 1 {
					w := run(t, seed)
					if steps.Add(uint64(w.steps)); len(w.broken) > 0 {
						t.Error(failure(w))
					}
				}
			})
		}
	})
	t.Logf("%d seeds, %d steps, %.1f seeds a second", *seeds, steps.Load(), float64(*seeds)/time.Since(began).Seconds())
}

// A seed gives one order of steps, unless goroutines of the product race for a lock at the same time, which is rare.
func TestASeedRepeats(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		one, repeated := run(t, seed+1).trace, false
		for range 5 {
			two := run(t, seed+1).trace
			if repeated = slices.Equal(one, two); repeated {
				break
			}
			one = two
		}
		require.True(t, repeated, "seed %d", seed+1)
	}
}

// These seeds found faults of the product that no other test finds.
func TestSeedsThatFoundFaults(t *testing.T) {
	t.Parallel()
	for seed, fault := range map[uint64]string{1697: "a quiet projection did not notice that Postgres had lost its checkpoint"} {
		w := run(t, seed)
		require.Empty(t, w.broken, "%s: %s", fault, failure(w))
	}
}
