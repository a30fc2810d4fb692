package credentials_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/accesscmd/credentials"
	"bahi/internal/test/pgtest"
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

func requireKnown(t *testing.T, n node, tokens credentials.Tokens) {
	t.Helper()
	bearer, err := n.Sessions.Authenticate(t.Context(), tokens.Access)
	require.NoError(t, err)
	require.Equal(t, tokens.Bearer, bearer)
}

func requireUnknown(t *testing.T, n node, access string) {
	t.Helper()
	_, err := n.Sessions.Authenticate(t.Context(), access)
	require.ErrorIs(t, err, credentials.ErrNotAuthenticated)
}

// parse parses a token without verifying it.
func parse(t *testing.T, token string) (header map[string]any, claims jwt.MapClaims) {
	t.Helper()
	claims = jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(token, claims)
	require.NoError(t, err)
	return parsed.Header, claims
}

func kid(t *testing.T, token string) string {
	t.Helper()
	header, _ := parse(t, token)
	return header["kid"].(string)
}

func TestNodesThatStartAtOnceSignWithOneKey(t *testing.T) {
	t.Parallel()
	nodes, _ := several(t, alone(t), quick())
	tokens := make([]credentials.Tokens, 12)
	for _, err := range race(len(tokens), func(i int) (err error) {
		tokens[i], err = nodes[i%len(nodes)].Sessions.SignIn(t.Context(), credentials.Vouched(uuid.New()))
		return err
	}) {
		require.NoError(t, err)
	}
	for i, of := range tokens {
		require.Equal(t, kid(t, tokens[0].Access), kid(t, of.Access))
		requireKnown(t, nodes[(i+1)%len(nodes)], of)
	}
}

func TestRotatedKeyVerifiesForTheOverlapAndTheNewestSigns(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, alone(t), quick())
	old := nodes[0].signIn(t, uuid.New())
	requireKnown(t, nodes[1], old)
	require.NoError(t, nodes[0].Keys.Rotate(t.Context(), time.Minute))
	newer := nodes[0].signIn(t, uuid.New())
	require.NotEqual(t, kid(t, old.Access), kid(t, newer.Access))
	require.Equal(t, kid(t, newer.Access), kid(t, newer.Refresh))
	for _, n := range nodes {
		requireKnown(t, n, old)
		requireKnown(t, n, newer) // at once, though these nodes have read only the old keys
	}
	require.Equal(t, kid(t, newer.Access), kid(t, nodes[2].signIn(t, uuid.New()).Access))

	require.NoError(t, nodes[2].Keys.Rotate(t.Context(), time.Hour))
	c.Pass(time.Minute - time.Second)
	requireKnown(t, nodes[1], old)
	c.Pass(time.Second)
	for _, n := range nodes {
		requireUnknown(t, n, old.Access)
		_, err := n.Sessions.Refresh(t.Context(), old.Refresh)
		require.ErrorIs(t, err, credentials.ErrRefresh, "no later rotation makes the overlap longer")
		requireKnown(t, n, newer)
	}
	refreshed, err := nodes[1].Sessions.Refresh(t.Context(), newer.Refresh)
	require.NoError(t, err)
	require.NotEqual(t, kid(t, newer.Access), kid(t, refreshed.Access))
}

func TestStolenKeyEndsAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, alone(t), quick())
	tokens := nodes[0].signIn(t, uuid.New())
	requireKnown(t, nodes[1], tokens)
	require.NoError(t, nodes[0].Keys.Rotate(t.Context(), 0))
	requireUnknown(t, nodes[0], tokens.Access)
	c.Pass(credentials.Fresh)
	requireUnknown(t, nodes[1], tokens.Access)
}

// forge changes a good token's header and claims and signs it again.
func forge(t *testing.T, good string, method jwt.SigningMethod, key any, change func(header map[string]any, claims jwt.MapClaims)) string {
	t.Helper()
	header, claims := parse(t, good)
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = header["kid"]
	change(token.Header, claims)
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

func TestForeignTokensAreRefused(t *testing.T) {
	t.Parallel()
	c := newClock()
	n := open(t, alone(t), c, quick())
	tokens := n.signIn(t, uuid.New())
	key, err := n.vault.Named(t.Context(), "jwt/"+kid(t, tokens.Access), 32)
	require.NoError(t, err)
	signed := func(method jwt.SigningMethod, key any) string {
		return forge(t, tokens.Access, method, key, func(map[string]any, jwt.MapClaims) {})
	}
	bearer, err := n.Sessions.Authenticate(t.Context(), signed(jwt.SigningMethodHS256, key))
	require.NoError(t, err, "an unchanged token is accepted")
	require.Equal(t, tokens.Bearer, bearer)
	set := func(in map[string]any, name string, value any) { // a nil value removes the name
		if in[name] = value; value == nil {
			delete(in, name)
		}
	}
	headed := func(kid any) string {
		return forge(t, tokens.Access, jwt.SigningMethodHS256, key, func(h map[string]any, _ jwt.MapClaims) { set(h, "kid", kid) })
	}
	claiming := func(name string, value any) string {
		return forge(t, tokens.Access, jwt.SigningMethodHS256, key, func(_ map[string]any, c jwt.MapClaims) { set(c, name, value) })
	}

	last := tokens.Access[len(tokens.Access)-1:]
	for why, token := range map[string]string{
		"nothing": "", "no token": "bahi", "refresh": tokens.Refresh,
		"alg none":          signed(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"no signature":      tokens.Access[:strings.LastIndexByte(tokens.Access, '.')+1],
		"spelt differently": strings.TrimSuffix(tokens.Access, last) + string(nextInAlphabet(last[0])),
		"padded":            tokens.Access + "=",
		"another algorithm": signed(jwt.SigningMethodHS512, key),
		"another key":       signed(jwt.SigningMethodHS256, []byte(strings.Repeat("k", 32))),
		"the empty key":     signed(jwt.SigningMethodHS256, []byte{}),
		"no kid":            headed(nil), "kid of no key": headed(uuid.NewString()), "kid of the vault": headed("idempotency"),
		"kid is a number": headed(1),
		"another issuer":  claiming("iss", "https://staging.example"), "no issuer": claiming("iss", nil),
		"no end": claiming("exp", nil), "ended": claiming("exp", c.Now().Unix()),
		"another type": claiming("typ", "reset"), "no type": claiming("typ", nil),
		"no session": claiming("sid", nil), "unknown session": claiming("sid", uuid.NewString()),
		"claims of a shape": claiming("sub", []string{"x"}),
	} {
		_, err := n.Sessions.Authenticate(t.Context(), token)
		require.ErrorIs(t, err, credentials.ErrNotAuthenticated, why)
	}
	_, err = n.Sessions.Refresh(t.Context(), tokens.Access)
	require.ErrorIs(t, err, credentials.ErrRefresh)
	stranger := forge(t, tokens.Refresh, jwt.SigningMethodHS256, key, func(_ map[string]any, c jwt.MapClaims) { c["sub"] = uuid.NewString() })
	_, err = n.Sessions.Refresh(t.Context(), stranger)
	require.ErrorIs(t, err, credentials.ErrRefresh)
	requireKnown(t, n, tokens)

	keys := pgtest.Value[int](t, n.pool, `select count(*) from vault.named`)
	require.Equal(t, 1, keys, "a forged kid creates no key")
}

// nextInAlphabet returns a character for the same four bits at a signature's end: 32 bytes leave two bits over.
func nextInAlphabet(c byte) byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, c)+1]
}

func TestUnreadableKeysAreNoRefusal(t *testing.T) {
	t.Parallel()
	n, c := single(t)
	tokens := n.signIn(t, uuid.New())
	c.Pass(credentials.Fresh)
	n.pool.Close()
	_, err := n.Sessions.Authenticate(t.Context(), tokens.Access)
	require.Error(t, err)
	require.NotErrorIs(t, err, credentials.ErrNotAuthenticated)
	_, err = n.Sessions.Refresh(t.Context(), tokens.Refresh)
	require.Error(t, err)
	require.NotErrorIs(t, err, credentials.ErrRefresh)
}
