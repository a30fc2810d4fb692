package credentials_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/accesscmd/credentials"
)

var kinds = map[*credentials.Kind]time.Duration{
	&credentials.Verify: 24 * time.Hour, &credentials.Reset: time.Hour, &credentials.Invitation: 7 * 24 * time.Hour,
}

func issue(t *testing.T, n node, kind credentials.Kind, subject uuid.UUID) string {
	t.Helper()
	token, err := n.Mailed.Issue(t.Context(), kind, mailing(subject))
	require.NoError(t, err)
	return token
}

func TestMailedTokenOpensOnceWithinItsTime(t *testing.T) {
	t.Parallel()
	for kind, lifetime := range kinds {
		nodes, c := several(t, database(t), quick())
		user := uuid.New()
		token := issue(t, nodes[0], *kind, user)
		require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, token)
		for other := range kinds {
			if other != kind {
				_, err := use(t.Context(), nodes[1], *other, token)
				require.ErrorIs(t, err, other.Refusal())
			}
		}
		c.Pass(lifetime - time.Second)
		subject, err := use(t.Context(), nodes[1], *kind, token)
		require.NoError(t, err)
		require.Equal(t, user, subject)
		for _, wrong := range []string{token, "", "x", token + "=", issue(t, nodes[0], *kind, user) + " "} {
			_, err := use(t.Context(), nodes[2], *kind, wrong)
			require.ErrorIs(t, err, kind.Refusal(), "%q", wrong)
		}
		c.Pass(2 * time.Minute)
		late := issue(t, nodes[0], *kind, user)
		c.Pass(lifetime)
		_, err = use(t.Context(), nodes[1], *kind, late)
		require.ErrorIs(t, err, kind.Refusal())
	}
}

func TestNewerTokenVoidsTheOlderOfItsKindAndUser(t *testing.T) {
	t.Parallel()
	n, c := single(t)
	asha, ravi := uuid.New(), uuid.New()
	old, other, ravis := issue(t, n, credentials.Reset, asha), issue(t, n, credentials.Verify, asha), issue(t, n, credentials.Reset, ravi)
	c.Pass(2 * time.Minute)
	newer := issue(t, n, credentials.Reset, asha)
	_, err := use(t.Context(), n, credentials.Reset, old)
	require.ErrorIs(t, err, credentials.Reset.Refusal())
	for token, kind := range map[string]credentials.Kind{other: credentials.Verify, ravis: credentials.Reset, newer: credentials.Reset} {
		_, err := use(t.Context(), n, kind, token)
		require.NoError(t, err)
	}
}

func TestOneOfConcurrentUsesWins(t *testing.T) {
	t.Parallel()
	nodes, _ := several(t, database(t), quick())
	for range 10 {
		token := issue(t, nodes[0], credentials.Reset, uuid.New())
		var done atomic.Int64
		errs := race(9, func(i int) error {
			return nodes[i%len(nodes)].Mailed.Use(t.Context(), credentials.Reset, token, func(context.Context, uuid.UUID) error {
				done.Add(1)
				return nil
			})
		})
		require.EqualValues(t, 1, done.Load())
		require.Equal(t, 1, count(errs, nil))
		require.Equal(t, len(errs)-1, count(errs, credentials.Reset.Refusal()))
	}
}

func TestFailedUseLeavesTheTokenValid(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	user := uuid.New()
	token := issue(t, n, credentials.Reset, user)
	weak := errors.New("weak")
	require.Equal(t, weak, n.Mailed.Use(t.Context(), credentials.Reset, token, func(context.Context, uuid.UUID) error { return weak }))
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, n.Mailed.Use(ctx, credentials.Reset, token, func(ctx context.Context, _ uuid.UUID) error {
		cancel() // the client is gone
		return ctx.Err()
	}), context.Canceled)
	_, err := use(t.Context(), n, credentials.Reset, token)
	require.NoError(t, err)
}

func TestTokenSurvivesACrashDuringItsUse(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, database(t), quick())
	user := uuid.New()
	token := issue(t, nodes[0], credentials.Verify, user)
	// A process dies during a use, which is never settled.
	require.Panics(t, func() {
		_ = nodes[0].Mailed.Use(t.Context(), credentials.Verify, token, func(context.Context, uuid.UUID) error { panic("the end") })
	})
	c.Pass(time.Minute - time.Second)
	_, err := use(t.Context(), nodes[1], credentials.Verify, token)
	require.ErrorIs(t, err, credentials.Verify.Refusal(), "the use may still be running")
	c.Pass(time.Second)
	subject, err := use(t.Context(), nodes[1], credentials.Verify, token)
	require.NoError(t, err)
	require.Equal(t, user, subject)
}

func TestTokenIssuedDuringAUseStaysValid(t *testing.T) {
	t.Parallel()
	n, c := single(t)
	user := uuid.New()
	var newer string
	require.NoError(t, n.Mailed.Use(t.Context(), credentials.Reset, issue(t, n, credentials.Reset, user),
		func(context.Context, uuid.UUID) error {
			c.Pass(2 * time.Minute)
			newer = issue(t, n, credentials.Reset, user)
			return nil
		}))
	_, err := use(t.Context(), n, credentials.Reset, newer)
	require.NoError(t, err)
}

func TestRetriedMailingGetsTheSameToken(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, database(t), quick())
	asha := uuid.New()
	first := mailing(asha)
	again := func(of credentials.Mailing) (string, error) {
		return nodes[1].Mailed.Issue(t.Context(), credentials.Reset, of)
	}
	token, err := nodes[0].Mailed.Issue(t.Context(), credentials.Reset, first)
	require.NoError(t, err)
	for range 10 { // more than the limit of mails: all are one mail
		c.Pass(59 * time.Minute)
		same, err := again(first)
		require.NoError(t, err)
		require.Equal(t, token, same)
	}
	tokens := map[string]bool{token: true}
	for _, of := range []credentials.Mailing{mailing(asha), mailing(uuid.New())} {
		other, err := again(of)
		require.NoError(t, err)
		require.False(t, tokens[other])
		tokens[other] = true
	}
	c.Pass(time.Hour)
	_, err = again(first)
	require.ErrorIs(t, err, credentials.ErrMailed, "a later token replaced it")
}

func TestSpentTokenIsNotIssuedAgain(t *testing.T) {
	t.Parallel()
	c := newClock()
	n := open(t, alone(t), c, quick())
	for _, spend := range []func(subject uuid.UUID, token string){
		func(_ uuid.UUID, token string) {
			_, err := use(t.Context(), n, credentials.Reset, token)
			require.NoError(t, err)
		},
		func(subject uuid.UUID, _ string) {
			require.NoError(t, n.Mailed.Void(t.Context(), credentials.Reset, subject))
		},
	} {
		of := mailing(uuid.New())
		token, err := n.Mailed.Issue(t.Context(), credentials.Reset, of)
		require.NoError(t, err)
		spend(of.Subject, token)
		for range 4 {
			_, err = n.Mailed.Issue(t.Context(), credentials.Reset, of)
			require.ErrorIs(t, err, credentials.ErrMailed)
			c.Pass(24 * time.Hour) // as long as jobs are retried
			_, err = n.Sweep(t.Context())
			require.NoError(t, err)
		}
		_, err = use(t.Context(), n, credentials.Reset, token)
		require.ErrorIs(t, err, credentials.Reset.Refusal())
		issue(t, n, credentials.Reset, of.Subject) // another token is independent
	}
}

func TestTokenIsNotVoidedRightAfterItsMail(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, database(t), quick())
	asha := uuid.New()
	token := issue(t, nodes[0], credentials.Reset, asha)
	c.Pass(2*time.Minute - time.Second)
	_, err := nodes[1].Mailed.Issue(t.Context(), credentials.Reset, mailing(asha))
	require.ErrorIs(t, err, credentials.ErrMailed)
	issue(t, nodes[1], credentials.Verify, asha) // a different token
	_, err = use(t.Context(), nodes[1], credentials.Reset, token)
	require.NoError(t, err)
	issue(t, nodes[1], credentials.Reset, asha) // no mail is in progress
}

func TestAddressGetsSixTokensOfAKindInAnHour(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, database(t), quick())
	to := func(recipient uuid.UUID) credentials.Mailing {
		of := mailing(uuid.New()) // with any address
		of.Recipient = recipient
		return of
	}
	asha := uuid.New()
	for range 2 {
		var last credentials.Mailing
		errs := race(20, func(i int) error {
			_, err := nodes[i%len(nodes)].Mailed.Issue(t.Context(), credentials.Invitation, to(asha))
			return err
		})
		require.Equal(t, 6, count(errs, nil))
		require.Equal(t, 14, count(errs, credentials.ErrTooMany))
		for _, of := range []credentials.Mailing{to(uuid.New()), to(uuid.New())} {
			_, err := nodes[0].Mailed.Issue(t.Context(), credentials.Invitation, of)
			require.NoError(t, err)
			last = of
		}
		_, err := nodes[0].Mailed.Issue(t.Context(), credentials.Invitation, last)
		require.NoError(t, err)
		_, err = nodes[0].Mailed.Issue(t.Context(), credentials.Verify, to(asha))
		require.NoError(t, err)
		c.Pass(time.Hour)
	}
	issue(t, nodes[0], credentials.Invitation, asha)
	require.NoError(t, nodes[0].Erase(t.Context(), asha))
	require.NotContains(t, dump(t, nodes[0]), asha.String())
}
