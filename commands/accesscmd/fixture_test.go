package accesscmd_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/patch"
	"bahi/eventstore/vault"
	"bahi/internal/test/interleavetest"
	"bahi/internal/test/lawstest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/migrations"
)

const secret = "seven brass hooks"

var errCrash = errors.New("the process died here")

// fixture is several processes on one log, with one clock. Fixtures share the database of credentials and keys.
type fixture struct {
	t     *testing.T
	nodes []*node
	log   *interleavetest.Node
	vault hashes
	hears []*interleavetest.Node // of the nodes that follow the log

	*worktest.Clock
}

// hashes is the vault with keyed hashes that differ in each fixture, so that fixtures do not share the limit of mails to an address.
type hashes struct {
	*vault.Vault

	fixture uuid.UUID
}

func (h hashes) HMAC(ctx context.Context, name string, parts ...[]byte) ([]byte, error) {
	return h.Vault.HMAC(ctx, name, append([][]byte{h.fixture[:]}, parts...)...)
}

// jobs are the jobs that mail.
var jobs atomic.Int64

type node struct {
	*accesscmd.Accounts

	fixture *fixture
	ring    *accesscmd.TokenRing
	store   *interleavetest.Node
}

// dying does work in a process that dies before its nth append to a stream, if it comes to that.
func (n *node) dying(nth int, work func() error) error {
	count := 0
	n.store.Set(func() {
		n.store.Appending = func(context.Context, string) error {
			if count++; count == nth {
				return errCrash
			}
			return nil
		}
	})
	defer n.store.Set(func() { n.store.Appending = nil })
	return work()
}

// post takes requests for mails: http/accesshttp's tests read the mails.
type post struct{}

func (post) VerifyEmail(context.Context, uuid.UUID) error { return nil }

func (post) ResetPassword(context.Context, string) error { return nil }

// newFixture creates a fixture. Its nodes follow the log only after [fixture.follow].
func newFixture(t *testing.T, count int) *fixture {
	t.Helper()
	tn := &fixture{t: t, Clock: worktest.NewClock(time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC))}
	pool := pgtest.Pool(t, pgtest.Shared(t, "migrated", migrations.Up))
	opened, err := vault.Open(t.Context(), pool, make([]byte, 32), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	tn.vault = hashes{opened, uuid.New()}
	settings := credentials.Defaults("https://bahi.example")
	settings.Hash, settings.Hashes = credentials.HashCost{MemoryKiB: 64, Passes: 1, Threads: 1}, 4
	tn.log = interleavetest.NewNode(interleavetest.NewLog())
	for range count {
		n := &node{fixture: tn, store: interleavetest.NewNode(tn.log.Log)}
		c, err := credentials.Open(pool, opened, settings, tn.Now)
		require.NoError(t, err)
		n.Accounts = &accesscmd.Accounts{
			Commands: commands.New(n.store, tn.vault, tn.Now), Credentials: c, Vault: tn.vault, Post: post{}, Now: tn.Now,
			Grace: 14 * 24 * time.Hour,
		}
		n.ring = &accesscmd.TokenRing{Commands: n.Commands, Sessions: c.Sessions}
		tn.nodes = append(tn.nodes, n)
	}
	lawstest.Keep(t, tn.log)
	return tn
}

// follow makes the nodes follow the log. They receive what others append in [fixture.hear].
func (tn *fixture) follow() *fixture {
	for _, n := range tn.nodes {
		worktest.Background(tn.t, n.Commands.Run)
		tn.hears = append(tn.hears, n.store)
	}
	tn.hear()
	return tn
}

func (tn *fixture) hear() {
	for _, s := range tn.hears {
		s.Hear()
	}
}

func registration(email string) accesscmd.Registration {
	return accesscmd.Registration{Email: email, Password: secret, FirstName: "Asha", LastName: "Rao"}
}

// register makes an unverified account.
func (n *node) register(t *testing.T, email string) uuid.UUID {
	t.Helper()
	made, err := n.Register(t.Context(), commands.Request{}, registration(email))
	require.NoError(t, err)
	return made.ID
}

// settle makes a verified account.
func (n *node) settle(t *testing.T, email string) uuid.UUID {
	t.Helper()
	id := n.register(t, email)
	_, err := n.VerifyEmail(t.Context(), commands.Request{}, n.mail(t, credentials.Verify, id))
	require.NoError(t, err)
	return id
}

// mail returns the token that a mail to the user would contain.
func (n *node) mail(t *testing.T, kind credentials.Kind, id uuid.UUID) string {
	t.Helper()
	return n.issue(t, kind, id, n.state(t, id))
}

// issue returns the token that a mail to the address in the state would contain.
func (n *node) issue(t *testing.T, kind credentials.Kind, id uuid.UUID, s user.State) string {
	t.Helper()
	n.fixture.Pass(2 * time.Minute) // an earlier mail would be suppressed
	token, err := n.IssueToken(t.Context(), kind, id, s, jobs.Add(1))
	require.NoError(t, err)
	return token
}

func (n *node) state(t *testing.T, id uuid.UUID) user.State {
	t.Helper()
	l, err := commands.Load(t.Context(), n.Commands.Fresh(), user.Kind, id.String())
	require.NoError(t, err)
	return l.State
}

func (n *node) holder(t *testing.T, email string) uuid.UUID {
	t.Helper()
	id, _, err := n.HolderOf(t.Context(), n.key(t, email))
	require.NoError(t, err)
	return id
}

func (n *node) key(t *testing.T, email string) string {
	t.Helper()
	key, err := n.EmailKey(t.Context(), email)
	require.NoError(t, err)
	return key
}

// moved changes the user's address.
func (n *node) moved(t *testing.T, id uuid.UUID, email string) {
	t.Helper()
	_, err := n.Change(t.Context(), commands.Request{}, id, accesscmd.Profile{Email: patch.Set(email)})
	require.NoError(t, err)
}
