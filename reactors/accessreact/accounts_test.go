package accessreact

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/reactors"
)

func TestJobsNameNobody(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	log := slog.New(slog.DiscardHandler)
	queue, err := reactors.NewJobs(t.Context(), reactors.Config{
		Pool: r.pool, Workers: append(r.mails.Workers(), r.eraser.Workers()...), Now: r.Now, Log: log,
	})
	require.NoError(t, err)
	t.Cleanup(queue.Close)
	runner := reactors.NewRunner(r.log, r.pool, queue, log)
	worktest.Background(t, func(ctx context.Context) error { return runner.Run(ctx, Accounts) })
	require.Eventually(t, func() bool {
		s := runner.Statuses()["accounts"]
		return s.Working && s.Ready
	}, time.Minute, 10*time.Millisecond)

	id := r.register("asha@example.org")
	host := r.settle("host@example.net") // verified: no mail
	r.move(id, "rao@example.org")
	r.invite(host, "rao@example.org")
	r.move(host, "guest@example.net")
	undo, err := r.accounts.IssueUndo(t.Context(), host, r.state(host).Left[0], 1)
	require.NoError(t, err)
	_, err = r.accounts.UndoEmail(t.Context(), commands.Request{}, undo)
	require.NoError(t, err)
	r.leave(id)
	r.Pass(24 * time.Hour)
	require.NoError(t, r.eraser.Erase(r.t.Context(), id))
	head, err := r.log.Head(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return runner.Statuses()["accounts"].Position >= head }, time.Minute, 10*time.Millisecond)

	kinds := pgtest.Values[string](t, r.pool, `select kind from river.river_job order by id`)
	require.Equal(t, []string{
		"send_verification", "send_verification", "send_email_notice", "send_invitation",
		"send_verification", "send_email_notice", // to the host's other address
		"send_password_reset", "send_email_notice", "send_deletion_receipt", // and the undo
		"send_deletion_notice", "send_deletion_receipt", "erase_user",
	}, kinds)
	named := pgtest.Values[string](t, r.pool, `select args::text from river.river_job where args::text ~* 'asha|rao|example|guest'`)
	require.Empty(t, named)
	at := pgtest.Value[time.Time](t, r.pool, `select scheduled_at from river.river_job where kind = 'erase_user'`)
	require.WithinDuration(t, r.Now(), at, 0, "at the due time")
}
