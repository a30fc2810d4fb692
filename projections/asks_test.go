package projections

import (
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

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
