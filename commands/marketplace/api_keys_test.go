package marketplace_test

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands"
	"bahi/commands/marketplace"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/marketplace/apikey"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	"bahi/internal/pgtest"
	"bahi/migrations"
)

var (
	home     = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	operator = actor.Actor{Type: "system", ID: "shell", Workspace: home, Permissions: actor.Permissions{Operator: true}}
	reader   = actor.Permissions{Ledger: actor.Read}
)

// nodes are processes on one database.
func nodes(t *testing.T, count int) []*marketplace.KeyRing {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Template(t, "migrated", migrations.Up))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	log := slog.New(slog.DiscardHandler)
	v, err := vault.Open(t.Context(), pool, make([]byte, 32), log)
	require.NoError(t, err)
	all := make([]*marketplace.KeyRing, count)
	for i := range all {
		store, err := postgres.Open(t.Context(), pool, log)
		require.NoError(t, err)
		t.Cleanup(store.Close)
		h := commands.New(store, v, time.Now)
		all[i] = &marketplace.KeyRing{Commands: h, Admin: "root", Home: home, Now: time.Now}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- h.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-stopped)
		})
	}
	return all
}

func as(t *testing.T, key string) context.Context {
	t.Helper()
	return commands.With(t.Context(), commands.Request{Actor: operator, Workspace: home, Operation: "create-api-key", Key: key})
}

func create(workspace uuid.UUID, expires *time.Time) apikey.Create {
	return apikey.Create{By: operator, Workspace: workspace, Name: "till", Permissions: reader, ExpiresAt: expires, Now: time.Now()}
}

func TestAKeyOpensOnEveryNodeWhatItWasMadeFor(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	key, out, err := marketplace.CreateAPIKey(as(t, ""), all[0].Commands, create(home, nil))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(key, marketplace.KeyPrefix))
	for _, ring := range all {
		by, err := ring.Authenticate(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, actor.Actor{Type: "api_key", ID: out.ID, Workspace: home, Permissions: reader}, by)
	}
}

func TestWhatIsNoKeyOpensNothing(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	key, out, err := marketplace.CreateAPIKey(as(t, ""), ring.Commands, create(home, nil))
	require.NoError(t, err)
	id, secret, ok := strings.Cut(strings.TrimPrefix(key, marketplace.KeyPrefix), "_")
	require.True(t, ok)
	other := uuid.New()
	for _, wrong := range []string{
		"", "_", "bahi_", "bahi__", "rot", "root ", id, secret,
		marketplace.KeyPrefix + id, marketplace.KeyPrefix + id + "_", marketplace.KeyPrefix + id + "_" + secret[1:],
		marketplace.KeyPrefix + id + "_" + strings.ToUpper(secret), marketplace.KeyPrefix + id + "_!" + secret,
		marketplace.KeyPrefix + id[2:] + "_" + secret, marketplace.KeyPrefix + "zz" + id[2:] + "_" + secret,
		marketplace.KeyPrefix + hex.EncodeToString(other[:]) + "_" + secret, marketplace.KeyPrefix + out.ID + "_" + secret,
		key + key, strings.Repeat("a", 1<<16), "bahi_\x00_\x00",
	} {
		_, err := ring.Authenticate(t.Context(), wrong)
		require.ErrorIs(t, err, marketplace.ErrUnknownKey, wrong)
	}
	ring.Admin = ""
	_, err = ring.Authenticate(t.Context(), "")
	require.ErrorIs(t, err, marketplace.ErrUnknownKey, "no operator's key is not an empty one")
}

func TestTheOperatorsKeyOpensAll(t *testing.T) {
	t.Parallel()
	by, err := nodes(t, 1)[0].Authenticate(t.Context(), "root")
	require.NoError(t, err)
	require.Equal(t, actor.Actor{Type: "api_key", ID: "admin", Workspace: home, Permissions: actor.Permissions{Operator: true}}, by)
}

func TestARevokedKeyIsRefusedOnEveryNode(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	key, out, err := marketplace.CreateAPIKey(as(t, ""), all[0].Commands, create(home, nil))
	require.NoError(t, err)
	for _, ring := range all {
		_, err := ring.Authenticate(t.Context(), key)
		require.NoError(t, err)
	}
	id := uuid.MustParse(out.ID)
	foreign := commands.With(t.Context(), commands.Request{Workspace: uuid.New()})
	_, err = marketplace.RevokeAPIKey(foreign, all[0].Commands, id)
	require.ErrorIs(t, err, apikey.ErrNotFound, "not by another workspace")
	_, err = marketplace.RevokeAPIKey(as(t, ""), all[1].Commands, id)
	require.NoError(t, err)
	for _, ring := range all {
		require.Eventually(t, func() bool {
			_, err := ring.Authenticate(t.Context(), key)
			return errors.Is(err, marketplace.ErrUnknownKey)
		}, 10*time.Second, time.Millisecond)
	}
	_, err = marketplace.RevokeAPIKey(as(t, ""), all[0].Commands, id)
	require.ErrorIs(t, err, apikey.ErrNotFound)
}

func TestAKeyEndsWithItsTime(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	expires := time.Now().Add(time.Hour)
	key, _, err := marketplace.CreateAPIKey(as(t, ""), ring.Commands, create(home, &expires))
	require.NoError(t, err)
	ring.Now = func() time.Time { return expires.Add(-time.Nanosecond) }
	_, err = ring.Authenticate(t.Context(), key)
	require.NoError(t, err)
	ring.Now = func() time.Time { return expires }
	_, err = ring.Authenticate(t.Context(), key)
	require.ErrorIs(t, err, marketplace.ErrUnknownKey)
}

// Of several answers to one request, the one that shows a key shows the one that opens.
func TestAKeyIsShownOnceAndOpens(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	for _, idempotency := range []string{"a", "b", "c", "d", "e"} {
		var (
			mu    sync.Mutex
			shown []string
			ids   = map[string]bool{}
			done  sync.WaitGroup
		)
		for _, ring := range all {
			done.Go(func() {
				key, out, err := marketplace.CreateAPIKey(as(t, idempotency), ring.Commands, create(home, nil))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				ids[out.ID] = true
				if key != "" {
					shown = append(shown, key)
				}
			})
		}
		done.Wait()
		require.Len(t, ids, 1)
		require.Len(t, shown, 1)
		_, err := all[0].Authenticate(t.Context(), shown[0])
		require.NoError(t, err)
	}
}

func TestARefusedKeyIsNotShown(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	c := create(home, nil)
	c.By = actor.Actor{Permissions: reader}
	c.Permissions.Operator = true
	key, _, err := marketplace.CreateAPIKey(as(t, ""), ring.Commands, c)
	refused, _ := errors.AsType[*fault.Error](err)
	require.NotNil(t, refused)
	require.Equal(t, fault.Forbidden, refused.Kind)
	require.Empty(t, key)
	dry := commands.With(t.Context(), commands.Request{Actor: operator, Workspace: home, DryRun: true})
	key, _, err = marketplace.CreateAPIKey(dry, ring.Commands, create(home, nil))
	require.NoError(t, err)
	require.Empty(t, key, "one that opens nothing is not shown")
}

func TestALogThatIsAwayIsNoReasonToRefuseAKey(t *testing.T) {
	t.Parallel()
	ring := nodes(t, 1)[0]
	key, _, err := marketplace.CreateAPIKey(as(t, ""), ring.Commands, create(home, nil))
	require.NoError(t, err)
	id := strings.ReplaceAll(uuid.NewString(), "-", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ring.Authenticate(ctx, marketplace.KeyPrefix+id+key[len(marketplace.KeyPrefix)+32:])
	require.Error(t, err)
	require.NotErrorIs(t, err, marketplace.ErrUnknownKey)
	require.NotErrorIs(t, err, eventstore.ErrInDoubt)
}
