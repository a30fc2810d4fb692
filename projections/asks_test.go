package projections

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/readmodels"
)

func TestAReadInAnotherProcessAsksForWhatItWaitsForAndIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gathers := func() *Projection { return seen("seen", nil).WithBatchDelay(time.Hour) } // events wait until a reader asks
	one := r.run(t, gathers())
	one.until("seen", func(s Status) bool { return s.Working })
	two := r.run(t, gathers())
	two.until("seen", func(s Status) bool { return s.Generation != 0 && !s.Working })
	heard, err := pgx.ConnectConfig(t.Context(), r.pool.Config().ConnConfig)
	require.NoError(t, err)
	defer heard.Close(t.Context())
	_, err = heard.Exec(t.Context(), `listen `+asksChannel)
	require.NoError(t, err)
	soon(t, "all processes hear each other", func() (all bool) {
		err := r.pool.QueryRow(t.Context(),
			`select count(*) = 3 from pg_stat_activity where datname = current_database() and query = 'listen `+asksChannel+`'`).Scan(&all)
		return err == nil && all
	})

	reader := readmodels.NewReader(r.pool, map[string]int{"seen": 1}, two.Follow)
	reader.Poll = time.Hour
	var want []string
	for i := range 20 {
		want = append(want, "n"+strconv.Itoa(i))
		r.add(t, want[i])
		f := &readmodels.At{Wait: time.Minute}
		got, err := readmodels.Rows(t.Context(), reader.From(f, "seen"), pgx.RowTo[string],
			`select name from seen.seen order by position`)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.False(t, f.Stale())
		asked, has := "ask seen "+strconv.Itoa(i+1), "has seen "+strconv.Itoa(i+1)
		for _, notice := range []string{asked, has} {
			said, err := heard.WaitForNotification(t.Context())
			require.NoError(t, err)
			require.Equal(t, notice, said.Payload)
		}
	}
}

func TestANoticeWakesWhoWaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	r := NewRunner(nil, newRig(t).pool, nil)
	p := seen("seen", nil)
	r.set(p, func(*Status) {})
	said := func() (all []string) {
		all, r.asks.out = r.asks.out, nil
		return all
	}
	woken := func(notice string) bool {
		_, moved, folds := r.Follow("seen", 1, 7)
		require.False(t, folds)
		r.handleNotice(notice)
		select {
		case <-moved:
			return true
		default:
			return false
		}
	}
	require.True(t, woken("has seen 7"))
	require.False(t, woken("has other 7"))
	require.False(t, woken("has seen"))
	require.False(t, woken("ask seen 9"), "a process that does not fold it sends nothing")
	require.Equal(t, []string{"ask seen 7"}, said(), "once")

	r.set(p, func(s *Status) { s.Working, s.Generation, s.Position = true, 1, 8 })
	r.handleNotice("ask seen 8")
	require.Equal(t, []string{"has seen 8"}, said())
	r.handleNotice("ask seen 9")
	require.Empty(t, said())
	upTo, _ := r.demands["seen"].now()
	require.Equal(t, event.Position(9), upTo)
	r.set(p, func(s *Status) { s.Position = 12 })
	r.set(p, func(s *Status) { s.Position = 13 })
	require.Equal(t, "has seen 12", strings.Join(said(), ", "), "once")
}
