package postgres

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// trouble makes commits slow or fail, or terminates their session, at random.
const trouble = `
	create function trouble() returns trigger language plpgsql as $$
	declare
	  chance float := random();
	begin
	  case
	  when chance < 0.002 then perform pg_sleep(0.05 * random());
	  when chance < 0.003 then raise exception 'trouble';
	  when chance < 0.0035 then perform pg_terminate_backend(pg_backend_pid());
	  else null;
	  end case;
	  return null;
	end $$;
	create constraint trigger trouble after insert on log.event deferrable initially deferred
	for each row execute function trouble()`

// nodes are the processes of the test and their output.
type nodes struct {
	t    *testing.T
	url  string
	seed uint64
	all  sync.WaitGroup

	mu    sync.Mutex
	told  []string
	alive []*process
}

type process struct {
	role string
	cmd  *exec.Cmd
	in   io.WriteCloser
	gone chan struct{}
	dies bool // was killed
}

func (n *nodes) start(role string) {
	n.seed++
	cmd := exec.CommandContext(n.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, urlVariable+"="+n.url, seedVariable+"="+strconv.FormatUint(n.seed, 10))
	cmd.Stderr = n.t.Output()
	in, err := cmd.StdinPipe()
	require.NoError(n.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, cmd.Start())
	p := &process{role: role, cmd: cmd, in: in, gone: make(chan struct{})}
	n.alive = append(n.alive, p)
	n.all.Go(func() {
		defer close(p.gone)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			n.mu.Lock()
			n.told = append(n.told, strings.TrimSuffix(line, "\n"))
			n.mu.Unlock()
		}
		if err := cmd.Wait(); err != nil && !p.dies {
			n.mu.Lock()
			n.told = append(n.told, "wrong "+role+" ended: "+err.Error())
			n.mu.Unlock()
		}
	})
}

// kill kills a process with SIGKILL and starts another in its place.
func (n *nodes) kill(i int) {
	p := n.alive[i]
	n.alive = append(n.alive[:i], n.alive[i+1:]...)
	p.dies = true
	require.NoError(n.t, p.cmd.Process.Kill())
	<-p.gone
	n.start(p.role)
}

func (n *nodes) tellf(format string, args ...any) {
	for _, p := range n.alive {
		fmt.Fprintf(p.in, format+"\n", args...) // check sees a process that has ended
	}
}

// 64 clients in four processes append, two processes only read, and all follow the log. Meanwhile processes are killed, sessions are
// terminated, commits are slow or fail, and the lock is held. In the end each subscriber has seen exactly 1 to N, each acknowledged append
// is in the log once, and no refused one is.
func TestFollowersSkipAndRepeatNothing(t *testing.T) {
	t.Parallel()
	const seed = 20261121
	var (
		url    = newLog(t)
		conn   = connect(t, url)
		chance = rand.New(rand.NewPCG(seed, 0))
		n      = &nodes{t: t, url: url, seed: seed}
		s      = newStore(t, url)
		did    = map[string]int{}
	)
	_, err := conn.Exec(t.Context(), trouble)
	require.NoError(t, err)
	for _, role := range []string{"writer", "writer", "writer", "writer", "reader", "reader"} {
		n.start(role)
	}

	const least = 1000 // events, however slow the machine is
	until, next := time.Now().Add(soakFor()), event.Position(500)
	for batch, err := range s.Subscribe(t.Context(), 0) {
		require.NoError(t, err)
		if batch.UpTo > least && time.Now().After(until) {
			break
		}
		if batch.UpTo < next {
			continue
		}
		next = batch.UpTo + event.Position(100+chance.IntN(1000))
		what := []string{"process killed", "session ended", "session ended", "lock taken", "lock taken", "lock taken"}[chance.IntN(6)]
		did[what]++
		switch what {
		case "process killed":
			n.kill(chance.IntN(len(n.alive)))
		case "session ended":
			_, err = conn.Exec(t.Context(), `
				select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and application_name in ('writer', 'reader') order by random() limit 3`)
		default:
			_, err = conn.Exec(t.Context(), `begin; `+lockLog+fmt.Sprintf(`; select pg_sleep(%f); commit`, 0.05*chance.Float64()))
		}
		require.NoError(t, err)
	}
	n.tellf("stop")
	_, err = conn.Exec(t.Context(), `drop trigger trouble on log.event`)
	require.NoError(t, err)
	n.finish(s)
	log := wholeLog(t, s)
	n.check(log)
	t.Logf("%d events; %v", len(log), did)
	require.Greater(t, len(log), least)
}

// finish lets all processes read the log to its end. A stopping writer may still finish an append, so the end is known only when all
// writers have reported that they stopped.
func (n *nodes) finish(s *Store) {
	n.t.Helper()
	last := must(n.t, s, "last-1", makes(1)...).Position
	n.tellf("until %d", last)
	ended := make(chan struct{})
	go func() {
		n.all.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		for _, p := range n.alive {
			p.cmd.Process.Signal(syscall.SIGQUIT) // prints its stack
		}
		<-ended
		require.FailNow(n.t, "a process did not reach the end of the log")
	}
}

// check compares the processes' output with the log.
func (n *nodes) check(log []event.Stored) {
	t := n.t
	t.Helper()
	there, sums := byID(t, log), make([]uint64, len(log)+1)
	for i, e := range log {
		sums[i+1] = sums[i] + digest(e)
	}
	count := map[string]int{}
	for _, line := range n.told {
		word, rest, _ := strings.Cut(line, " ")
		count[word]++
		switch word {
		case "ok":
			var (
				stream, ids string
				position    event.Position
				revision    int64
			)
			_, err := fmt.Sscan(rest, &stream, &position, &revision, &ids)
			require.NoError(t, err, line)
			all := strings.Split(ids, ",")
			for i, id := range all {
				e := there[uuid.MustParse(id)]
				behind := len(all) - 1 - i
				require.Equal(t, position-event.Position(behind), e.Position, line)
				require.Equal(t, revision-int64(behind), e.Revision, line)
				require.Equal(t, stream, e.Stream, line)
			}
		case "no":
			for id := range strings.SplitSeq(rest, ",") {
				require.Zero(t, there[uuid.MustParse(id)].Position, line)
			}
		case "saw":
			var after, last, sum uint64
			_, err := fmt.Sscan(rest, &after, &last, &sum)
			require.NoError(t, err, line)
			require.Equal(t, sums[last]-sums[after], sum, line)
		default:
			require.Fail(t, line)
		}
	}
	t.Logf("%v", count)
	require.NotZero(t, count["ok"])
	require.NotZero(t, count["saw"])
}
