package accessreact

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/eventstore"
	"bahi/internal/test/logtest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/reactors"
)

var jobs atomic.Int64

// job returns a new job.
func job[A reactors.Args](args A) reactors.Job[A] {
	return reactors.Job[A]{ID: jobs.Add(1), Event: uuid.New(), Args: args}
}

func TestVerificationMail(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	id := r.register("asha@example.org")
	send := job(sendVerification{User: id})
	require.NoError(t, r.mails.verification(t.Context(), send))
	require.NoError(t, r.mails.verification(t.Context(), send), "a retry")
	sent := r.box.take()
	require.Len(t, sent, 2)
	require.Equal(t, sent[0].id, sent[1].id, "a retry must have the same id")
	require.Equal(t, "asha@example.org", sent[1].to)
	require.Equal(t, "Confirm your email address for Bahi", sent[1].subject)
	require.NotContains(t, words(sent[1].text), "Ashapriya", "a stranger may have registered the address")
	link := token(t, sent, "/auth/verify-email")
	escaped, err := url.QueryUnescape(link)
	require.NoError(t, err)
	_, err = r.accounts.VerifyEmail(t.Context(), commands.Request{}, escaped)
	require.NoError(t, err)
	r.Pass(2 * time.Minute)
	other := job(sendVerification{User: id})
	require.NoError(t, r.mails.verification(t.Context(), other))
	require.Empty(t, r.box.take(), "the address was verified meanwhile")

	r.move(id, "rao@example.org")
	require.NoError(t, r.mails.verification(t.Context(), other))
	sent = r.box.take()
	require.Len(t, sent, 1)
	require.Equal(t, "rao@example.org", sent[0].to, "the current address")
	require.NotEqual(t, link, token(t, sent, "/auth/verify-email"))
}

func TestPreviousAddressIsToldAboutAChange(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	id := r.settle("asha@example.org")
	r.move(id, "rao@example.org")
	notice := job(sendEmailNotice{User: id, Revision: r.revision(id, "UserEmailChanged")})
	require.NoError(t, r.mails.emailNotice(t.Context(), notice))
	sent := r.box.take()
	require.Len(t, sent, 1)
	require.Equal(t, "asha@example.org", sent[0].to)
	require.Equal(t, "Your email address at Bahi was changed", sent[0].subject)
	require.NotContains(t, words(sent[0].text), "rao", "the mail must not name the new address")
	undo := token(t, sent, "/auth/undo-email-change")
	require.NotContains(t, sent[0].text, "administrator", "the user needs no administrator")
	require.NoError(t, r.mails.emailNotice(t.Context(), notice))
	require.Equal(t, sent, r.box.take(), "a retry sends the same mail")
	wrong := job(sendEmailNotice{User: id, Revision: 0})
	require.ErrorAs(t, r.mails.emailNotice(t.Context(), wrong), new(*river.JobCancelError))

	// The undo is reported to the newer address if that was verified.
	other := job(sendEmailNotice{User: id, Revision: r.revision(id, "UserEmailChanged")})
	_, err := r.accounts.UndoEmail(t.Context(), commands.Request{}, undo)
	require.NoError(t, err)
	require.NoError(t, r.mails.emailNotice(t.Context(), job(sendEmailNotice{User: id, Revision: r.revision(id, "UserEmailRestored")})))
	require.Empty(t, r.box.take(), "the newer address was not verified")
	require.NoError(t, r.mails.emailNotice(t.Context(), other))
	sent = r.box.take()
	require.Len(t, sent, 1)
	require.NotContains(t, sent[0].text, "token=", "an undo has no undo")
	require.Contains(t, sent[0].text, "write to the administrator")
}

// words returns a mail's text without its tokens, which are random letters.
func words(text string) string { return regexp.MustCompile(`token=\S+`).ReplaceAllString(text, "") }

func TestAdministratorsMailNamesNobody(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	id := r.settle("asha@example.org")
	notice := job(sendDeletionNotice{User: id})
	require.NoError(t, r.mails.deletionNotice(t.Context(), notice))
	require.Empty(t, r.box.take(), "deletion was not requested")
	r.leave(id)
	require.NoError(t, r.mails.deletionNotice(t.Context(), notice))
	sent := r.box.take()
	require.Len(t, sent, 1)
	require.Equal(t, "admin@bahi.example", sent[0].to)
	require.Contains(t, sent[0].text, id.String())
	require.Contains(t, sent[0].text, "2 April 2026, 14:30 IST")
	require.Contains(t, sent[0].text, "bahi user keep "+id.String())
	require.NoError(t, r.mails.deletionReceipt(t.Context(), job(sendDeletionReceipt{User: id})))
	receipt := r.box.take()[0]
	require.Equal(t, []string{"asha@example.org", "Your account at Bahi is to be deleted"}, []string{receipt.to, receipt.subject})
	require.Contains(t, receipt.text, "2 April 2026, 14:30 IST")
	require.Contains(t, receipt.text, "write to the administrator")
	for _, personal := range []string{"asha", "rao", "example.org"} {
		require.NotContains(t, strings.ToLower(sent[0].id+sent[0].subject+sent[0].text), personal)
	}
	said := &logtest.Buffer{}
	r.mails.Admin, r.mails.Log = "", slog.New(slog.NewTextHandler(said, nil))
	require.NoError(t, r.mails.deletionNotice(t.Context(), notice))
	require.Contains(t, said.String(), `level=WARN msg="deletion requested, but BAHI_ADMIN_EMAIL names no administrator" user=`+id.String())
	r.mails.Admin = "admin@bahi.example"
	require.NoError(t, r.accounts.CancelDeletion(t.Context(), commands.Request{}, id))
	require.NoError(t, r.mails.deletionNotice(t.Context(), notice))
	require.Empty(t, r.box.take(), "the request was withdrawn meanwhile")
}

func TestInvitationMail(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	host, ravi := r.settle("asha@example.org"), r.settle("ravi@example.org")
	home := r.state(host).Workspace
	send := job(sendInvitation{Workspace: home, Invitation: r.invite(host, "ravi@example.org")})
	require.NoError(t, r.mails.invitation(t.Context(), send))
	sent := r.box.take()
	require.Len(t, sent, 1)
	require.Equal(t, "ravi@example.org", sent[0].to)
	require.Equal(t, "You are invited to a workspace in Bahi", sent[0].subject)
	require.Contains(t, sent[0].text, "8 April 2026")
	require.NotContains(t, words(sent[0].text), "Asha", "the mail must not carry a user's words")
	in, _, err := r.accounts.Accept(t.Context(), commands.Request{}, token(t, sent, "/invitations/accept"), ravi)
	require.NoError(t, err)
	require.Equal(t, home, in)
	require.Equal(t, workspace.Owner, r.members(home)[ravi])
	require.NoError(t, r.mails.invitation(t.Context(), send))
	require.Empty(t, r.box.take(), "the invitation was accepted meanwhile")
	require.NoError(t, r.mails.invitation(t.Context(), job(sendInvitation{Workspace: home, Invitation: uuid.New()})))
	require.NoError(t, r.mails.invitation(t.Context(), job(sendInvitation{Workspace: uuid.New(), Invitation: uuid.New()})))
	require.Empty(t, r.box.take(), "an unknown invitation")
}

func TestErasedUserGetsNoMail(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	host := r.settle("host@example.net")
	id := r.settle("asha@example.org")
	invitation := r.invite(host, "asha@example.org")
	r.move(id, "rao@example.org")
	r.leave(id)
	r.Pass(24 * time.Hour)
	require.NoError(t, r.eraser.Erase(r.t.Context(), id))
	r.box.take()
	require.NoError(t, r.mails.verification(t.Context(), job(sendVerification{User: id})))
	require.NoError(t, r.mails.reset(t.Context(), job(sendReset{EmailKey: r.key("rao@example.org")})))
	require.NoError(t, r.mails.deletionNotice(t.Context(), job(sendDeletionNotice{User: id})))
	require.NoError(t, r.mails.invitation(t.Context(), job(sendInvitation{Workspace: r.state(host).Workspace, Invitation: invitation})))
	for e, err := range r.log.ReadStream(t.Context(), user.Kind.Stream(id.String()), 0, eventstore.Forwards) {
		require.NoError(t, err)
		if e.Type == "UserEmailChanged" {
			require.NoError(t, r.mails.emailNotice(t.Context(), job(sendEmailNotice{User: id, Revision: e.Revision})))
		}
	}
	require.Empty(t, r.box.take())
}

func TestOnlyPermanentRefusalsEndTheJob(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	send := job(sendVerification{User: r.register("asha@example.org")})
	r.box.refuse = errRefused
	require.ErrorAs(t, r.mails.verification(t.Context(), send), new(*river.JobCancelError))
	r.box.refuse = errors.New("the server is away")
	err := r.mails.verification(t.Context(), send)
	require.ErrorIs(t, err, r.box.refuse)
	require.NotErrorAs(t, err, new(*river.JobCancelError))
	require.NotContains(t, err.Error(), "example.org")
	r.box.refuse = nil
	require.NoError(t, r.mails.verification(t.Context(), send))
	require.Len(t, r.box.take(), 1)
}

// An unverified new address may be anybody's: a link would let its owner into the account.
func TestUnverifiedAddressGetsNoReset(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	id := r.settle("asha@example.org")
	r.move(id, "rao@example.org")
	require.NoError(t, r.mails.reset(t.Context(), job(sendReset{EmailKey: r.key("rao@example.org")})))
	require.NoError(t, r.mails.reset(t.Context(), job(sendReset{EmailKey: r.key("asha@example.org")})))
	require.Empty(t, r.box.take())
	require.NoError(t, r.mails.verification(t.Context(), job(sendVerification{User: id})))
	_, err := r.accounts.VerifyEmail(t.Context(), commands.Request{}, token(t, r.box.take(), "/auth/verify-email"))
	require.NoError(t, err)
	require.NoError(t, r.mails.reset(t.Context(), job(sendReset{EmailKey: r.key("rao@example.org")})))
	require.Contains(t, r.box.take()[0].text, "Hello Ashapriya,")

	// A registered address that is not verified gets a link, without the words of the person who typed them.
	r.register("ravi@example.org")
	require.NoError(t, r.mails.reset(t.Context(), job(sendReset{EmailKey: r.key("ravi@example.org")})))
	require.NotContains(t, words(r.box.take()[0].text), "Ashapriya")
}

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
	head := logtest.Head(t, r.log)
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
