package accessreact

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/event"
	"bahi/domain/patch"
	"bahi/internal/test/logtest"
)

// erasable is a user with a session, a former address and picture, a provider's identity, and a membership in another
// workspace.
type erasable struct {
	id    uuid.UUID
	marks []string // must occur nowhere afterwards
	undo  string   // token that would restore the former address
}

func (r *fixture) person(name string, host uuid.UUID) erasable {
	r.t.Helper()
	ctx := r.t.Context()
	old, now := name+"old@example.org", name+"new@example.org"
	p := erasable{id: r.settle(old), marks: []string{name + "old@", name + "new@", "Ashapriya" + name}}
	_, err := r.accounts.Change(ctx, commands.Request{}, p.id,
		accesscmd.Profile{Email: patch.Set(now), FirstName: patch.Set("Ashapriya" + name)})
	require.NoError(r.t, err)
	r.Pass(2 * time.Minute)
	require.NoError(r.t, r.mails.emailNotice(ctx, job(sendEmailNotice{User: p.id, Revision: r.revision(p.id, "UserEmailChanged")})))
	p.undo = token(r.t, r.box.kept, "/auth/undo-email-change")
	require.NoError(r.t, r.mails.verification(ctx, job(sendVerification{User: p.id})))
	_, err = r.accounts.VerifyEmail(ctx, commands.Request{}, token(r.t, r.box.kept, "/auth/verify-email"))
	require.NoError(r.t, err)
	for _, key := range []string{name + "1", name + "2"} {
		_, _, err := r.accounts.ChangePicture(ctx, commands.Request{}, p.id, key)
		require.NoError(r.t, err)
		r.remains.pictures[key] = true
	}
	_, err = r.accounts.SignInByProvider(ctx, commands.Request{},
		accesscmd.Identity{Issuer: "https://idp.example", Subject: name, Email: now, EmailVerified: true})
	require.NoError(r.t, err)
	_, err = r.accounts.SignIn(ctx, commands.Request{}, now, secret)
	require.NoError(r.t, err)
	invitation := r.invite(host, now)
	require.NoError(r.t, r.mails.invitation(ctx, job(sendInvitation{Workspace: r.state(host).Workspace, Invitation: invitation})))
	_, _, err = r.accounts.Accept(ctx, commands.Request{}, token(r.t, r.box.kept, "/invitations/accept"), p.id)
	require.NoError(r.t, err)
	require.NoError(r.t, r.mails.reset(ctx, job(sendReset{EmailKey: r.key(now)})))
	r.leave(p.id)
	return p
}

// isGone checks everything that an erasure promises.
func (r *fixture) isGone(p erasable, before user.State, host uuid.UUID) {
	r.t.Helper()
	ctx := r.t.Context()
	s := r.state(p.id)
	require.True(r.t, s.Erased)
	_, err := r.accounts.Text(ctx, before.Email)
	require.ErrorIs(r.t, err, event.ErrErased)
	require.NotContains(r.t, r.members(r.state(host).Workspace), p.id)
	l, err := commands.Load(ctx, r.accounts.Commands.Fresh(), workspace.Kind, before.Workspace.String())
	require.NoError(r.t, err)
	require.True(r.t, l.State.Made, "the workspace of the last member stays")
	require.Empty(r.t, l.State.Members)
	for _, mark := range p.marks {
		require.NotContains(r.t, r.dump(), mark)
		for _, m := range r.box.kept {
			require.NotContains(r.t, m.to+m.text, mark)
		}
	}
	require.Empty(r.t, r.remains.pictures)
	var rows int
	require.NoError(r.t, r.pool.QueryRow(ctx, `
		select (select count(*) from account.password where user_id = $1) + (select count(*) from account.session where user_id = $1)
			+ (select count(*) from account.mailed_token where subject_id = any($2))`,
		p.id, []uuid.UUID{p.id, accesscmd.Addressee(p.id, before.EmailKey), accesscmd.ChangeOf(p.id, 0)}).Scan(&rows))
	require.Zero(r.t, rows)
	_, err = r.accounts.UndoEmail(ctx, commands.Request{}, p.undo)
	require.Equal(r.t, credentials.Undo.Refusal(), err)
	_, err = r.views.User(r.t.Context(), nil, p.id)
	require.Equal(r.t, user.ErrNotFound, err)
}

func TestErasureSurvivesAFailureOfEachStep(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	host := r.settle("host@example.net")
	for n := 1; ; n++ {
		name := strings.Repeat("z", n)
		p := r.person(name, host)
		before := r.state(p.id)
		r.Pass(24 * time.Hour)
		r.faults.arm(n)
		err := r.eraser.Erase(r.t.Context(), p.id)
		steps := r.faults.seen
		r.faults.arm(0)
		if err != nil {
			require.ErrorIs(t, err, errOnce)
			require.NoError(t, r.eraser.Erase(r.t.Context(), p.id), "after %s", steps[n-1])
		}
		r.isGone(p, before, host)
		require.Equal(t, uuid.Nil, r.holder(name+"new@example.org"))

		head := logtest.Head(t, r.log)
		require.NoError(t, r.eraser.Erase(r.t.Context(), p.id))
		again := logtest.Head(t, r.log)
		require.Equal(t, head, again, "a second erasure changes nothing")
		if err == nil {
			require.Contains(t, steps[0], "append to user-", "the first event says that the erasure has begun")
			require.Greater(t, n, 8, "%q", steps)
			break
		}
	}
}

func TestErasedUserMayRegisterAgain(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	host := r.settle("host@example.net")
	p := r.person("asha", host)
	r.Pass(24 * time.Hour)
	require.NoError(t, r.eraser.Erase(r.t.Context(), p.id))
	again := r.register("ashanew@example.org") // immediately
	require.NotEqual(t, p.id, again)
	require.Equal(t, again, r.holder("ashanew@example.org"))
	r.register("ashaold@example.org")
	require.NoError(t, r.eraser.Erase(r.t.Context(), p.id), "a retried job")
	require.Equal(t, again, r.holder("ashanew@example.org"))
	text, err := r.accounts.Text(t.Context(), r.state(again).Email)
	require.NoError(t, err)
	require.Equal(t, "ashanew@example.org", text)
	in, err := r.accounts.SignInByProvider(t.Context(), commands.Request{},
		accesscmd.Identity{Issuer: "https://idp.example", Subject: "asha", Email: "third@example.org", EmailVerified: true})
	require.NoError(t, err)
	require.NotEqual(t, p.id, in.Tokens.User)
	require.NoError(t, r.mails.invitation(t.Context(),
		job(sendInvitation{Workspace: r.state(host).Workspace, Invitation: r.invite(host, "ashanew@example.org")})))
	require.Equal(t, "ashanew@example.org", r.box.kept[len(r.box.kept)-1].to)
	invited := token(t, r.box.kept, "/invitations/accept")
	require.NoError(t, r.mails.verification(t.Context(), job(sendVerification{User: again})))
	_, err = r.accounts.VerifyEmail(t.Context(), commands.Request{}, token(t, r.box.kept, "/auth/verify-email"))
	require.NoError(t, err)
	_, _, err = r.accounts.Accept(t.Context(), commands.Request{}, invited, again)
	require.NoError(t, err)
}

func TestOnlyDueUsersAreErased(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	id := r.settle("asha@example.org")
	unharmed := func() {
		t.Helper()
		head := logtest.Head(t, r.log)
		require.NoError(t, r.eraser.Erase(r.t.Context(), id))
		require.NoError(t, r.eraser.Sweep(r.t.Context()))
		after := logtest.Head(t, r.log)
		require.Equal(t, head, after)
		_, err := r.accounts.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
		require.NoError(t, err)
	}
	unharmed()
	r.leave(id)
	r.Pass(24*time.Hour - time.Nanosecond)
	unharmed()
	require.NoError(t, r.accounts.CancelDeletion(t.Context(), commands.Request{}, id))
	r.Pass(time.Nanosecond)
	unharmed()
	r.leave(id)
	unharmed()
	require.NoError(t, r.eraser.Erase(r.t.Context(), uuid.New()), "nobody")

	r.Pass(24 * time.Hour)
	r.faults.arm(2) // after the event that begins the erasure
	require.ErrorIs(t, r.eraser.Erase(r.t.Context(), id), errOnce)
	require.Equal(t, user.ErrNotFound, r.accounts.CancelDeletion(t.Context(), commands.Request{}, id), "too late")
	_, err := r.accounts.SignIn(t.Context(), commands.Request{}, "asha@example.org", secret)
	require.Equal(t, credentials.ErrSignIn, err)
	r.faults.arm(0)
	require.NoError(t, r.eraser.Sweep(r.t.Context()))
	require.True(t, r.state(id).Erased)
}

// The user's former address now belongs to another user, who keeps it.
func TestErasureKeepsAnAddressOfAnotherUser(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	host := r.settle("host@example.net")
	id := r.settle("shared@example.org")
	r.move(id, "own@example.org")
	next := r.settle("shared@example.org")
	open := r.invite(host, "shared@example.org")
	r.leave(id)
	r.Pass(24 * time.Hour)
	require.NoError(t, r.eraser.Erase(r.t.Context(), id))
	require.Equal(t, next, r.holder("shared@example.org"))
	r.box.take()
	require.NoError(t, r.mails.invitation(t.Context(), job(sendInvitation{Workspace: r.state(host).Workspace, Invitation: open})))
	require.Len(t, r.box.take(), 1)
	_, err := r.accounts.SignIn(t.Context(), commands.Request{}, "shared@example.org", secret)
	require.NoError(t, err)
}

func TestSweepContinuesAfterAFailedErasure(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	ids := []uuid.UUID{r.settle("a@example.org"), r.settle("b@example.org"), r.settle("c@example.org")}
	for _, id := range ids {
		r.leave(id)
	}
	stays := r.settle("d@example.org")
	r.Pass(24 * time.Hour)
	r.faults.arm(5)
	require.ErrorIs(t, r.eraser.Sweep(r.t.Context()), errOnce)
	erased := 0
	for _, id := range ids {
		if r.state(id).Erased {
			erased++
		}
	}
	require.Equal(t, 2, erased)
	r.faults.arm(0)
	require.NoError(t, r.eraser.Sweep(r.t.Context()))
	for _, id := range ids {
		require.True(t, r.state(id).Erased)
	}
	require.True(t, r.state(stays).Active())
}

func TestAddressOfAClosedInvitationIsErased(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	host := r.settle("host@example.net")
	invitation := r.invite(host, "never@example.org")
	readable := func() error {
		l, err := commands.Load(t.Context(), r.accounts.Commands.Fresh(), workspace.Kind, r.state(host).Workspace.String())
		require.NoError(t, err)
		_, err = r.accounts.Text(t.Context(), l.State.Invitations[invitation].Email)
		return err
	}
	require.NoError(t, r.mails.invitation(t.Context(), job(sendInvitation{Workspace: r.state(host).Workspace, Invitation: invitation})))
	require.NoError(t, r.eraser.Sweep(r.t.Context()))
	require.NoError(t, readable())
	require.Len(t, r.box.kept, 1)
	r.Pass(7 * 24 * time.Hour)
	require.NoError(t, r.eraser.Sweep(r.t.Context()))
	require.ErrorIs(t, readable(), event.ErrErased)
	require.Empty(t, r.box.kept)
}
