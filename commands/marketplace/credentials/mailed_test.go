package credentials_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/marketplace/credentials"
)

var kinds = map[*credentials.Kind]time.Duration{
	&credentials.Verify: 24 * time.Hour, &credentials.Reset: time.Hour, &credentials.Invitation: 7 * 24 * time.Hour,
}

func issue(t *testing.T, n node, kind credentials.Kind, subject uuid.UUID) string {
	t.Helper()
	token, err := n.Mailed.Issue(t.Context(), kind, subject)
	require.NoError(t, err)
	return token
}

func TestMailedTokenOpensOnceWithinItsTime(t *testing.T) {
	t.Parallel()
	for kind, lifetime := range kinds {
		nodes, c := several(t, quick())
		user := uuid.New()
		token := issue(t, nodes[0], *kind, user)
		require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, token)
		for other := range kinds {
			if other != kind {
				_, err := use(t.Context(), nodes[1], *other, token)
				require.ErrorIs(t, err, other.Refusal())
			}
		}
		c.pass(lifetime - time.Second)
		subject, err := use(t.Context(), nodes[1], *kind, token)
		require.NoError(t, err)
		require.Equal(t, user, subject)
		for _, wrong := range []string{token, "", "x", token + "=", issue(t, nodes[0], *kind, user) + " "} {
			_, err := use(t.Context(), nodes[2], *kind, wrong)
			require.ErrorIs(t, err, kind.Refusal(), "%q", wrong)
		}
		late := issue(t, nodes[0], *kind, user)
		c.pass(lifetime)
		_, err = use(t.Context(), nodes[1], *kind, late)
		require.ErrorIs(t, err, kind.Refusal())
	}
}

func TestRefusalsAreTheContractsWords(t *testing.T) {
	t.Parallel()
	require.EqualError(t, credentials.Verify.Refusal(), "Invalid or expired verification token")
	require.EqualError(t, credentials.Reset.Refusal(), "Invalid or expired reset token")
}

func TestNewerTokenVoidsTheOlderOfItsKindAndUser(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	asha, ravi := uuid.New(), uuid.New()
	old, other, ravis := issue(t, n, credentials.Reset, asha), issue(t, n, credentials.Verify, asha), issue(t, n, credentials.Reset, ravi)
	newer := issue(t, n, credentials.Reset, asha)
	_, err := use(t.Context(), n, credentials.Reset, old)
	require.ErrorIs(t, err, credentials.Reset.Refusal())
	for token, kind := range map[string]credentials.Kind{other: credentials.Verify, ravis: credentials.Reset, newer: credentials.Reset} {
		_, err := use(t.Context(), n, kind, token)
		require.NoError(t, err)
	}
}

func TestOfUsesThatRaceOneWins(t *testing.T) {
	t.Parallel()
	nodes, _ := several(t, quick())
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

func TestFailedUseLeavesTheTokenGood(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	user := uuid.New()
	token := issue(t, n, credentials.Reset, user)
	weak := errors.New("weak")
	require.Equal(t, weak, n.Mailed.Use(t.Context(), credentials.Reset, token, func(context.Context, uuid.UUID) error { return weak }))
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, n.Mailed.Use(ctx, credentials.Reset, token, func(ctx context.Context, _ uuid.UUID) error {
		cancel() // the client went away
		return ctx.Err()
	}), context.Canceled)
	_, err := use(t.Context(), n, credentials.Reset, token)
	require.NoError(t, err)
}

func TestCrashInTheMiddleOfAUseLocksNobodyOut(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, quick())
	user := uuid.New()
	token := issue(t, nodes[0], credentials.Verify, user)
	// What is never settled is what a process that died leaves.
	require.Panics(t, func() {
		_ = nodes[0].Mailed.Use(t.Context(), credentials.Verify, token, func(context.Context, uuid.UUID) error { panic("the end") })
	})
	c.pass(time.Minute - time.Second)
	_, err := use(t.Context(), nodes[1], credentials.Verify, token)
	require.ErrorIs(t, err, credentials.Verify.Refusal(), "it may still be in use")
	c.pass(time.Second)
	subject, err := use(t.Context(), nodes[1], credentials.Verify, token)
	require.NoError(t, err)
	require.Equal(t, user, subject)
}

func TestTokenIssuedDuringAUseStaysGood(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	user := uuid.New()
	var newer string
	require.NoError(t, n.Mailed.Use(t.Context(), credentials.Reset, issue(t, n, credentials.Reset, user), func(context.Context, uuid.UUID) error {
		newer = issue(t, n, credentials.Reset, user)
		return nil
	}))
	_, err := use(t.Context(), n, credentials.Reset, newer)
	require.NoError(t, err)
}
