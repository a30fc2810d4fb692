package credentials_test

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands/accesscmd/credentials"
	"bahi/internal/test/pgtest"
)

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
