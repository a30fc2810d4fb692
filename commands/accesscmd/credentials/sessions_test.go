package credentials_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands/accesscmd/credentials"
)

// background outlives the steps of a property.
var background = context.Background()

func requireAlive(t require.TestingT, n node, session uuid.UUID, wanted bool) {
	alive, err := n.Sessions.Alive(background, session)
	require.NoError(t, err)
	require.Equal(t, wanted, alive)
}

func TestTokensHaveTheirUserAndExpiry(t *testing.T) {
	t.Parallel()
	n, c := single(t)
	c.Pass(600 * time.Millisecond)
	user := uuid.New()
	tokens := n.signIn(t, user)
	require.Equal(t, user, tokens.User)
	var ids []any
	for _, of := range []struct {
		token, typ string
		lifetime   time.Duration
	}{{tokens.Access, "access", 60 * time.Minute}, {tokens.Refresh, "refresh", 7 * 24 * time.Hour}} {
		header, claims := parse(t, of.token)
		require.Equal(t, "HS256", header["alg"])
		require.Equal(t, issuer, claims["iss"])
		require.Equal(t, user.String(), claims["sub"])
		require.Equal(t, tokens.Session.String(), claims["sid"])
		require.Equal(t, of.typ, claims["typ"])
		require.EqualValues(t, c.Now().Unix(), claims["iat"])
		require.EqualValues(t, c.Now().Add(of.lifetime).Unix(), claims["exp"])
		require.Len(t, claims, 7)
		ids = append(ids, claims["jti"])
	}
	require.NotEqual(t, ids[0], ids[1])
	require.Equal(t, c.Now().Add(7*24*time.Hour), tokens.RefreshEnds)

	c.Pass(time.Hour - time.Second)
	requireKnown(t, n, tokens)
	c.Pass(time.Second)
	requireUnknown(t, n, tokens.Access)
	next, err := n.Sessions.Refresh(t.Context(), tokens.Refresh)
	require.NoError(t, err)
	require.Equal(t, tokens.Bearer, next.Bearer)
	requireKnown(t, n, next)
}

func TestOneOfConcurrentRefreshesWins(t *testing.T) {
	t.Parallel()
	for grace, survives := range map[time.Duration]bool{0: false, 10 * time.Second: true} {
		s := quick()
		s.Grace = grace
		nodes, _ := several(t, database(t), s)
		for range 10 {
			token := nodes[0].signIn(t, uuid.New())
			won := make([]credentials.Tokens, 9)
			errs := race(len(won), func(i int) (err error) {
				won[i], err = nodes[i%len(nodes)].Sessions.Refresh(t.Context(), token.Refresh)
				return err
			})
			require.Equal(t, 1, count(errs, nil))
			require.Equal(t, len(errs)-1, count(errs, credentials.ErrRefresh))
			for _, of := range won {
				if of.Refresh != "" {
					_, err := nodes[0].Sessions.Refresh(t.Context(), of.Refresh)
					require.Equal(t, survives, err == nil)
				}
			}
		}
	}
}

func TestGraceEnds(t *testing.T) {
	t.Parallel()
	s := quick()
	s.Grace = 10 * time.Second
	c := newClock()
	n := open(t, database(t), c, s)
	first := n.signIn(t, uuid.New())
	second, err := n.Sessions.Refresh(t.Context(), first.Refresh)
	require.NoError(t, err)
	c.Pass(s.Grace - time.Second)
	_, err = n.Sessions.Refresh(t.Context(), first.Refresh)
	require.ErrorIs(t, err, credentials.ErrRefresh)
	requireKnown(t, n, second)
	c.Pass(time.Second)
	_, err = n.Sessions.Refresh(t.Context(), first.Refresh)
	require.ErrorIs(t, err, credentials.ErrRefresh)
	requireUnknown(t, n, second.Access)
}

func TestRevokedSessionEndsAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, database(t), quick())
	user, stranger := uuid.New(), nodes[0].signIn(t, uuid.New())
	sessions := []credentials.Tokens{nodes[0].signIn(t, user), nodes[0].signIn(t, user), nodes[0].signIn(t, user)}
	for _, of := range sessions {
		requireKnown(t, nodes[0], of)
		requireKnown(t, nodes[1], of)
	}
	require.NoError(t, nodes[0].Sessions.Revoke(t.Context(), sessions[0].Session))
	requireUnknown(t, nodes[0], sessions[0].Access)
	requireKnown(t, nodes[0], sessions[1])
	require.NoError(t, nodes[0].Sessions.RevokeAll(t.Context(), user, sessions[2].Session))
	requireUnknown(t, nodes[0], sessions[1].Access)
	c.Pass(credentials.Fresh)
	for _, of := range sessions[:2] {
		requireUnknown(t, nodes[1], of.Access)
		_, err := nodes[1].Sessions.Refresh(t.Context(), of.Refresh)
		require.ErrorIs(t, err, credentials.ErrRefresh)
	}
	requireKnown(t, nodes[1], sessions[2])
	require.NoError(t, nodes[1].Sessions.RevokeAll(t.Context(), user, uuid.Nil))
	requireUnknown(t, nodes[1], sessions[2].Access)
	requireKnown(t, nodes[1], stranger)
	require.NoError(t, nodes[1].Sessions.Revoke(t.Context(), uuid.New()), "an unknown session")
}

func TestKnownSessionNeedsNoQuery(t *testing.T) {
	t.Parallel()
	n, c := single(t)
	tokens := n.signIn(t, uuid.New())
	requireKnown(t, n, tokens)
	n.pool.Close()
	c.Pass(credentials.Fresh - time.Nanosecond)
	requireAlive(t, n, tokens.Session, true)
	c.Pass(time.Nanosecond)
	_, err := n.Sessions.Alive(t.Context(), tokens.Session)
	require.Error(t, err)
}

// slowLook delays the result of the first lookup of a session until it is released.
type slowLook struct {
	once    sync.Once
	read    chan struct{}
	release chan struct{}
}

type lookKey struct{}

func (*slowLook) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, lookKey{}, strings.HasPrefix(q.SQL, "select ends_at from account.session"))
}

func (l *slowLook) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(lookKey{}) == true {
		l.once.Do(func() {
			close(l.read)
			<-l.release
		})
	}
}

func TestRevocationIsNotUndoneByAnEarlierRead(t *testing.T) {
	t.Parallel()
	look := &slowLook{read: make(chan struct{}), release: make(chan struct{})}
	config, err := pgxpool.ParseConfig(database(t))
	require.NoError(t, err)
	config.ConnConfig.Tracer = look
	n := openWith(t, config, newClock(), quick())
	tokens := n.signIn(t, uuid.New())
	looked := make(chan error)
	go func() {
		_, err := n.Sessions.Alive(t.Context(), tokens.Session)
		looked <- err
	}()
	<-look.read
	require.NoError(t, n.Sessions.Revoke(t.Context(), tokens.Session))
	close(look.release)
	require.NoError(t, <-looked)
	requireAlive(t, n, tokens.Session, false)
}

func TestSignInWithAConcurrentlyChangedPasswordIsRefused(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	user := uuid.New()
	require.NoError(t, n.Passwords.Set(t.Context(), user, "an older secret"))
	proof, ok := verify(t, n, user, "an older secret")
	require.True(t, ok)
	_, err := n.Sessions.SignIn(t.Context(), proof)
	require.NoError(t, err)
	require.NoError(t, n.Passwords.Set(t.Context(), user, secret)) // at the same time by the clock
	_, err = n.Sessions.SignIn(t.Context(), proof)
	require.ErrorIs(t, err, credentials.ErrSignIn)
	_, err = n.Sessions.SignIn(t.Context(), credentials.Proof{})
	require.ErrorIs(t, err, credentials.ErrSignIn)
}

func TestNoSignInWithTheOldPasswordOutlastsAReset(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, database(t), quick())
	for range 20 {
		user := uuid.New()
		require.NoError(t, nodes[0].Passwords.Set(t.Context(), user, "an older secret"))
		got := make([]credentials.Tokens, 6)
		for _, err := range race(len(got)+1, func(i int) error {
			n := nodes[i%len(nodes)]
			if i == len(got) {
				return errors.Join(n.Passwords.Set(t.Context(), user, secret), n.Sessions.RevokeAll(t.Context(), user, uuid.Nil))
			}
			proof, _, err := n.Passwords.Verify(t.Context(), user, "an older secret")
			if err == nil {
				got[i], err = n.Sessions.SignIn(t.Context(), proof)
			}
			if errors.Is(err, credentials.ErrSignIn) {
				return nil
			}
			return err
		}) {
			require.NoError(t, err)
		}
		c.Pass(credentials.Fresh)
		for _, of := range got {
			requireAlive(t, nodes[0], of.Session, false)
		}
	}
}

// TestSessionsFollowTheirModel compares one session, on two nodes, with a model.
func TestSessionsFollowTheirModel(t *testing.T) {
	t.Parallel()
	nodes, c := several(t, database(t), quick())
	rapid.Check(t, func(t *rapid.T) {
		var (
			n      = rapid.SampledFrom(nodes)
			user   = uuid.New()
			ends   = c.Now().Add(credentials.SessionLifetime)
			over   bool
			issued []credentials.Tokens
		)
		first, err := n.Draw(t, "node").Sessions.SignIn(background, credentials.Vouched(user))
		require.NoError(t, err)
		issued = append(issued, first)
		t.Repeat(map[string]func(*rapid.T){
			"refresh": func(t *rapid.T) {
				i := rapid.IntRange(0, len(issued)-1).Draw(t, "token")
				if rapid.Bool().Draw(t, "newest") {
					i = len(issued) - 1
				}
				next, err := n.Draw(t, "node").Sessions.Refresh(background, issued[i].Refresh)
				valid := !over && c.Now().Before(issued[i].RefreshEnds)
				if valid && i == len(issued)-1 {
					require.NoError(t, err)
					require.False(t, next.RefreshEnds.After(ends))
					claims := jwt.MapClaims{}
					_, _, err := jwt.NewParser().ParseUnverified(next.Access, claims)
					require.NoError(t, err)
					require.EqualValues(t, min(c.Now().Add(time.Hour).Unix(), ends.Unix()), claims["exp"])
					issued = append(issued, next)
					return
				}
				require.ErrorIs(t, err, credentials.ErrRefresh)
				over = over || valid
			},
			"revoke": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
					return // a session that ends at once tests little
				}
				over = true
				require.NoError(t, n.Draw(t, "node").Sessions.Revoke(background, first.Session))
			},
			"pass": func(t *rapid.T) {
				c.Pass(time.Duration(rapid.IntRange(2, 3*24*3600).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				at := n.Draw(t, "node")
				if over {
					c.Pass(credentials.Fresh)
				}
				requireAlive(t, at, first.Session, !over && c.Now().Before(ends))
			},
		})
	})
}
