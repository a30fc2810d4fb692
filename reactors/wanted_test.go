package reactors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/projections"
)

// greetAll is the job of a reactor that greets several accounts at once.
type greetAll struct {
	Names []string `json:"names"`
}

func (greetAll) Kind() string { return "greet" }

// Join accepts three names.
func (g greetAll) Join(other Args) (Args, bool) {
	more, ok := other.(greetAll)
	if !ok || len(g.Names) == 3 {
		return g, false
	}
	return greetAll{append(g.Names, more.Names...)}, true
}

func TestJobsOfEventsThatComeTogetherAreJoined(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var (
		mu      sync.Mutex
		greeted []string
	)
	jobs := r.jobs(Config{Workers: Workers{Work(Policy{}, func(_ context.Context, job Job[greetAll]) error {
		mu.Lock()
		defer mu.Unlock()
		greeted = append(greeted, job.Args.Names...)
		return nil
	})}})
	reactor := Define("greeter", On(func(q *Queue, e event.Recorded[book.AccountOpened]) error {
		q.Add(greetAll{[]string{e.Data.Name}})
		return nil
	}))
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprint("a", i))
	}
	r.add(names...)
	done, err := NewRunner(r.store, r.pool, jobs, r.log).Replay(t.Context(), reactor, 0, nil)
	require.NoError(t, err)
	require.Equal(t, 3, done.Jobs)
	r.background(jobs.Run)
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(greeted) == len(names) }, time.Minute, 10*time.Millisecond)
	require.ElementsMatch(t, names, greeted)
}

func TestAReactorThatGathersWaitsForOtherEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	runner := NewRunner(r.store, r.pool, r.jobs(Config{}), r.log)
	patient, prompt := greeter(nil).Gathering(time.Hour), greeter(nil)
	patient.Name, prompt.Name = "patient", "greeter"
	p := &process{Runner: runner, t: t}
	r.background(func(ctx context.Context) error { return runner.Run(ctx, patient, prompt) })
	p.until(func(projections.Status) bool {
		return working(p.Statuses()["patient"]) && working(p.Statuses()["greeter"])
	})
	before := r.head()
	ids := r.add("SBI")
	p.reached(r.head())
	require.Equal(t, ids, r.events())
	require.Equal(t, before, p.Statuses()["patient"].Position)
}

func TestJobsThatNobodyWantsAreNotAdded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.add("SBI", "HDFC", "ICICI")
	head := r.head()
	var fails error
	jobs := r.jobs(Config{Workers: Workers{WorkIf(Policy{}, func(_ context.Context, asOf event.Position, all []Wanted[greet]) ([]bool, error) {
		require.Equal(t, head, asOf)
		require.Len(t, all, 3)
		return []bool{false, true, false}, fails
	}, func(context.Context, Job[greet]) error { return nil })}})
	runner := NewRunner(r.store, r.pool, jobs, r.log)
	_, err := runner.Replay(t.Context(), greeter(nil), 0, nil)
	require.NoError(t, err)
	require.Equal(t, ids[1:2], r.events())
	fails = errors.New("the tables are away")
	_, err = runner.Replay(t.Context(), greeter(nil), 0, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, ids, r.events(), "if the check fails, all are added")
}
