package credentials_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands/accesscmd/credentials"
	"bahi/eventstore/vault"
	"bahi/internal/test/draws"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
)

const (
	issuer = "https://bahi.example"
	secret = "seven brass hooks"
)

func newClock() *worktest.Clock {
	return worktest.NewClock(time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC))
}

// node has the state of one process.
type node struct {
	*credentials.Credentials

	pool  *pgxpool.Pool
	vault *vault.Vault
}

// quick returns settings with cheap hashes.
func quick() credentials.Settings {
	s := credentials.Defaults(issuer)
	s.Hash, s.Hashes = credentials.HashCost{MemoryKiB: 64, Passes: 1, Threads: 1}, 4
	return s
}

// database returns a database whose users belong to one test each.
func database(t *testing.T) string {
	t.Helper()
	return pgtest.Shared(t, "migrated", migrations.Up)
}

// alone returns a database for a test that looks at all rows, or changes the keys.
func alone(t *testing.T) string {
	t.Helper()
	return pgtest.Template(t, "migrated", migrations.Up)
}

func open(t *testing.T, url string, c *worktest.Clock, s credentials.Settings) node {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	return openWith(t, config, c, s)
}

func openWith(t *testing.T, config *pgxpool.Config, c *worktest.Clock, s credentials.Settings) node {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	v, err := vault.Open(t.Context(), pool, bytes.Repeat([]byte{1}, 32), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	opened, err := credentials.Open(pool, v, s, c.Now)
	require.NoError(t, err)
	return node{opened, pool, v}
}

func single(t *testing.T) (node, *worktest.Clock) {
	t.Helper()
	c := newClock()
	return open(t, database(t), c, quick()), c
}

// several returns nodes on one database, with one clock.
func several(t *testing.T, url string, s credentials.Settings) ([]node, *worktest.Clock) {
	t.Helper()
	c := newClock()
	return []node{open(t, url, c, s), open(t, url, c, s), open(t, url, c, s)}, c
}

func (n node) signIn(t *testing.T, user uuid.UUID) credentials.Tokens {
	t.Helper()
	tokens, err := n.Sessions.SignIn(t.Context(), credentials.Vouched(user))
	require.NoError(t, err)
	return tokens
}

// race calls do n times at once.
func race(n int, do func(i int) error) []error {
	var (
		wait  sync.WaitGroup
		start = make(chan struct{})
		errs  = make([]error, n)
	)
	for i := range n {
		wait.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wait.Wait()
	return errs
}

func count(errs []error, wanted error) (n int) {
	for _, err := range errs {
		if err == wanted { //nolint:errorlint // nil too
			n++
		}
	}
	return n
}

// dump returns every row of every table of the schema.
func dump(t *testing.T, n node) string {
	t.Helper()
	tables := pgtest.Values[string](t, n.pool, `select tablename::text from pg_tables where schemaname = 'account'`)
	require.Len(t, tables, 6)
	var all string
	for _, table := range tables {
		text := pgtest.Value[string](t, n.pool,
			`select coalesce(string_agg(row::text, ' '), '') from account.`+pgx.Identifier{table}.Sanitize()+` row`)
		all += text
	}
	return all
}

var jobs atomic.Int64

// mailing returns a new mailing to the user.
func mailing(user uuid.UUID) credentials.Mailing {
	return credentials.Mailing{Subject: user, Recipient: user, Number: jobs.Add(1)}
}

// use spends the token and returns its subject.
func use(ctx context.Context, n node, kind credentials.Kind, token string) (subject uuid.UUID, err error) {
	err = n.Mailed.Use(ctx, kind, token, func(_ context.Context, of uuid.UUID) error {
		subject = of
		return nil
	})
	return subject, err
}

func everythingOf(t *testing.T, n node, user uuid.UUID) (tokens credentials.Tokens, mailed []string) {
	t.Helper()
	require.NoError(t, n.Passwords.Set(t.Context(), user, secret))
	n.signIn(t, user)
	tokens, err := n.Sessions.Refresh(t.Context(), n.signIn(t, user).Refresh)
	require.NoError(t, err)
	for _, kind := range []credentials.Kind{credentials.Verify, credentials.Reset, credentials.Invitation} {
		token, err := n.Mailed.Issue(t.Context(), kind, mailing(user))
		require.NoError(t, err)
		mailed = append(mailed, token)
	}
	return tokens, mailed
}

func TestErasureRemovesOneUserOnly(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	asha, ravi := uuid.New(), uuid.New()
	gone, mailed := everythingOf(t, n, asha)
	_, err := n.Sessions.Authenticate(t.Context(), gone.Access)
	require.NoError(t, err)
	proof, ok, err := n.Passwords.Verify(t.Context(), asha, secret)
	require.NoError(t, err)
	require.True(t, ok)
	kept, _ := everythingOf(t, n, ravi)
	before := dump(t, n)
	require.Contains(t, before, asha.String())

	require.NoError(t, n.Erase(t.Context(), asha))
	require.NoError(t, n.Erase(t.Context(), asha), "again")
	after := dump(t, n)
	require.NotContains(t, after, asha.String())
	require.NotContains(t, after, gone.Session.String())
	_, err = n.Sessions.Authenticate(t.Context(), gone.Access)
	require.ErrorIs(t, err, credentials.ErrNotAuthenticated)
	_, err = n.Sessions.Refresh(t.Context(), gone.Refresh)
	require.ErrorIs(t, err, credentials.ErrRefresh)
	_, err = n.Sessions.SignIn(t.Context(), proof)
	require.ErrorIs(t, err, credentials.ErrSignIn)
	_, err = use(t.Context(), n, credentials.Verify, mailed[0])
	require.ErrorIs(t, err, credentials.Verify.Refusal())

	_, ok, err = n.Passwords.Verify(t.Context(), ravi, secret)
	require.NoError(t, err)
	require.True(t, ok)
	_, err = n.Sessions.Refresh(t.Context(), kept.Refresh)
	require.NoError(t, err)
}

func TestNoUsableCredentialIsStored(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	tokens, mailed := everythingOf(t, n, uuid.New())
	all := dump(t, n)
	for _, text := range append(mailed, tokens.Access, tokens.Refresh, secret) {
		require.NotContains(t, all, text)
	}
}

func TestSweepRemovesOnlyExpiredRows(t *testing.T) {
	t.Parallel()
	c := newClock()
	n := open(t, alone(t), c, quick())
	old := uuid.New()
	everythingOf(t, n, old)
	require.NoError(t, n.Keys.Rotate(t.Context(), credentials.RefreshLifetime))
	rows, err := n.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, rows)

	c.Pass(credentials.SessionLifetime - time.Second)
	young := uuid.New()
	tokens, mailed := everythingOf(t, n, young)
	rows, err = n.Sweep(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3+3+3+1, rows, "mailed tokens, their counts, refresh tokens, the rotated key")
	c.Pass(time.Second)
	rows, err = n.Sweep(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, rows, "sessions")
	_, err = n.Sessions.Refresh(t.Context(), tokens.Refresh)
	require.NoError(t, err)
	subject, err := use(t.Context(), n, credentials.Reset, mailed[1])
	require.NoError(t, err)
	require.Equal(t, young, subject)
	_, ok, err := n.Passwords.Verify(t.Context(), old, secret)
	require.NoError(t, err)
	require.True(t, ok, "passwords do not expire")
}

func TestUnfitSettingsAreRefused(t *testing.T) {
	t.Parallel()
	n, c := single(t)
	for _, spoil := range []func(*credentials.Settings){
		func(s *credentials.Settings) { s.Issuer = "" },
		func(s *credentials.Settings) { s.MinPassword = 7 },
		func(s *credentials.Settings) { s.MinPassword = 129 },
		func(s *credentials.Settings) { s.Hash = credentials.HashCost{} },
		func(s *credentials.Settings) { s.Hash.Passes = 0 },
		func(s *credentials.Settings) { s.Hashes = 0 },
		func(s *credentials.Settings) { s.Grace = -1 },
		func(s *credentials.Settings) { s.Access = time.Second - 1 },
		func(s *credentials.Settings) { s.Access = credentials.RefreshLifetime + 1 },
	} {
		s := credentials.Defaults(issuer)
		spoil(&s)
		_, err := credentials.Open(n.pool, n.vault, s, c.Now)
		require.ErrorContains(t, err, "open credentials: ")
	}
}

// TestMain makes rapid run fewer times: each step of a property queries the database.
func TestMain(m *testing.M) {
	draws.Default(20)
	os.Exit(m.Run())
}
